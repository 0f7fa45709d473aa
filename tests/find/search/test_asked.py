"""One question in all its forms: every query of the algebra goes through each of them and comes back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp import Client
from PIL import Image

from awake import Awake
from moviola.errors import MoviolaError, NotFound
from moviola.files.writing import write_json
from moviola.library import verify
from moviola.mcp import library_server
from moviola.media import write_video
from moviola.search import (
    Asked,
    Filter,
    KeptPicture,
    Library,
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    Position,
    SearchOptions,
    SearchQuery,
    SearchResult,
    Steps,
    Text,
    WeightedSum,
    Without,
)
from moviola.search.asked import query_from_json, query_to_json, renamed
from moviola.search.forms import Near
from moviola.search.last_answer import KeptAnswer, keep_answer, kept_answer
from moviola.search.options import KINDS
from moviola.search.queries import as_query
from moviola.server import Options, create_app
from moviola.types import BANDS
from page_scripts import run_script

# ---- every question ----------------------------------------------------------------------------------------

# Control characters are refused over HTTP and to agents; halves of characters are no text.
letters = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
odd = st.sampled_from([
    "@logo", "@logo on a shelf", "@a @b", "mail me@home", '{"a": 1}', "5", "true", "null", '"quoted"',
    " padded ", "a..b", "1:30", "%", "🦦", "u\u0308ber", "then", "a&b=c#d+e",
])  # fmt: skip
texts = st.builds(Text, (letters | odd).filter(lambda text: bool(text.strip())))
ids = st.sampled_from(["beach", "a@b", "deep/c d", "5", "é"])
times = st.floats(0, 1e6)
moments = st.builds(LikeMoment, ids, times)
PICTURES = ("one.png", "two.png")
pictures = st.sampled_from(PICTURES).map(lambda name: LikePicture(Path("/pictures", name)))
terms = texts | moments | pictures
weights = st.just(1.0) | st.floats(1e-3, 1e3)
sums = st.lists(st.tuples(terms, weights), min_size=2, max_size=4).map(WeightedSum.of)
plain = terms | sums
spans = st.tuples(times, st.floats(0.5, 100)).map(lambda span: (span[0], span[0] + span[1]))
marked_moments = st.builds(lambda video, span: MarkedMoment(video, *span), ids, spans)


@st.composite
def marked(draw: st.DrawFn, of: st.SearchStrategy[Any]) -> Marked:
    """Marks on some query, or on none."""
    both = draw(st.lists(marked_moments, max_size=4, unique=True))
    cut = draw(st.integers(0, len(both)))
    concept = draw(st.sampled_from(["", "our-logo"])) if both else "our-logo"
    return Marked(draw(of), tuple(both[:cut]), tuple(both[cut:]), concept)


simple = plain | marked(plain | st.none())
excluding = st.builds(Without.of, simple, st.lists(simple, min_size=1, max_size=3))
parts = (
    simple
    | excluding
    | marked(excluding)
    | st.builds(lambda one, other: Without.of(one, [other]), excluding, simple)
)
gaps = st.just(60.0) | st.just(math.inf) | st.floats(0, 1e5)


@st.composite
def sequences(draw: st.DrawFn) -> Steps:
    steps = draw(st.lists(parts, min_size=2, max_size=4))
    return Steps(tuple(steps), tuple(draw(gaps) for _ in steps[1:]))


wholes = sequences() | st.builds(lambda steps, one: Without.of(steps, [one]), sequences(), simple)
queries = (parts | wholes | marked(wholes)).map(as_query)

seconds = st.tuples(st.none() | st.floats(0, 1e6), st.none() | st.floats(0, 1e6)).filter(
    lambda pair: None in pair or pair[0] <= pair[1]  # type: ignore[operator]
)
shares = st.floats(-1, 1).map(lambda share: Position(share, True))
positions = shares | st.floats(-1e5, 1e5).map(Position)
zones = st.none() | st.integers(-720, 720).map(lambda minutes: timezone(timedelta(minutes=minutes)))
days = st.datetimes(datetime(3, 1, 1), datetime(9990, 1, 1)).flatmap(
    lambda day: st.sampled_from([
        day, day.replace(microsecond=0), datetime(day.year, 1, 1), datetime(day.year, day.month, 1),
        datetime(day.year, day.month, day.day), datetime(day.year, 12, 31, 23, 59, 59, 999999),
    ])
)  # fmt: skip
instants = st.builds(lambda day, zone: day.replace(tzinfo=zone), days, zones)


def ranged(of: st.SearchStrategy[Any], check: Callable[[Any], object]) -> st.SearchStrategy[Any]:
    """Pairs of bounds that a filter takes."""

    def holds(pair: Any) -> bool:
        try:
            check(pair)
        except MoviolaError:
            return False
        return True

    return st.tuples(st.none() | of, st.none() | of).filter(holds)


lines = st.lists(letters.filter(lambda text: bool(text.strip())), min_size=1, max_size=3).map("\n".join)
places = st.builds(Near, st.floats(-90, 90), st.floats(-180, 180), st.floats(1e-3, 1e7))
filters = st.fixed_dictionaries(
    {},
    optional={
        "folder": lines, "camera": lines, "tag": lines, "video_length": seconds, "moment_length": seconds,
        "near": places, "where": ranged(positions, lambda pair: Filter(where=pair)),
        "taken": ranged(instants, lambda pair: Filter(taken=pair)),
        "modified": ranged(days, lambda pair: Filter(modified=pair)),
    },
).map(lambda values: Filter(**values))  # fmt: skip
options = st.fixed_dictionaries(
    {"filter": filters},
    optional={
        "top_k": st.integers(1, 20), "per_video": st.none() | st.integers(1, 1000),
        "min_score": st.floats(0, 1) | st.sampled_from([*BANDS]), "videos": st.lists(ids, min_size=1),
        "by": st.sampled_from([*KINDS]), "refine": st.booleans(), "weak": st.booleans(),
    },
).map(lambda values: SearchOptions(**values))  # fmt: skip
questions = st.builds(Asked, queries, options)


# ---- JSON --------------------------------------------------------------------------------------------------


@given(question=questions)
@example(
    question=Asked(
        Marked(Without.of(Marked(None, (MarkedMoment("a", 0, 1),)), ["b"]), (), (MarkedMoment("a", 2, 3),))
    )
)
@example(question=Asked(Steps((Marked(Text("a").then("b"), concept="c"), Text("d")), (5.0,))))  # type: ignore[arg-type]
def test_json_holds_every_question(question: Asked) -> None:
    row = json.loads(json.dumps(question.to_json(), allow_nan=False))
    assert Asked.from_json(row) == question
    assert Asked.from_json(row).to_json() == row
    assert query_from_json(query_to_json(question.query)) == question.query


@given(filters)
@example(Filter(where=(Position(-0.0, True), Position(0.1 + 0.2, True)), video_length=(None, math.inf)))
def test_texts_hold_every_filter(filter: Filter) -> None:
    """The sign of zero, too, which is the end of a video."""
    read = Filter.parse(**filter.texts())
    assert read == filter
    assert [bound and bound.from_end for bound in read.where] == [
        bound and bound.from_end for bound in filter.where
    ]


@pytest.mark.parametrize(
    "texts",
    [
        {"taken": "2023"}, {"taken": "2021..2023-05"}, {"taken": "2023-05-31.."},
        {"modified": "..2024-05-01T18:30"}, {"near": "52.52,13.405,500m"}, {"where": "..33.3%"},
        {"where": "-60.."}, {"video_length": "60..600"},
        {"folder": "*/holiday/*\n/films", "tag": "sea"},
    ],
)  # fmt: skip
def test_texts_that_people_write_stay_as_they_are(texts: dict[str, str]) -> None:
    assert Filter.parse(**texts).texts() == texts


scalars = st.none() | st.booleans() | st.integers() | st.floats()
json_values = st.recursive(
    scalars | st.sampled_from(["a", "@a @b", "", "0" * 32, "any"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from([
            "query", "terms", "first", "then", "without", "right", "wrong", "concept", "text", "weight",
            "plain", "video_id", "time", "start", "end", "picture", "gap", "filter", "taken", "where", "near",
            "tag", "videos", "top_k", "by", "refine", "colour",
        ]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=400)
@given(json_values, st.booleans())
@example({"terms": [{"text": "a"}], "gap": 5}, False)
@example({"terms": [{"text": ["a"]}]}, False)
@example({"terms": [{"text": "a", "weight": 10**400}]}, False)
@example({"filter": [["taken", "2023"]], "query": "a"}, True)
def test_any_other_json_is_refused_in_words(row: Any, whole: bool) -> None:
    try:
        question = Asked.from_json(row if whole else {"query": row})
    except MoviolaError as error:
        assert str(error)
    else:
        assert Asked.from_json(question.to_json()) == question


def test_json_nested_too_deep_is_refused() -> None:
    row: Any = {"terms": [{"text": "a"}]}
    for _ in range(3_000):
        row = {"first": row}
    with pytest.raises(MoviolaError, match="nested too deep"):
        query_from_json(row)


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ({"query": {"terms": [{"text": "a"}, {"text": " "}]}}, "query.terms.2"),
        ({"query": {"first": {"terms": []}}}, "query.first"),
        ({"query": "a", "filter": {"taken": "soon"}}, "filter.taken"),
        ({"query": "a", "filter": {"colour": "red"}}, "filter"),
        ({"query": "a", "min_score": 2}, "min_score"),
        ({"query": {"terms": [{"text": "a"}], "then": [{"terms": [{"time": 1}]}]}}, "query.then.1.terms.1"),
        ({"query": {"terms": [{"text": "a"}], "without": ["b", {"right": [{"video_id": "c"}]}]}},
         "query.without.2.right.1"),
        ({}, "query"),
    ],
)  # fmt: skip
def test_faults_are_named_by_their_place(row: Any, place: str) -> None:
    with pytest.raises(MoviolaError) as refused:
        Asked.from_json(row)
    assert refused.value.place == place


# ---- each form ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two pictures and an empty library."""
    folder = tmp_path_factory.mktemp("asked")
    for number, name in enumerate(PICTURES):
        Image.new("RGB", (8, 8), (200, 50 * number, 0)).save(folder / name)
    Library(folder / "lib", encoder="none", sentence_encoder="none").close()
    return folder


