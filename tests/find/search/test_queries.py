"""The algebra of queries: what composes to equal values, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue
from moviola.search import (
    KeptPicture,
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    SearchOptions,
    SearchQuery,
    Steps,
    Text,
    WeightedSum,
    Without,
)  # fmt: skip
from moviola.search.queries import as_query, parts_of

words = st.sampled_from(["a dog", "a cat", "rain", "a door opens"]).map(Text)
moments = st.builds(LikeMoment, st.sampled_from(["beach", "a@b"]), st.sampled_from([0.0, 12.5, 3600.25]))
pictures = st.builds(LikePicture, st.sampled_from([Path("a.png"), Path("b.jpg")]))
terms = words | moments | pictures
weights = st.integers(1, 8).map(lambda n: n / 4)  # sums of these are exact
sums = st.lists(st.tuples(terms, weights), min_size=1, max_size=4).map(WeightedSum.of)
simple = terms | sums
gaps = st.sampled_from([0.0, 5.0, math.inf])
sequences = st.builds(lambda a, b, gap: a.then(b, gap=gap), simple, simple, gaps)


@given(simple, simple, simple)
def test_sums_do_not_depend_on_order(a: SearchQuery, b: SearchQuery, c: SearchQuery) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert hash(a + b) == hash(b + a)


@given(simple, simple, weights)
def test_weights_distribute_over_sums(a: SearchQuery, b: SearchQuery, w: float) -> None:
    assert w * (a + b) == w * a + w * b
    assert a + a == 2 * a
    assert w * a == a * w


@given(terms, weights)
def test_the_weight_of_one_thing_changes_nothing(term: SearchQuery, weight: float) -> None:
    assert as_query(weight * term) == term
    assert (weight * term).then("x") == term.then("x")
    assert Text("x").without(weight * term) == Text("x").without(term)


@given(simple, simple, simple, gaps, gaps)
def test_then_is_associative(a: SearchQuery, b: SearchQuery, c: SearchQuery, g: float, h: float) -> None:
    left = a.then(b, gap=g).then(c, gap=h)
    assert left == a.then(b.then(c, gap=h), gap=g)
    assert (len(left.steps), left.gaps) == (3, (g, h))


@given(simple | sequences, simple, simple)
def test_exclusions_have_no_order_and_count_once(a: SearchQuery, b: SearchQuery, c: SearchQuery) -> None:
    assert a.without(b).without(c) == a.without(c).without(b) == a.without(b, c, b)
    assert isinstance(a.without(b), Without)


@given(simple, simple)
def test_parts_of_a_query_are_all_that_is_looked_for(a: SearchQuery, b: SearchQuery) -> None:
    assert parts_of(as_query(a.without(b))) == parts_of(as_query(a)) + parts_of(as_query(b))
    assert parts_of(a.then(b)) == parts_of(as_query(a)) + parts_of(as_query(b))


def test_words_stand_for_texts() -> None:
    dog = Text("a dog")
    assert dog + "rain" == "rain" + dog == dog + Text("rain")
    assert dog.then("rain") == dog.then(Text("rain"))
    assert dog.without("rain") == dog.without(Text("rain"))
    assert as_query("a dog") == dog


def test_words_stand_for_texts_in_constructors() -> None:
    """Also those that type checkers refuse there."""
    mark, dog, rain = MarkedMoment("beach", 1, 2), Text("a dog"), Text("rain")
    assert Marked("a dog", (mark,)) == Marked(dog, (mark,))  # type: ignore[arg-type]
    assert Marked("@our-logo", (mark,)).concept == "our-logo"  # type: ignore[arg-type]
    assert Steps(("a dog", "rain"), (5,)) == dog.then(rain, gap=5)  # type: ignore[arg-type]
    assert WeightedSum.of([("a dog", 1), ("rain", 2)]) == dog + 2 * rain
    assert Without("a dog", ("rain", "rain")) == dog.without(rain)  # type: ignore[arg-type]
    assert parts_of(Without("a dog", ("rain",))) == (dog, rain)  # type: ignore[arg-type]


def test_words_with_marks_stand_for_a_text() -> None:
    moment = MarkedMoment("beach", 1, 2)
    by_words = Marked.of("a dog", [moment])  # type: ignore[list-item]
    assert by_words == Marked(Text("a dog"), (moment,))
    for nothing in (None, 5, b"a dog"):
        with pytest.raises(InvalidValue, match="give a text"):
            as_query(nothing)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: Without("a dog", "a cat"),  # type: ignore[arg-type]
        lambda: SearchOptions(videos="beach"),
    ],
)
def test_one_text_is_no_list_of_letters(ask: Callable[[], object]) -> None:
    with pytest.raises(InvalidValue, match=r"a single text; give a list, \['"):
        ask()


def test_accents_may_be_characters_of_their_own() -> None:
    """As macOS writes them; words would be divided there."""
    assert Text("u\u0308ber") == as_query("u\u0308ber") == Text("über")


def test_they_say_what_they_ask() -> None:
    query = (Text("a dog") + 0.5 * LikeMoment("beach", 12)).then("rain", gap=30).without("snow")
    assert str(query) == "a dog + 0.5 like beach@12, within 30 s then rain; not snow"
    assert str(Text("a dog").then("rain", gap=math.inf)) == "a dog, then rain"


@pytest.mark.parametrize(
    ("text", "video", "time"),
    [("beach@12.5", "beach", 12.5), ("a@b@1:02:03", "a@b", 3723.0), ("deep/c@0", "deep/c", 0.0)],
)
def test_moments_are_written_as_video_and_time(text: str, video: str, time: float) -> None:
    assert LikeMoment.parse(text) == LikeMoment(video, time)


@pytest.mark.parametrize(
    "text", ["beach", "@12", "beach@", "beach@-1", "beach@1:99", "beach@soon", "beach@nan"]
)
def test_moments_in_another_form_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match=text):
        LikeMoment.parse(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Text("  "), "text of a query is empty"),
        (lambda: Text("x" * 100_001), "100,001 characters; give at most 100,000"),
        (lambda: LikeMoment("v", -1), "v@-1"),
        (lambda: LikeMoment("v", math.nan), "v@nan"),
        (lambda: LikeMoment("v", math.inf), "v@inf"),
        (lambda: LikeMoment("v", "12"), "v@'12': give seconds"),  # type: ignore[arg-type]
        (lambda: WeightedSum.of([]), "sum of nothing"),
        (lambda: WeightedSum.of([(Text("a"), "2")]), "weight '2'"),
        (lambda: 0 * Text("a"), "weight 0"),
        (lambda: -1 * Text("a"), "`without` excludes"),
        (lambda: math.inf * Text("a"), "weight inf"),
        (lambda: "2" * Text("a"), "weight '2' of 'a': must be a number"),  # type: ignore[operator]
        (lambda: 10**400 * Text("a"), "weight 1000"),
        (lambda: 1e308 * Text("a") + 1e308 * Text("b"), "weights 1e.308 a, 1e.308 b: their sum"),
        (lambda: 1e308 * Text("a") + 1e308 * Text("a"), "weights inf a: their sum"),
        (lambda: LikeMoment("v", 10**400), "v@1000"),
        (lambda: Text("a").then("b", gap=-1), "gap -1"),
        (lambda: Text("a").then("b", gap=math.nan), "gap nan"),
        (lambda: Text("a").then("b", gap="9"), "gap '9'"),  # type: ignore[arg-type]
        (lambda: Text("a").then("b") + "c", "a term of a sum"),
        (lambda: Text("a").without("b") * 2, "a term of a sum"),
        (lambda: Text("a").without(Text("b").then("c")), "what is excluded"),
        (lambda: Text("a").without(Text("b").without("c")), "what is excluded"),
        (lambda: Text(3), "query 3: give a text"),  # type: ignore[arg-type]
        (lambda: LikeMoment(3, 1), "video_id 3: give the id"),  # type: ignore[arg-type]
        (lambda: LikeMoment.parse(3), "moment 3: give a text"),  # type: ignore[arg-type]
        (lambda: LikePicture(3), "picture 3: give the path"),  # type: ignore[arg-type]
        (lambda: MarkedMoment(3, 1, 2), "video_id 3: give the id"),  # type: ignore[arg-type]
        (lambda: MarkedMoment("v", "1", 2), "'1', 2.: both bounds"),  # type: ignore[arg-type]
        (lambda: Marked(None, ("v",)), "right 'v': give a MarkedMoment"),  # type: ignore[arg-type]
        (lambda: Marked(None, (), "v"), "wrong 'v': a single text"),  # type: ignore[arg-type]
        (lambda: Marked(None, concept=3), "concept 3: give the name"),  # type: ignore[arg-type]
        (lambda: WeightedSum.of([(3, 1)]), "query 3: give a text"),
        (lambda: WeightedSum.of(3), "terms 3: give a list"),  # type: ignore[arg-type]
        (lambda: WeightedSum.of([Text("a")]), "term Text.*: give a pair"),  # type: ignore[list-item]
        (lambda: WeightedSum.of([("a", 1, 2)]), "term .'a', 1, 2.: give a pair"),  # type: ignore[list-item]
        (lambda: WeightedSum.of([(Text("a").then("b"), 1)]), "a term of a sum"),
        (lambda: KeptPicture("door.png"), "picture 'door.png': give 32 hexadecimal digits"),
        (lambda: Steps(("a", "b"), ()), "gaps .*: give a gap for each step but the first"),  # type: ignore[arg-type]
        (lambda: Steps((), ()), "give a gap for each step but the first"),
        (lambda: Steps("ab", (1,)), "steps 'ab': a single text"),  # type: ignore[arg-type]
        (lambda: Steps((Text("a").then("b"), Text("c")), (1,)), "a sequence is no step"),  # type: ignore[arg-type]
        (lambda: Steps((3, Text("c")), (1,)), "query 3: give a text"),  # type: ignore[arg-type]
        (lambda: Without("a", "b"), "excluded 'b': a single text"),  # type: ignore[arg-type]
        (lambda: Without(3, ("b",)), "query 3: give a text"),  # type: ignore[arg-type]
        (lambda: Marked(3, (MarkedMoment("v", 1, 2),)), "query 3: give a text"),  # type: ignore[arg-type]
        (lambda: Text("a").then("b").without("c").then("d"), "add the last step before"),
    ],
)
def test_what_makes_no_sense_is_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make()  # type: ignore[operator]


def test_a_step_may_have_exclusions_of_its_own() -> None:
    query = Text("a").without("b").then("c")
    assert isinstance(query, Steps)
    assert query.steps[0] == Text("a").without("b")


def test_a_text_before_a_query_is_read_as_one_behind_it() -> None:
    assert "rain" + Text("a dog") == Text("a dog") + "rain"
    for sum_of in (lambda: "@logo" + Text("a dog"), lambda: Text("a dog") + "@logo"):
        with pytest.raises(InvalidValue, match="marks apply to the whole sum"):
            sum_of()


def test_a_weight_is_checked_also_where_words_are_alone() -> None:
    assert as_query(2 * Text("a dog")) == Text("a dog")
    with pytest.raises(InvalidValue, match="weight -1 of 'a dog'"):
        WeightedSum.of([("a dog", -1)])
