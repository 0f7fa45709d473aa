"""Folders that others can write to: what they put there is not believed, and the rest of the work goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from moviola.library import WantedCues, repair, verify
from moviola.library.ingest import scan
from moviola.search import Library

IDS = ["a", "b", "d", "deep/c"]
SECRET = "1\n00:00:01,000 --> 00:00:02,000\nThe password is swordfish.\n"


def ids(library: Library) -> list[str]:
    return [video.video_id for video in library.videos()]


def said(library: Library, word: str) -> list[tuple[int, int]]:
    return [(cue.video, cue.number) for cue in library.catalogue.match_cues(WantedCues([word]), 5)]


# Patterns that cannot be read: what they would leave out is not known.
PATTERNS: dict[str, Callable[[Path, Path], object]] = {
    "a named pipe": lambda path, _: os.mkfifo(path),
    "a link, not a file": lambda path, secret: path.symlink_to(secret),
    "more than": lambda path, _: path.write_bytes(b"#" * 2_000_000),
    "no patterns as in .gitignore, in UTF-8": lambda path, _: path.write_bytes(b"\xff*.mp4"),
    "no patterns as in .gitignore": lambda path, _: path.write_text("!"),
}


@pytest.mark.parametrize("reason", PATTERNS)
def test_patterns_that_cannot_be_read_cost_their_own_folder_alone(
    library: Library, films: Path, tmp_path: Path, film: Callable[..., Path], reason: str
) -> None:
    """Any of them ended the whole run, and the watcher; the text of a linked file stood in the message."""
    secret = tmp_path / "secret"
    secret.write_text("!\n")
    PATTERNS[reason](films / "deep" / ".moviolaignore", secret)
    film(films / "deep" / "new.mp4", 3, 7)
    film(films / "newer.mp4", 3, 8)
    report = library.index(films, prune=True, confirm=lambda *_: True)
    assert report.added == ["newer"] and report.missing == report.left_out == report.removed == []
    (refused,) = report.refused.values()
    assert reason in refused and ".moviolaignore" in refused and str(secret) not in refused
    assert ids(library) == sorted([*IDS, "newer"])


def test_subtitles_are_no_way_to_read_other_files(library: Library, films: Path, tmp_path: Path) -> None:
    """The text of any file beside a link's end could be searched for, and read as a transcript."""
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    (films / "a.srt").symlink_to(secret)
    report = library.index(films)
    assert report.refused == {str(films / "a.srt"): "a.srt: a link to no subtitles; skipped"}
    assert said(library, "swordfish") == []
    secret.rename(tmp_path / "film.srt")
    (films / "a.srt").unlink()
    (films / "a.srt").symlink_to(tmp_path / "film.srt")  # as where all subtitles lie in one place
    assert library.index(films).updated == ["a"]
    assert said(library, "swordfish") == [(library.catalogue.video("a").row, 0)]


def test_links_out_of_a_folder_are_refused_where_others_write(
    library: Library, films: Path, tmp_path: Path, film: Callable[..., Path]
) -> None:
    """A watched share showed every film of the server's user."""
    private = film(tmp_path / "private" / "x.mp4", 4, 9)
    (private.parent / "y.srt").write_text(SECRET)
    (films / "x.mp4").symlink_to(private)
    (films / "a.srt").symlink_to(private.parent / "y.srt")
    (films / "inside.mp4").symlink_to("a.mp4")
    report = library.index(films, links_out=False)
    assert {Path(name).name for name in report.refused} == {"x.mp4", "a.srt"}
    assert all(f"a link out of {films}" in reason for reason in report.refused.values())
    assert ids(library) == IDS and said(library, "swordfish") == []
    assert set(library.index(films).added) == {"x"}


def test_a_link_that_comes_after_a_file_was_listed_is_not_followed(
    library: Library, films: Path, tmp_path: Path, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the list and the decoder there may be hours."""
    private, hashed = film(tmp_path / "private.mp4", 4, 9), scan.content_hash
    new = film(films / "new.mp4", 4, 8)

    def swapped(path: Path, size: int) -> str:
        digest = hashed(path, size)
        if path == new:
            path.unlink()
            path.symlink_to(private)
        return digest

    monkeypatch.setattr(scan, "content_hash", swapped)
    report = library.index(films, links_out=False)
    assert "a link has come to stand there" in report.refused["new"] and ids(library) == IDS


@pytest.mark.parametrize("folder", [False, True])
def test_a_link_where_a_video_was_shows_no_other_file(
    library: Library, films: Path, tmp_path: Path, film: Callable[..., Path], folder: bool
) -> None:
    private = film(tmp_path / "private" / "c.mp4", 4, 9)
    library.index(films)
    assert library.store.file_of("deep/c") == films / "deep" / "c.mp4"
    if folder:
        (films / "deep").rename(tmp_path / "gone")
        (films / "deep").symlink_to(private.parent)
    else:
        (films / "deep" / "c.mp4").unlink()
        (films / "deep" / "c.mp4").symlink_to(private)
    assert library.store.file_of("deep/c") is None and library.store.paths_of(["deep/c"])[1] == {"deep/c"}
    assert library.store.kept_still("deep/c", 1.0)  # of what it was


def test_a_folder_that_was_moved_and_linked_is_there(library: Library, films: Path, tmp_path: Path) -> None:
    library.index(films)
    films.rename(tmp_path / "archive")
    films.symlink_to(tmp_path / "archive")
    assert library.store.file_of("a") == films / "a.mp4"


def test_links_in_the_librarys_own_folder_are_not_written_through(library: Library, tmp_path: Path) -> None:
    """Who may write there could have had any file of this user written over."""
    own = tmp_path / "precious"
    own.write_text("precious")
    names = (
        ".lock.owner",
        "moviola.toml",
        "cache/facts/videos.json",
        "cache/facts/names.json",
        "index/segments.json",
    )
    whole = (library.folder / "moviola.toml").read_bytes()
    for name in names:
        (library.folder / name).unlink(missing_ok=True)
        (library.folder / name).symlink_to(own)
    (library.folder / "moviola.toml").unlink()
    (library.folder / "moviola.toml").write_bytes(whole)
    repair(library.store)
    library.indexer.use(refiner="demo")
    library.indexer.remove(["a"])
    assert own.read_text() == "precious"
    assert not any((library.folder / name).is_symlink() for name in names) and verify(library.store) == []


def test_a_pipe_in_place_of_an_index_is_not_waited_for(library: Library) -> None:
    expected = library.search("a red square", top_k=20)
    for name in ("segments.json", next((library.folder / "index").glob("segments-*")).name):
        path = library.folder / "index" / name
        path.unlink()
        os.mkfifo(path)
        with Library(library.folder, read_only=True) as reader:
            assert reader.search("a red square", top_k=20) == expected
            assert any("named pipe" in problem.message for problem in verify(reader.store))
        repair(library.store)
        assert verify(library.store) == []