@pytest.fixture(scope="module")
def library(folder: Path) -> Iterator[Library]:
    with Library(folder / "lib") as opened:
        yield opened


def there(question: Asked, folder: Path) -> Asked:
    """The same question of the pictures that are there."""
    names = {f"/pictures/{name}": str(folder / name) for name in PICTURES}
    return Asked.from_json(renamed(question.to_json(), names))


@contextmanager
def heard(library: Library) -> Iterator[list[Asked]]:
    """What the library is asked meanwhile; it answers with nothing."""
    questions: list[Asked] = []

    def search(query: SearchQuery, options: SearchOptions) -> SearchResult:
        questions.append(Asked(query, options))
        return SearchResult()

    library.search = search  # type: ignore[method-assign]
    try:
        yield questions
    finally:
        del library.search


@given(question=questions)
def test_the_last_answer_holds_every_question(question: Asked, folder: Path) -> None:
    keep_answer(folder / "lib", KeptAnswer(question, []))
    assert kept_answer(folder / "lib").asked == question


@settings(max_examples=25)
@given(question=questions)
def test_a_saved_search_holds_every_question_with_its_pictures(
    question: Asked, folder: Path, library: Library
) -> None:
    question = there(question, folder)
    entry = library.saved.save("any", question)
    saved = library.saved.asked("any")
    assert Asked.from_json(renamed(saved.to_json(), kept_names(folder))) == question
    assert entry.value.pictures == library.userdata.pictures().keys()  # type: ignore[union-attr]  # of its kind
    lines = list(library.userdata.export())
    library.userdata.delete("search", "any")
    assert library.userdata.pictures() == {}
    library.userdata.take(lines)
    assert library.saved.asked("any") == saved
    library.userdata.delete("search", "any")


