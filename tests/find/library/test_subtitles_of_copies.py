"""Subtitle files beside any path of a film count, whatever the order in which its folders come."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from made_films import Pictures, make_film
from moviola.search import Library

SRT = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"


@pytest.fixture
def twice(tmp_path: Path) -> tuple[Path, Path]:
    """A film in two folders; it goes by the path in the first one."""
    first, second = tmp_path / "a", tmp_path / "b"
    film = make_film(first / "film.mkv", Pictures(3.0))
    second.mkdir()
    shutil.copy(film, second / "film.mkv")
    return first, second


def words(library: Library) -> list[str]:
    return [cue.text for cue in library.catalogue.cues(library.catalogue.video("film").row)]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("apart", [False, True])
def test_subtitles_are_found_beside_each_copy(
    twice: tuple[Path, Path], opened: Callable[..., Library], place: int, order: tuple[int, int], apart: bool
) -> None:
    """The words were found or not by the order of the folders, in one call or in several."""
    (twice[place] / "film.srt").write_text(SRT.format("a walrus hums"))
    library = opened(encoder="demo", sentence_encoder="none")
    folders = [twice[number] for number in order]
    for given in [[folder] for folder in folders] if apart else [folders]:
        assert library.index(*given).unmatched == []
    assert words(library) == ["a walrus hums"]
    for given in (folders, [folders[0]], [folders[1]]):
        report = library.index(*given)
        assert (report.unchanged, report.updated, report.moved) in ((["film"], [], []), ([], [], []))


def test_subtitles_come_change_and_go_beside_a_copy(
    twice: tuple[Path, Path], opened: Callable[..., Library]
) -> None:
    first, second = twice
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(first, second)
    beside = second / "film.srt"
    beside.write_text(SRT.format("a walrus hums"))
    assert library.index(second).updated == ["film"] and words(library) == ["a walrus hums"]
    beside.unlink()
    assert library.index(second).updated == ["film"] and words(library) == []
    beside.write_text(SRT.format("a walrus hums"))
    assert library.index(second).updated == ["film"]
    (first / "film.srt").write_text(SRT.format("a walrus hums"))
    assert library.index(first).updated == ["film"] and words(library) == ["a walrus hums"]
    beside.write_text(SRT.format("an otter sings"))
    assert library.index(first, second).updated == ["film"]
    assert sorted(words(library)) == ["a walrus hums", "an otter sings"]
    beside.rename(second / "other.txt")
    library.index(first)
    assert words(library) == ["a walrus hums"]
    (second / "other.txt").rename(beside)
    library.index(first, second)
    shutil.rmtree(second)  # a folder of the library: it is away, and what it had stays
    library.index(first)
    assert sorted(words(library)) == ["a walrus hums", "an otter sings"]
