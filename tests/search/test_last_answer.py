"""The answer that is kept for `moviola open` and `cut`."""

from __future__ import annotations

from pathlib import Path

import pytest

from moviola.errors import DataError, NotFound
from moviola.search import LikeMoment, Marked, Text
from moviola.search.last_answer import KeptAnswer, keep_answer, kept_answer, kept_moment
from moviola.types import Moment, Reason, Span

STEP = Moment("a", 1.0, 2.0, 0.5, 2)
MOMENTS = [
    Moment("a", 0.0, 1.5, 0.9, 1, "both", "red", snippet_kind="text", folded=(Span(0, 1),),
           why=(Reason("seen", 0.8), Reason("written", 0.5, ("red",)))),
    Moment("b", 1.0, 4.0, 0.1, 2, steps=(STEP, STEP), strong=False),
]  # fmt: skip


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, str]:
    for name in "ab":
        (tmp_path / f"{name}.mp4").write_bytes(b"")
    return {name: str(tmp_path / f"{name}.mp4") for name in "ab"}


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


def test_it_lies_in_the_library(library: Path, sources: dict[str, str], users_cache: Path) -> None:
    assert (
        keep_answer(library, KeptAnswer(Text("a door"), MOMENTS, sources))
        == library / "cache" / "last-answer.json"
    )
    moment, path = kept_moment(library, 2)
    assert (moment.video_id, moment.start, moment.end, str(path)) == ("b", 1.0, 4.0, sources["b"])
    assert not users_cache.exists()


def test_nothing_of_an_answer_is_lost(library: Path, sources: dict[str, str]) -> None:
    query = Marked(
        (Text("a door") + 0.5 * LikeMoment("a", 1.0)).then("rain").without("snow"),
        right=tuple(MOMENTS[:1]),  # type: ignore[arg-type]
    )
    answer = KeptAnswer(query, MOMENTS, sources, {"top_k": 5, "folder": "films"})
    keep_answer(library, answer)
    assert kept_answer(library) == answer


def test_or_with_the_user(library: Path, sources: dict[str, str], users_cache: Path, tmp_path: Path) -> None:
    closed(library)
    kept = keep_answer(library, KeptAnswer(Text("a door"), MOMENTS, sources))
    assert kept.is_relative_to(users_cache)
    assert kept_moment(library, 1)[0].video_id == "a"
    other = tmp_path / "other"
    with pytest.raises(NotFound, match="no answer yet"):
        kept_moment(other, 1)


def test_the_newest_answer_counts(library: Path, sources: dict[str, str]) -> None:
    closed(library)
    keep_answer(library, KeptAnswer(Text("a door"), MOMENTS, sources))
    (library / "cache").unlink()
    keep_answer(library, KeptAnswer(Text("a door"), MOMENTS[:1], sources))
    with pytest.raises(NotFound, match="rank 2: the last answer has 1 moments"):
        kept_moment(library, 2)


def test_what_is_missing_is_named(library: Path, sources: dict[str, str]) -> None:
    with pytest.raises(NotFound, match="run `moviola search` first"):
        kept_moment(library, 1)
    keep_answer(library, KeptAnswer(Text("a door"), MOMENTS, sources))
    Path(sources["a"]).unlink()
    with pytest.raises(NotFound, match="the video's file is not there"):
        kept_moment(library, 1)


@pytest.mark.parametrize("content", ["", "[1]", '[{"rank": 1}]', '{"rank": 1}', '[{"rank": "x"}]'])
def test_a_damaged_one_is_named(library: Path, content: str) -> None:
    (library / "cache").mkdir()
    (library / "cache" / "last-answer.json").write_text(content)
    with pytest.raises(DataError, match=r"last-answer\.json"):
        kept_moment(library, 1)