def kept_names(folder: Path) -> dict[str, str]:
    from moviola.library.userdata.pictures import picture_to_keep

    return {picture_to_keep(folder / name)[0]: str(folder / name) for name in PICTURES}


@settings(max_examples=60)
@given(question=questions)
def test_http_asks_every_question(question: Asked, served: TestClient) -> None:
    library, names = served.app.state.service.library, {}  # type: ignore[attr-defined]
    for name in PICTURES:
        sent = served.post("/api/pictures", content=(library.folder.parent / name).read_bytes())
        names[f"/pictures/{name}"] = sent.json()["picture"]
    paths = {served.app.state.service.uploads.path(name): path for path, name in names.items()}  # type: ignore[attr-defined]
    body = {"top_k": question.options.top_k, **renamed(question.to_json(), names)}
    with heard(library) as questions:
        served.post("/api/search", json=body).raise_for_status()
    (found,) = questions
    assert (
        Asked.from_json(renamed(found.to_json(), {str(one): name for one, name in paths.items()})) == question
    )


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[TestClient]:
    with Awake(create_app(folder / "lib", Options(threads=1))) as client:
        yield client


@settings(max_examples=30)
@given(question=questions)
def test_agents_ask_every_question(question: Asked, folder: Path, library: Library) -> None:
    question = there(question, folder)
    server = library_server(library, pictures=folder)
    arguments = {"top_k": question.options.top_k, **question.to_json()}
    if isinstance(arguments["query"], str):  # the SDK reads `null` and lists in a text as JSON
        arguments["query"] = {"terms": [{"text": arguments["query"]}]}

    async def call() -> Any:
        async with Client(server) as client:
            return await client.call_tool("search_moments", arguments)

    with heard(library) as questions:
        result = anyio.run(call)
    assert not result.is_error, result.content
    assert questions == [question]


