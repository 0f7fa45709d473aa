"""One bad file stops nobody: it is refused with its reason, and the good files after it go in."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.frame import VideoFrame

from moviola.errors import LibraryError, NotFound
from moviola.features import FeatureShards
from moviola.library import verify
from moviola.library.disk import contents
from moviola.library.ingest import scan
from moviola.library.ingest.plan import FoundFile
from moviola.library.ingest.video_encoder import VideoEncoder
from moviola.search import Library

# Sorts after all names below, so that it is reached only if none of them stops the work.
GOOD = "z_good"


@pytest.fixture
def folder(tmp_path: Path, film: Callable[..., Path]) -> Path:
    """A folder with one good film, the last one by name."""
    return film(tmp_path / "films" / f"{GOOD}.mp4", 6, seed=1).parent


@pytest.fixture
def empty(opened: Callable[..., Library]) -> Library:
    """A library with nothing in it."""
    return opened(encoder="demo", sentence_encoder="none")


def a_gif(path: Path, width: int, height: int) -> None:
    """Two pictures of which one pixel is given: some bytes that declare any size."""
    picture = b"\x21\xf9\x04\x04\x32\0\0\0" + b"\x2c" + bytes(4) + b"\1\0\1\0\0" + b"\x02\x02\x44\x01\x00"
    size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    path.write_bytes(b"GIF89a" + size + b"\x80\0\0" + bytes(3) + b"\xff\xff\xff" + 2 * picture + b"\x3b")


def a_ribbon(path: Path) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=5)
        stream.width, stream.height, stream.pix_fmt = 20_000, 2, "yuv420p"
        for number in range(5):
            picture = VideoFrame.from_ndarray(np.zeros((2, 20_000, 3), np.uint8)).reformat(format="yuv420p")
            picture.pts, picture.time_base = number, Fraction(1, 5)
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))


def a_slow_clock(path: Path, film: Callable[..., Path]) -> None:
    """96 pictures, each 512 ticks of what is 1/12,800 s by right and half a second by the header."""
    film(path, 96 / 5, seed=3)
    data = bytearray(path.read_bytes())
    scale = data.index(b"mdhd") + 16
    ticks = int.from_bytes(data[scale : scale + 4], "big") // 5
    data[scale : scale + 4] = max(1, ticks // 256).to_bytes(4, "big")
    path.write_bytes(data)


MAKERS: dict[str, tuple[Callable[[Path, Callable[..., Path]], Any], str]] = {
    "wide.gif": (lambda path, _: a_gif(path, 65_000, 1), r"wide\.gif: pictures of 65000 x 1 pixels"),
    "tall.gif": (lambda path, _: a_gif(path, 1, 65_000), r"tall\.gif: pictures of 1 x 65000 pixels"),
    "wide.mkv": (lambda path, _: a_ribbon(path), r"wide\.mkv: pictures of 20000 x 2 pixels"),
    "huge.gif": (lambda path, _: a_gif(path, 16_000, 16_000), r"huge\.gif: pictures of 16000 x 16000 pixels"),
    "slow.mp4": (a_slow_clock, r"slow\.mp4: damaged header: a picture every \d+ s"),
    "self.mp4": (lambda path, _: path.symlink_to(path), r"self\.mp4: cannot be read \(Too many levels"),
    "nowhere.mp4": (lambda path, _: path.symlink_to("gone.mp4"), r"nowhere\.mp4: .*link to a file that does"),
    "pipe.mp4": (lambda path, _: os.mkfifo(path), r"pipe\.mp4: a named pipe"),
    "caf\udce9.mp4": (
        lambda path, _: path.write_bytes(b"x"),
        r"caf\\xe9\.mp4: its path is not UTF-8 .*; rename it",
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_bad_file_is_refused_and_the_next_one_goes_in(
    folder: Path, empty: Library, film: Callable[..., Path], name: str
) -> None:
    make, reason = MAKERS[name]
    make(folder / name, film)
    report = empty.index(folder)
    assert report.added == [GOOD]
    ((video_id, message),) = report.refused.items()
    assert re.match(reason, message), message
    assert message.endswith("; skipped")
    (video_id + message).encode()  # can be printed
    assert verify(empty.store) == []
    again = empty.index(folder)
    assert again.unchanged == [GOOD]
    assert again.refused == report.refused


def test_of_a_file_that_goes_away_while_others_are_encoded_what_is_known_stays(
    folder: Path, empty: Library, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went in as a refused video, also over a good one whose file had changed."""
    film(folder / "known.mp4", 3, seed=2)
    empty.index(folder)
    film(folder / "known.mp4", 4, seed=3)
    film(folder / "new.mp4", 3, seed=4)
    encode = VideoEncoder.many

    def unplugged(encoder: VideoEncoder, files: list[FoundFile], *given: Any, **named: Any) -> Any:
        for file in files:
            file.path.unlink()
        return encode(encoder, files, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(VideoEncoder, "many", unplugged)
        report = empty.index(folder)
    assert set(report.refused) == {"known", "new"}
    states = {video.video_id: video.state for video in empty.catalogue.videos()}
    assert states == {"known": "ready", GOOD: "ready"}


def test_a_film_that_cannot_be_read_while_it_is_encoded_again_stays(
    folder: Path, empty: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its features were dropped, though its bytes are the same as before."""
    from moviola.library.ingest import frame_features

    def failing(path: Path) -> Any:
        raise OSError(errno.EIO, "Input/output error", str(path))

    empty.index(folder / f"{GOOD}.mp4")
    before = empty.search("anything")
    empty.indexer.again([GOOD])
    with monkeypatch.context() as patch:
        patch.setattr(frame_features, "probe", failing)
        report = empty.index(folder / f"{GOOD}.mp4")
    assert report.refused == {GOOD: f"{GOOD}.mp4: cannot be read (Input/output error); skipped"}
    assert empty.search("anything") == before and before
    assert empty.index(folder / f"{GOOD}.mp4").updated == [GOOD]


def test_of_two_bad_files_with_the_same_bytes_both_are_refused(folder: Path, empty: Library) -> None:
    for name in ("first.mp4", "second.mp4"):
        (folder / name).write_bytes(b"")
    for _ in range(2):
        report = empty.index(folder)
        assert report.refused == {
            "first": "first.mp4: the file is empty (0 bytes); skipped",
            "second": "second.mp4: the file is empty (0 bytes); skipped",
        }
        assert report.copies == {}
        states = {video.video_id: video.state for video in empty.catalogue.videos()}
        assert states == {"first": "refused", "second": "refused", GOOD: "ready"}
    (folder / "first.mp4").unlink()
    assert list(empty.index(folder, prune=True).refused) == ["second"]


def test_of_a_refused_file_that_is_pruned_nothing_can_be_restored(folder: Path, empty: Library) -> None:
    (folder / "bad.mp4").write_bytes(b"")
    assert empty.index(folder).added == [GOOD]
    (folder / "bad.mp4").unlink()
    assert empty.index(folder).missing == ["bad"]
    assert empty.index(folder, prune=True).removed == []
    (folder / "bad.mp4").write_bytes(b"")
    empty.index(folder)
    assert empty.indexer.forget_root(folder) == [GOOD]
    assert empty.indexer.restore([GOOD]) == [GOOD]


@pytest.mark.parametrize("bad", ["before", "after"])
def test_a_folder_moves_to_where_a_file_was_refused(folder: Path, empty: Library, bad: str) -> None:
    (folder / "bad.mp4").write_bytes(b"")
    empty.index(folder)
    folder.rename(there := folder.with_name("archive"))
    if bad == "before":  # refused at the new place; at the old one it was a film
        shutil.copy(there / f"{GOOD}.mp4", there / "bad.mp4")
        with (there / "bad.mp4").open("ab") as file:
            file.write(b"another film")
    empty.index(there)
    there.rename(folder)
    assert empty.indexer.move(there, folder)
    videos = {video.path: video.state for video in empty.catalogue.videos()}
    state = "refused" if bad == "after" else "ready"
    assert videos == {str(folder / "bad.mp4"): state, str(folder / f"{GOOD}.mp4"): "ready"}


def test_a_refused_file_that_gets_the_bytes_of_another_is_not_removed(folder: Path, empty: Library) -> None:
    (folder / "first.mp4").write_bytes(b"")
    (folder / "second.mp4").write_bytes(b"no film")
    assert set(empty.index(folder).refused) == {"first", "second"}
    (folder / "second.mp4").write_bytes(b"")
    report = empty.index(folder)
    assert report.removed == []
    assert set(report.refused) == {"first", "second"}


def test_a_bad_file_that_is_named_itself_is_refused(folder: Path, empty: Library) -> None:
    os.mkfifo(folder / "pipe.mp4")
    (folder / "self.mp4").symlink_to("self.mp4")
    report = empty.index(folder / "pipe.mp4", folder / "self.mp4", folder / f"{GOOD}.mp4")
    assert (set(report.refused), report.added) == ({"pipe", "self"}, [GOOD])
    with pytest.raises(NotFound, match=r"nobody\\xff: no such file or folder"):
        empty.index(folder / "nobody\udcff")


def test_a_pipe_for_subtitles_is_reported(folder: Path, empty: Library) -> None:
    os.mkfifo(folder / f"{GOOD}.srt")
    (folder / f"{GOOD}.en.srt").symlink_to(f"{GOOD}.en.srt")
    report = empty.index(folder)
    assert report.added == [GOOD]
    assert "a named pipe" in report.subtitle_problems[GOOD]
    assert "Too many levels" in report.subtitle_problems[GOOD]
    assert empty.index(folder).unchanged == [GOOD]


def test_names_that_are_not_utf8_beside_good_films(folder: Path, empty: Library) -> None:
    (folder / "notes.\udcff").write_text("x")
    (folder / f"{GOOD}.\udce9.srt").write_text("x")
    (folder / "sub\udce9").mkdir()
    (folder / "sub\udce9" / "inner.mp4").write_bytes(b"x")
    report = empty.index(folder)
    assert report.added == [GOOD]
    assert list(report.refused) == ["sub\\xe9/inner"]
    assert [Path(path).name for path in report.ignored] == ["notes.\\xff"]


def test_a_file_that_cannot_be_read_is_refused_and_what_is_in_stays(
    folder: Path, empty: Library, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, size: int) -> str:
        if path.name != f"{GOOD}.mp4":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return content_hash(path, size)

    content_hash = scan.content_hash
    film(folder / "a.mp4", 5, seed=5)
    film(folder / "b.mp4", 5, seed=6)
    with monkeypatch.context() as patch:
        patch.setattr(scan, "content_hash", refuse)
        report = empty.index(folder)
        assert report.added == [GOOD]
        assert set(report.refused) == {"a", "b"}
        assert report.refused["a"].startswith("a.mp4: cannot be read (Permission denied)")
    assert sorted(empty.index(folder).added) == ["a", "b"]
    os.utime(folder / "b.mp4", (1, 1))
    monkeypatch.setattr(scan, "content_hash", refuse)
    assert list(empty.index(folder).refused) == ["b"]
    assert [video.video_id for video in empty.videos()] == ["a", "b", GOOD]


def test_a_folder_that_cannot_be_listed_is_reported_and_nothing_of_it_is_pruned(
    folder: Path, empty: Library, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = film(folder / "inner" / "a.mp4", 5, seed=5).parent
    empty.index(folder)
    scandir, stat = os.scandir, Path.stat

    def closed_scandir(path: Any = ".") -> Any:
        if Path(path) == inner:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    def closed_stat(path: Path, **how: bool) -> os.stat_result:
        if path.parent == inner:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(os, "scandir", closed_scandir)
    monkeypatch.setattr(Path, "stat", closed_stat)
    report = empty.index(folder, prune=True)
    assert report.refused == {str(inner): f"{inner}: cannot be read (Permission denied); skipped"}
    assert not report.missing and not report.removed
    assert len(empty) == 2


def test_a_copy_in_a_folder_that_cannot_be_listed_takes_the_place_of_its_film(
    folder: Path, empty: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "zz").mkdir()
    copy = Path(shutil.copy2(folder / f"{GOOD}.mp4", folder / "zz"))
    empty.index(folder)
    (folder / f"{GOOD}.mp4").unlink()
    read = {name: getattr(os, name) for name in ("scandir", "listdir")}

    def closed(name: str, path: Any = ".") -> Any:
        if Path(path) == copy.parent:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read[name](path)

    for name in read:
        monkeypatch.setattr(os, name, partial(closed, name))
    report = empty.index(folder)
    assert report.moved == [GOOD] and not report.missing
    assert empty.store.file_of(GOOD) == copy


def test_an_error_of_the_disk_while_decoding_refuses_the_file(
    folder: Path, empty: Library, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from moviola.library.ingest import frame_features as ingest

    probe = ingest.probe

    def failing(path: Path) -> Any:
        if path.name == "a.mp4":
            raise OSError(errno.EIO, "Input/output error", str(path))
        return probe(path)

    film(folder / "a.mp4", 5, seed=5)
    monkeypatch.setattr(ingest, "probe", failing)
    report = empty.index(folder)
    assert report.added == [GOOD]
    assert report.refused == {"a": "a.mp4: cannot be read (Input/output error); skipped"}


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), sqlite3.OperationalError("database or disk is full")],
)
def test_a_full_disk_is_said_and_work_goes_on_later(
    folder: Path,
    empty: Library,
    film: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    film(folder / "a.mp4", 5, seed=5)
    append, calls = FeatureShards.append, []

    def full(self: Any, *args: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise error
        return append(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(FeatureShards, "append", full)
        with pytest.raises(LibraryError, match=r"cannot be written .*(No space|disk is full)"):
            empty.index(folder)
    report = empty.index(folder)
    assert (report.unchanged, report.added) == (["a"], [GOOD])
    assert verify(empty.store) == []


def test_a_file_of_the_package_that_is_missing_is_named(
    folder: Path, empty: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is wrong with the place of the library, so nothing of the kind is said."""
    missing = tmp_path / "package" / "words.txt"
    monkeypatch.setattr(FeatureShards, "append", lambda *_: missing.read_bytes())
    with pytest.raises(LibraryError, match=re.escape(str(missing))) as raised:
        empty.index(folder)
    assert "reinstall moviola" in str(raised.value)
    assert "cannot be written" not in str(raised.value)


def test_a_file_that_was_incomplete_is_read_again_when_it_is_complete(
    tmp_path: Path, empty: Library, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hole lies where the hash, which reads pieces of a file, does not look."""
    monkeypatch.setattr(contents, "_CHUNK", 512)
    path = film(tmp_path / "films" / "film.mp4", 40, seed=7)
    whole = path.read_bytes()
    third = (len(whole) - 512) // 3
    hole = slice(third + 512, 2 * third)
    path.write_bytes(whole[: hole.start] + bytes(hole.stop - hole.start) + whole[hole.stop :])
    digest = scan.content_hash(path, len(whole))
    report = empty.index(path)
    assert list(report.partial) == ["film"]
    path.write_bytes(whole)
    os.utime(path, ns=(1, 1))
    assert scan.content_hash(path, len(whole)) == digest
    report = empty.index(path)
    assert report.updated == ["film"]
    assert empty.catalogue.video("film").state == "ready"
    assert not report.partial


def test_a_refused_file_stays_refused_where_it_is_to_be_encoded_again(tmp_path: Path, empty: Library) -> None:
    (tmp_path / "bad.mp4").write_text("no film")
    empty.index(tmp_path / "bad.mp4")
    assert empty.indexer.again(["bad"]) == ["bad"] and empty.videos() == []
    assert list(empty.index(tmp_path / "bad.mp4").refused) == ["bad"]


def test_a_file_from_a_far_future(tmp_path: Path) -> None:
    """SQLite and NumPy hold nanoseconds until the year 2262."""
    path = tmp_path / "film.mp4"
    path.touch()
    os.utime(path, ns=(0, 2**63 + 10**9))
    if path.stat().st_mtime_ns < 2**63:
        pytest.skip("this file system has no such times")
    (found,) = scan.make_plan([path], []).new
    assert found.mtime_ns == 2**63 - 1
    assert scan.make_plan([path], [found.row("ready")]).unchanged
