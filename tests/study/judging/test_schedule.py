"""Who judges what, and what comes of it, against the rule of ``datasets`` by brute force."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.datasets.building.consensus import Rating, agree, consensus
from moviola.study.judging.schedule import Answer, due_pairs, missing, next_batch, outcome

RATERS = "abcd"


def pair(name: str, rank: int = 1, query: str = "q") -> Pair:
    return Pair(name, query, "A door opens.", "v", rank, rank + 1.0, 99.0, "", 1 / rank, rank)


def test_consensus_is_the_rule_of_datasets_for_all_that_four_raters_can_say() -> None:
    """Ratings come one by one until the rule is content; then the outcome is the rule's."""
    for levels in product(range(5), repeat=4):
        said: list[int] = []
        while missing(said, 2):
            said.append(levels[len(said)])
        assert len(said) == (2 if abs(levels[0] - levels[1]) <= 1 else 4)
        found = outcome([pair("p")], [Answer("p", *one) for one in zip(RATERS, said, strict=False)], 2)
        ruled = consensus([Rating("p", *one) for one in zip(RATERS, said, strict=False)])
        assert found.agreed == ruled.agreed
        assert found.standing["p"] == ("agreed" if ruled.agreed else "discarded")
        assert not ruled.open and not ruled.uncountable


def test_four_from_the_beginning() -> None:
    for levels in product(range(5), repeat=4):
        assert [missing(levels[:n], 4) for n in range(5)] == [4, 3, 2, 1, 0]
        answers = [Answer("p", *one) for one in zip(RATERS, levels, strict=True)]
        assert outcome([pair("p")], answers[:2], 4).standing == {"p": "open"}
        assert outcome([pair("p")], answers, 4).agreed.get("p") == agree(levels)


def test_one_rater_alone_is_taken_at_their_word() -> None:
    assert missing([], 1) == 1 and missing([3], 1) == 0
    assert outcome([pair("p")], [Answer("p", "a", 3)], 1).agreed == {"p": 3}


def test_moments_that_nobody_can_judge_are_set_aside() -> None:
    passed = [Answer("p", "a", None), Answer("p", "b", None)]
    assert outcome([pair("p")], passed[:1], 2).standing == {"p": "open"}
    assert outcome([pair("p")], passed, 2).standing == {"p": "set aside"}
    assert outcome([pair("p")], [*passed, Answer("p", "c", 2), Answer("p", "d", 2)], 2).agreed == {"p": 2}


def rated(pairs: list[Pair], level: int) -> list[Answer]:
    return [Answer(p.pair_id, rater, level) for p in pairs for rater in "ab"]


def test_the_second_batch_is_due_where_the_first_is_done_and_ends_relevant() -> None:
    pairs = [pair(f"p{rank}", rank) for rank in range(1, 26)]

    def due(answers: list[Answer]) -> int:
        return len(due_pairs(pairs, outcome(pairs, answers, 2), last=5, threshold=2.0))

    first = pairs[:20]
    assert due([]) == 20
    assert due(rated(first, 1)) == 20
    assert due(rated(first, 3)) == 25
    assert due(rated(first, 3)[:-1]) == 20  # one moment is not done yet


def test_a_batch_is_of_one_query_and_the_begun_one_comes_first() -> None:
    pairs = [pair(f"{query}{rank}", rank, query) for query in "qrst" for rank in (1, 2, 3)]
    first = {one.query_id for one in next_batch(pairs, [], {}, "a", raters=2, seed=0)}
    assert len(first) == 1
    begun = next(query for query in "qrst" if query not in first)
    answers = [Answer(f"{begun}1", "a", 2)]
    assert {p.query_id for p in next_batch(pairs, answers, {}, "b", raters=2, seed=0)} == {begun}


def test_a_full_batch_comes_before_what_others_differ_on() -> None:
    pairs = [pair(f"{query}{rank}", rank, query) for query in "qr" for rank in (1, 2, 3)]
    answers = [Answer("q1", "a", 0), Answer("q1", "b", 4)]
    held = {name: {"a", "b"} for name in ("q2", "q3")}
    assert {p.query_id for p in next_batch(pairs, answers, held, "c", raters=2, seed=0)} == {"r"}
    held |= {name: {"x", "y"} for name in ("r1", "r2", "r3")}
    assert [p.pair_id for p in next_batch(pairs, answers, held, "c", raters=2, seed=0)] == ["q1"]


def test_the_order_is_the_seeds_and_each_raters_own() -> None:
    pairs = [pair(f"p{rank}", rank) for rank in range(1, 21)]

    def order(rater: str, seed: int) -> list[str]:
        return [p.pair_id for p in next_batch(pairs, [], {}, rater, raters=2, seed=seed)]

    assert order("a", 0) == order("a", 0)
    assert len({tuple(order(rater, seed)) for rater in "ab" for seed in (0, 1)}) == 4
    assert order("a", 0) != [p.pair_id for p in pairs]


@given(
    st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from(RATERS), st.none() | st.integers(0, 4))),
    st.dictionaries(st.sampled_from("pqr"), st.sets(st.sampled_from("xyz"), max_size=3)),
)
def test_nobody_is_given_what_is_judged_or_held_by_enough(
    said: list[tuple[str, str, int | None]], held: dict[str, set[str]]
) -> None:
    answers = [Answer(*key, level) for key, level in {(p, r): level for p, r, level in said}.items()]
    pairs = [pair(name, rank) for rank, name in enumerate("pqr", start=1)]
    given_pairs = {p.pair_id for p in next_batch(pairs, answers, held, "a", raters=2, seed=0)}
    for name in "pqr":
        levels = [answer.level for answer in answers if answer.pair_id == name and answer.level is not None]
        own = any(answer.pair_id == name and answer.rater == "a" for answer in answers)
        passed = sum(answer.pair_id == name and answer.level is None for answer in answers)
        wanted = len(levels) + missing(levels, 2)
        fits = not own and passed < 2 and len(levels) + len(held.get(name, ())) < wanted
        assert (name in given_pairs) == fits