@settings(max_examples=5)
@given(question=st.lists(questions, min_size=20, max_size=20))
def test_the_page_holds_every_question_and_so_do_its_links(
    question: list[Asked], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tmp_path = tmp_path_factory.mktemp("page")
    write_json(tmp_path / "asked.json", [one.to_json() for one in question])
    script = f"""
      import {{ readFileSync }} from "node:fs";
      const asking = await page("base/asked.js");
      const {{ askedBy, describe, linkedSearch, parametersOf, searchOf, wordsOf }} = asking;
      const questions = JSON.parse(readFileSync({json.dumps(str(tmp_path / "asked.json"))}));
      console.log(JSON.stringify(questions.map((one) => {{
        const link = String(parametersOf(searchOf(one)));
        const search = linkedSearch(new URLSearchParams(link));
        return [askedBy(searchOf(one)), askedBy(search), describe(search), [...wordsOf(search)].length >= 0];
      }})));
    """
    for one, (held, linked, described, _) in zip(question, run_script(script, tmp_path), strict=True):
        assert Asked.from_json(held) == one
        assert Asked.from_json(linked) == one
        assert described.strip()


# ---- pictures ----------------------------------------------------------------------------------------------


def test_a_picture_that_is_not_kept_is_no_part_of_a_saved_search(library: Library) -> None:
    question = Asked(KeptPicture("0" * 32))
    with pytest.raises(MoviolaError, match=f"picture {'0' * 32}: not kept in this library"):
        library.saved.save("odd", question)
    with pytest.raises(NotFound):
        library.userdata.entry("search", "odd")


def test_large_pictures_are_kept_small(library: Library, tmp_path: Path) -> None:
    """A photograph takes megabytes; what an encoder sees of it, a few kilobytes."""
    large = Image.effect_noise((3000, 2000), 90)
    large.save(tmp_path / "large.png")
    library.saved.save("large", Asked(LikePicture(tmp_path / "large.png")))
    ((name, size),) = library.userdata.pictures().items()
    assert size < (tmp_path / "large.png").stat().st_size / 4
    assert max(Image.open(BytesIO(library.userdata.picture(name))).size) == 1024
    library.saved.save("again", library.saved.asked("large"))  # by its name
    library.userdata.delete("search", "large")
    assert [*library.userdata.pictures()] == [name]
    library.saved.save("again", Asked("a dog"))
    assert library.userdata.pictures() == {}
    library.userdata.delete("search", "again")


def test_a_damaged_picture_is_named(library: Library, folder: Path) -> None:
    library.saved.save("one", Asked(LikePicture(folder / PICTURES[0])))
    library.userdata._rows("UPDATE pictures SET content = x'00'")
    (name,) = library.userdata.pictures()
    with pytest.raises(MoviolaError, match=rf"kept\.sqlite: damaged .*picture {name}"):
        library.userdata.picture(name)
    assert [name in problem.message for problem in verify(library.store)] == [True]
    library.userdata.delete("search", "one")


def test_options_beside_the_defaults_are_written_alone() -> None:
    question = Asked("a dog", SearchOptions(top_k=10, by="all"))
    assert question.to_json() == {"query": "a dog"}
    assert replace(question, options=SearchOptions(videos=["b", "a"])).to_json()["videos"] == ["a", "b"]


def test_of_a_video_its_first_picture_is_kept(library: Library, tmp_path: Path) -> None:
    frames = [np.full((48, 64, 3), colour, np.uint8) for colour in ((200, 40, 40), (40, 40, 200))]
    write_video(tmp_path / "film.mp4", [frame for frame in frames for _ in range(5)], rate=5)
    library.saved.save("film", Asked(LikePicture(tmp_path / "film.mp4")))
    (name,) = library.userdata.pictures()
    kept = Image.open(BytesIO(library.userdata.picture(name)))
    assert kept.size == (64, 48)
    assert np.abs(np.asarray(kept.convert("RGB")).mean((0, 1)) - (200, 40, 40)).max() < 25
    (tmp_path / "text.txt").write_text("no picture")
    with pytest.raises(MoviolaError, match=r"text\.txt"):
        library.saved.save("film", Asked(LikePicture(tmp_path / "text.txt")))
    assert [*library.userdata.pictures()] == [name]
    library.userdata.delete("search", "film")
