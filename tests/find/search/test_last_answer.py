"""The answer that is kept for `moviola open`, `cut`, `mark` and `export`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moviola.errors import DataError, InvalidValue, NotFound
from moviola.search import Asked, Filter, LikeMoment, LikePicture, Marked, SearchOptions, Text
from moviola.search.last_answer import KeptAnswer, keep_answer, kept_answer
from moviola.types import Moment, Reason, Span

QUESTION = Asked("a door")
STEP = Moment("a", 1.0, 2.0, 0.5, 2)
MOMENTS = [
    Moment("a", 0.0, 1.5, 0.9, 1, "both", "red", snippet_kind="text", folded=(Span(0, 1),),
           why=(Reason("seen", 0.8), Reason("written", 0.5, ("red",)))),
    Moment("b", 1.0, 4.0, 0.1, 2, steps=(STEP, STEP), band="possible"),
]  # fmt: skip


@pytest.fixture
def users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    return tmp_path / "user" / "moviola"


@pytest.fixture
def library(tmp_path: Path, users_cache: Path) -> Path:
    (tmp_path / "lib").mkdir()
    return tmp_path / "lib"


def closed(library: Path) -> None:
    """Nothing can be written there, not even by root."""
    (library / "cache").write_text("a file where the folder would be")


def test_it_lies_in_the_library(library: Path, users_cache: Path) -> None:
    kept = keep_answer(library, KeptAnswer(QUESTION, MOMENTS))
    assert kept == library / "cache" / "last-answer.json"
    moment = kept_answer(library).moment(2)
    assert (moment.video_id, moment.start, moment.end) == ("b", 1.0, 4.0)
    assert not users_cache.exists()


def test_nothing_of_an_answer_is_lost(library: Path) -> None:
    query = Marked(
        (Text("a door") + 0.5 * LikeMoment("a", 1.0)).then("rain").without("snow"),
        right=tuple(MOMENTS[:1]),  # type: ignore[arg-type]
    )
    answer = KeptAnswer(Asked(query, SearchOptions(top_k=5, filter=Filter(folder="films"))), MOMENTS)
    keep_answer(library, answer)
    assert kept_answer(library) == answer


def test_a_picture_is_the_same_file_from_any_folder(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keep_answer(library, KeptAnswer(Asked(LikePicture(Path("door.png"))), MOMENTS))
    monkeypatch.chdir(library)
    assert kept_answer(library).asked.query == LikePicture(tmp_path / "door.png")


def test_or_with_the_user(library: Path, users_cache: Path, tmp_path: Path) -> None:
    closed(library)
    kept = keep_answer(library, KeptAnswer(QUESTION, MOMENTS))
    assert kept.is_relative_to(users_cache)
    assert kept_answer(library).moment(1).video_id == "a"
    other = tmp_path / "other"
    with pytest.raises(NotFound, match="no library there, so no answer"):
        kept_answer(other)
    other.mkdir()
    (other / "moviola.toml").touch()
    with pytest.raises(NotFound, match="no answer yet"):
        kept_answer(other)


def test_the_newest_answer_counts(library: Path) -> None:
    closed(library)
    keep_answer(library, KeptAnswer(QUESTION, MOMENTS))
    (library / "cache").unlink()
    keep_answer(library, KeptAnswer(QUESTION, MOMENTS[:1]))
    with pytest.raises(NotFound, match="rank 2: the last answer has 1 moment;"):
        kept_answer(library).moment(2)


def test_no_older_answer_stands_in_for_one_that_could_not_be_kept(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise InvalidValue("cannot be written (No space left on device)")

    keep_answer(library, KeptAnswer(QUESTION, MOMENTS))
    monkeypatch.setattr("moviola.search.last_answer.write_json", full)
    with pytest.raises(InvalidValue, match="No space"):
        keep_answer(library, KeptAnswer(Asked("a pig"), MOMENTS))
    with pytest.raises(NotFound, match="run `moviola search` first"):
        kept_answer(library)


def test_an_answer_that_is_missing_is_named(library: Path) -> None:
    with pytest.raises(NotFound, match="run `moviola search` first"):
        kept_answer(library)


@pytest.mark.parametrize("content", ["", "[1]", '[{"rank": 1}]', '{"rank": 1}', '[{"rank": "x"}]'])
def test_a_damaged_one_is_named(library: Path, content: str) -> None:
    (library / "cache").mkdir()
    (library / "cache" / "last-answer.json").write_text(content)
    with pytest.raises(DataError, match=r"last-answer\.json"):
        kept_answer(library)


@pytest.mark.parametrize(
    "query", [5, {"steps": []}, {"without": ["snow"]}, {"terms": [{"text": "x", "y": 1}]}]
)
def test_a_damaged_query_is_named(library: Path, query: object) -> None:
    place = keep_answer(library, KeptAnswer(QUESTION, MOMENTS))
    place.write_text(json.dumps({**json.loads(place.read_text()), "asked": {"query": query}}))
    with pytest.raises(DataError, match=r"last-answer\.json"):
        kept_answer(library)
