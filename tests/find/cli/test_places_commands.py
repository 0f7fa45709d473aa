"""Roots, copies, removed videos and pruning, from the outside."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def own(moviola: Run, films: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Films that a test may move, and their library."""
    place = tmp_path / "own"
    place.mkdir()
    for path in films.iterdir():
        if path.name != "broken.mp4":
            shutil.copy(path, place)
    library = tmp_path / "lib"
    words = ("index", place, "--library", library, "--encoder", "none", "--sentence-encoder", "none")
    assert moviola(*words).code == 0
    return place, library


def test_pruning_most_of_a_library_wants_to_be_meant(moviola: Run, own: tuple[Path, Path]) -> None:
    films, library = own
    for path in films.iterdir():
        path.unlink()
    (films / "notes.txt").touch()
    refused = moviola("index", films, "-l", library, "--prune")
    assert refused.code == 3
    assert "not pruned: 2 of 2 videos would be taken out" in refused.err and "--yes" in refused.err
    pruned = moviola("index", films, "-l", library, "--prune", "--yes")
    assert pruned.code == 0 and "2 removed; 0 videos can be searched" in pruned.out
    gone = moviola("library", "removed", "-l", library, "--json").rows
    assert {one["video_id"] for one in gone} == {"harbour", "street"}
    assert "harbour" in moviola("library", "removed", "-l", library).out
    back = moviola("library", "restore", "--all", "-l", library)
    assert back.code == 0 and "2 restored; 2 videos can be searched" in back.out
    assert moviola("library", "restore", "-l", library).code == 2


def test_a_drive_that_is_away_is_marked_everywhere(moviola: Run, own: tuple[Path, Path]) -> None:
    films, library = own
    films.rename(away := films.with_name("unplugged"))
    report = moviola("index", films, "-l", library, "--prune", "--yes")
    assert report.code == 3 and "2 away; 2 videos can be searched" in report.out
    assert f"away: {films}: it is not there" in report.err
    assert "away" in moviola("library", "roots", "-l", library).out
    (root,) = moviola("library", "roots", "-l", library, "--json").rows
    assert (root["path"], root["videos"], root["away"]) == (str(films), 2, "it is not there")
    assert moviola("list", "-l", library).out.count("ready, away") == 2
    answer = moviola("search", "umbrella", "-l", library)
    assert "(away)" in answer.out
    assert moviola("search", "umbrella", "-l", library, "--json").rows[0]["away"] is True
    moved = moviola("library", "move", films, away, "-l", library)
    assert "2 files now in" in moved.out
    about = json.loads(moviola("show", "harbour", "-l", library, "--json").out)
    assert (about["path"], about["away"]) == (str(away / "harbour.mp4"), False)
    assert "2 removed" in moviola("library", "forget", away, "--yes", "-l", library).out


def test_copies_are_listed(moviola: Run, own: tuple[Path, Path]) -> None:
    films, library = own
    assert "no copies" in moviola("duplicates", "-l", library).err
    shutil.copy(films / "street.mp4", films / "again.mp4")
    report = moviola("index", films, "-l", library)
    assert "1 further copy" in report.out
    (found,) = moviola("duplicates", "-l", library, "--json").rows
    size = (films / "again.mp4").stat().st_size
    assert found["video_ids"] == ["street"] and (found["size"], found["wasted"]) == (size, size)
    assert found["paths"] == [str(films / "street.mp4"), str(films / "again.mp4")]
    listed = moviola("duplicates", "-l", library).out
    assert listed.startswith("exact\tstreet\t") and str(films / "again.mp4") in listed


def test_files_left_out_are_reported(moviola: Run, own: tuple[Path, Path]) -> None:
    films, library = own
    (films / "@eaDir").mkdir()
    shutil.copy(films / "street.mp4", films / "@eaDir" / "x.mp4")
    report = moviola("index", films, "-l", library, "--exclude", "harb*")
    assert "left out: harbour: is in the library" in report.err and "@eaDir" in report.err
    (root,) = moviola("library", "roots", "-l", library, "--json").rows
    assert root["patterns"] == ["harb*"] and root["defaults"] is True
    report = moviola("index", films, "-l", library, "--exclude", "", "--no-default-excludes")
    assert "left out" not in report.err and "1 further copy" in report.out


def test_films_of_a_day(moviola: Run, own: tuple[Path, Path]) -> None:
    films, library = own
    (films / "street.mp4").rename(films / "VID_20230501_143000.mp4")
    moviola("index", films, "-l", library, "--prune")
    with_date = moviola("show", "street", "-l", library, "--json")
    about = json.loads(with_date.out)
    assert (about["taken_from"], about["taken_zone"]) == ("file", "utc")
    found = moviola("search", "umbrella", "-l", library, "--taken", "1990..1991", "--json")
    assert found.rows == []
    wrong = moviola("search", "umbrella", "-l", library, "--near", "home")
    assert wrong.code == 1 and "write degrees north, degrees east" in wrong.err


@pytest.mark.parametrize("words", [("watch",), ("serve", "--port", "0", "--watch")])
def test_a_mistyped_folder_is_not_watched(
    moviola: Run, own: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    films, library = own
    monkeypatch.setattr("os.nice", lambda step: step)
    monkeypatch.setattr("signal.signal", lambda *handler: None)
    answer = moviola(*words, films.with_name("onw"), "-l", library)
    assert answer.code == 1 and f"{films.with_name('onw')}: no such folder" in answer.err


def test_a_mistyped_folder_that_is_to_be_watched_makes_no_library(moviola: Run, tmp_path: Path) -> None:
    answer = moviola("watch", tmp_path / "films", "-l", tmp_path / "new", "--encoder", "none")
    assert answer.code == 1 and "films: no such file or folder" in answer.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("words", [("watch",), ("serve", "--port", "0", "--watch")])
def test_without_its_package_nothing_is_watched_and_no_library_made(
    moviola: Run, own: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Not a server that tries again every ten seconds, nor an empty library that keeps its encoder."""
    films, library = own
    monkeypatch.setattr("moviola.library.ingest.watching.find_spec", lambda _: None)
    monkeypatch.setattr("os.nice", lambda step: step)
    monkeypatch.setattr("signal.signal", lambda *handler: None)
    new = library.with_name("new")
    answer = moviola(*words, films, "-l", new if words == ("watch",) else library)
    assert answer.code == 1 and "watchfiles is not installed; run: " in answer.err
    assert not new.exists()
