"""Where videos lie: drives that are away, files that move, copies; and what pruning may take out."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moviola.errors import InvalidValue, LibraryError, NotFound
from moviola.export import moment_cells
from moviola.library import IngestProgress, compact, verify
from moviola.library.disk.places import Root, is_below, present_path, root_of, volume_of, why_away
from moviola.library.disk.still_store import StillStore
from moviola.library.near_copies import exact_copies
from moviola.media import frame_at, read_small_still
from moviola.search import Filter, Library


def ids(library: Library) -> list[str]:
    return [video.video_id for video in library.videos()]


ALL = ["a", "b", "d", "deep/c"]


def paths(library: Library) -> dict[str, str]:
    return {video.video_id: video.path for video in library.catalogue.videos()}


def nothing_encoded(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a file is encoded."""

    def encode(*_: object) -> None:
        raise AssertionError("encoded")

    monkeypatch.setattr("moviola.library.ingest.video_encoder.VideoEncoder.many", encode)


# ---- drives ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False], ids=["a root", "a library of before there were roots"])
@pytest.mark.parametrize("how", ["unmounted", "empty", "another volume"])
def test_a_drive_that_is_away_takes_nothing_with_it(
    library: Library, films: Path, how: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [root.path for root in library.catalogue.roots()] == [str(films)]
    if not known:
        with library.catalogue.transaction():
            library.catalogue.drop_root(str(films))
    films.rename(away := films.with_name("unplugged"))
    if how != "unmounted":
        films.mkdir()
    if how == "another volume":
        (films / "not mounted.txt").write_text("plug it in")
        monkeypatch.setattr("moviola.library.disk.places.volume_of", lambda _: "another")
    report = library.index(films, prune=True, confirm=lambda *_: True)
    assert list(report.offline) == [str(films)]
    assert (sorted(report.away), report.removed, report.missing) == (ALL, [], [])
    assert ids(library) == ALL and library.search("a wall") and library.store.file_of("a") is None
    shutil.rmtree(films, ignore_errors=True)
    away.rename(films)
    nothing_encoded(library, monkeypatch)
    report = library.index(films, prune=True)
    assert sorted(report.unchanged) == ALL and not report.offline
    assert library.store.file_of("a") == films / "a.mp4"


def test_a_path_that_cannot_be_examined(library: Library, films: Path) -> None:
    lost = films / ("x" * 300)  # the system refuses such a name, as it does a path on a drive that fails
    report = library.index(lost)
    assert report.refused == {lost.name: f"{lost.name}: cannot be read (File name too long); skipped"}
    video = library.catalogue.video("a")
    assert present_path(replace(video, path=str(lost)), [], []) is None
    with pytest.raises(LibraryError, match="cannot be read"):
        Library(lost, read_only=True)


def test_a_volume_that_bears_another_mark_is_known_by_its_files(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.index(films)
    monkeypatch.setattr("moviola.library.ingest.scan.volume_of", lambda _: "mounted again")
    monkeypatch.setattr("moviola.library.disk.places.volume_of", lambda _: "mounted again")
    (films / "a.mp4").unlink()
    assert library.index(films, prune=True).removed == ["a"]
    assert library.catalogue.roots() == [Root(str(films), "mounted again")]


@pytest.mark.parametrize("left", [["a"], ["a", "b"], ["a", "b", "d", "deep/c"]])
def test_a_volume_with_a_few_of_the_files_is_another_one(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch, left: list[str]
) -> None:
    """A stick with a copy of one film in place of the drive had all others taken out; so had one with other
    films of the same lengths.
    """
    library.index(films)
    monkeypatch.setattr("moviola.library.ingest.scan.volume_of", lambda _: "another")
    monkeypatch.setattr("moviola.library.disk.places.volume_of", lambda _: "another")
    whole = Path(shutil.copytree(films, films.with_name("drive")))
    for name in ALL:
        path = films / f"{name}.mp4"
        if len(left) == len(ALL):
            path.write_bytes(b"x" * path.stat().st_size)
        elif name not in left:
            path.unlink()
    for _ in range(2):
        report = library.index(films, prune=True, confirm=lambda *_: True)
        (reason,) = report.offline.values()
        assert "another volume lies there" in reason and report.removed == [] and sorted(report.away) == ALL
    assert ids(library) == ALL
    shutil.rmtree(films)
    whole.rename(films)
    for path in films.rglob("*.mp4"):
        os.utime(path)  # a copy without its times is known by its content
    assert library.index(films, prune=True).removed == [] and not library.index(films).offline


def test_a_person_may_say_that_it_is_the_right_volume(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.index(films)
    monkeypatch.setattr("moviola.library.ingest.scan.volume_of", lambda _: "another")
    monkeypatch.setattr("moviola.library.disk.places.volume_of", lambda _: "another")
    monkeypatch.setattr("moviola.library.ingest.following.volume_of", lambda _: "another")
    for name in ("a", "b", "d"):
        (films / f"{name}.mp4").unlink()
    (reason,) = library.index(films).offline.values()
    assert f"`moviola library move {films} {films}`" in reason
    assert library.indexer.move(films, films) == 4
    assert sorted(library.index(films, prune=True, confirm=lambda *_: True).removed) == ["a", "b", "d"]
    assert ids(library) == ["deep/c"]


def test_files_deleted_from_a_folder_that_is_there_are_missing(library: Library, films: Path) -> None:
    library.index(films)
    shutil.rmtree(films / "deep")
    assert library.index(films / "deep").missing == ["deep/c"]
    (films / "deep").mkdir()
    assert library.index(films / "deep").missing == ["deep/c"]
    assert library.index(films, prune=True).removed == ["deep/c"]
    with pytest.raises(NotFound, match="nowhere"):
        library.index(films / "nowhere")


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own below ``films``, where one may be mounted."""
    place = tmp_path / "films" / "drive"
    place.mkdir(parents=True)
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "moviola-test", str(place)],
        capture_output=True,
        check=False,
    )
    if not mounted or mounted.returncode:
        pytest.skip("file systems may not be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)


def test_a_volume_mounted_below_a_folder_is_a_root_of_its_own(
    volume: Path, film: Callable[..., Path], opened: Callable[..., Library], tmp_path: Path
) -> None:
    films = volume.parent
    film(films / "here.mp4", 3, seed=1)
    film(volume / "there.mp4", 3, seed=2)
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(films)
    assert [root.path for root in library.catalogue.roots()] == [str(films), str(volume)]
    assert volume_of(volume) != volume_of(films)
    subprocess.run(["umount", str(volume)], check=True)
    (volume / "left behind.txt").write_text("in the folder below the mount")
    report = library.index(films, prune=True, confirm=lambda *_: True)
    assert report.away == ["drive/there"] and list(report.offline) == [str(volume)]
    assert not report.removed and ids(library) == ["drive/there", "here"]


def test_unplugged_while_it_is_indexed(
    volume: Path, film: Callable[..., Path], opened: Callable[..., Library]
) -> None:
    for number in range(3):
        film(volume / f"{number}.mp4", 3, seed=number)
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(volume / "0.mp4", volume / "1.mp4")

    def unplug(_: object) -> None:
        subprocess.run(["umount", "-l", str(volume)], capture_output=True, check=False)

    library.indexer.remove(["1"])
    film(volume / "3.mp4", 3, seed=3)
    report = library.index(volume, progress=unplug)
    assert report.unchanged == ["0"] and report.restored == ["1"]
    assert set(ids(library)) >= {"0", "1"}
    report = library.index(volume, prune=True, confirm=lambda *_: True)
    assert report.offline and not report.removed and set(ids(library)) >= {"0", "1"}


def test_the_deepest_root_counts(tmp_path: Path) -> None:
    roots = [Root("/films", "1"), Root("/films/usb", "2"), Root("/films/usb2", "3")]
    assert root_of("/films/usb/a.mp4", roots) == roots[1]
    assert root_of("/films/usbs/a.mp4", roots) == roots[0]
    assert root_of("/elsewhere/a.mp4", roots) is None
    assert is_below("/films", "/films") and is_below("/a", "/") and not is_below("/filmstrip", "/films")
    assert why_away(tmp_path, "", []) == ""


# ---- pruning --------------------------------------------------------------------------------------


def test_pruning_more_than_a_tenth_asks(library: Library, films: Path) -> None:
    (films / "a.mp4").unlink()
    (films / "b.mp4").unlink()
    report = library.index(films, prune=True)
    assert (report.removed, report.missing) == ([], ["a", "b"])
    assert report.not_pruned == "2 of 4 videos would be taken out, more than a tenth"
    asked: list[object] = []

    def no(videos: object, total: int) -> bool:
        asked.append((videos, total))
        return False

    assert library.index(films, prune=True, confirm=no).removed == []
    assert asked == [(["a", "b"], 4)]
    report = library.index(films, prune=True, confirm=lambda *_: True)
    assert (report.removed, report.missing, ids(library)) == (["a", "b"], [], ["d", "deep/c"])


def test_what_was_removed_comes_back_until_compaction(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [(m.video_id, m.start, round(m.score, 4)) for m in library.search("umbrella")]
    old = library.catalogue.video("d").row
    shots, cues = library.catalogue.shots(old), library.catalogue.cues(old)
    assert shots and cues
    nothing_encoded(library, monkeypatch)
    library.indexer.remove(["d", "b"])
    assert ids(library) == ["a", "deep/c"]
    assert {video.video_id for video in library.catalogue.removed()} == {"b", "d"}
    assert library.indexer.restore(["d"]) == ["d"]
    row = library.catalogue.video("d").row
    assert row > 4 and (library.catalogue.shots(row), library.catalogue.cues(row)) == (shots, cues)
    assert library.index(films).restored == ["b"]
    assert [(m.video_id, m.start, round(m.score, 4)) for m in library.search("umbrella")] == before
    assert verify(library.store) == [] and library.catalogue.removed() == []
    library.indexer.remove(["a"])
    compact(library.store)
    with pytest.raises(NotFound, match="not among the removed"):
        library.indexer.restore(["a"])
    assert verify(library.store) == []


def test_an_accent_may_be_a_letter_of_its_own(library: Library, films: Path) -> None:
    """Names from a Mac are; what is typed is not."""
    typed, stored = "caf\u00e9", "cafe\u0301"
    (films / "d.mp4").rename(films / f"{stored}.mp4")
    library.indexer.remove(["d"])
    compact(library.store)
    library.index(films / f"{stored}.mp4")
    assert library.catalogue.video(typed).video_id == stored
    assert library.store.file_of(typed) == films / f"{stored}.mp4"
    video = library.catalogue.video(typed)
    assert Filter(folder=f"*/{typed}.*").rows({video.row: video}) == {video.row}
    below = replace(video, path=f"/{stored}/x.mp4")
    assert Filter(folder=f"/{typed}").rows({video.row: below}) == {video.row}
    assert library.indexer.remove([typed]) == [stored] and library.indexer.restore([typed]) == [stored]


def test_what_cannot_come_back_is_said(library: Library, films: Path) -> None:
    library.indexer.remove(["a"])
    (films / "a.mp4").write_bytes((films / "b.mp4").read_bytes()[:-1])
    library.index(films)
    with pytest.raises(InvalidValue, match="a: a has its id"):
        library.indexer.restore(["a"])


# ---- files that move, and copies ------------------------------------------------------------------


def test_files_that_change_places_are_known_again(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_encoded(library, monkeypatch)
    (films / "a.mp4").rename(films / "x.mp4")
    (films / "b.mp4").rename(films / "a.mp4")
    (films / "deep/c.mp4").rename(films / "b.mp4")
    (films / "x.mp4").rename(films / "deep/c.mp4")
    report = library.index(films)
    assert sorted(report.moved) == ["a", "b", "deep/c"]
    found = {video: str(Path(path).relative_to(films)) for video, path in paths(library).items()}
    assert found == {"a": "deep/c.mp4", "b": "a.mp4", "d": "d.mp4", "deep/c": "b.mp4"}
    assert sorted(library.index(films).unchanged) == ALL


def test_a_video_that_waits_to_be_encoded_again_keeps_its_date_and_may_move(
    library: Library, films: Path
) -> None:
    before = library.catalogue.video("a")
    library.indexer.again(["a"])
    assert 0 < before.mtime_ns - library.catalogue.video("a").mtime_ns < 1000
    (films / "a.mp4").rename(films / "moved.mp4")
    report = library.index(films, prune=True, ocr=False)
    assert (report.updated, report.missing, report.removed) == (["a"], [], [])
    assert library.catalogue.removed() == []
    after = library.catalogue.video("a")
    assert (after.path, after.mtime_ns) == (str(films / "moved.mp4"), before.mtime_ns)


def test_a_thousand_files_that_move_are_not_encoded_again(
    opened: Callable[..., Library], tmp_path: Path, film: Callable[..., Path]
) -> None:
    """Small numbers of the real thing: files of one film that differ in their last bytes."""
    whole = film(tmp_path / "film.mp4", 2).read_bytes()
    (tmp_path / "films").mkdir()
    for number in range(60):
        (tmp_path / "films" / f"{number}.mp4").write_bytes(whole + b"\0\0\0\x0cfree%04d" % number)
    library = opened(encoder="none", sentence_encoder="none")
    library.index(tmp_path / "films")
    for number in range(60):
        place = tmp_path / "films" / str(number % 7) / f"{(number + 1) % 60}.mp4"
        place.parent.mkdir(exist_ok=True)
        (tmp_path / "films" / f"{number}.mp4").rename(place)
    report = library.index(tmp_path / "films")
    assert len(report.moved) == 60 and not (report.added or report.updated or report.missing)


def test_a_file_that_takes_the_place_of_another_keeps_its_features(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_encoded(library, monkeypatch)
    (films / "b.mp4").replace(films / "a.mp4")
    report = library.index(films)
    assert (report.moved, report.removed) == (["b"], ["a"])
    assert paths(library)["b"] == str(films / "a.mp4")


def test_each_path_of_a_copy_is_kept(
    library: Library, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_encoded(library, monkeypatch)
    backup = shutil.copytree(films, tmp_path / "backup")
    report = library.index(films, backup)
    assert sorted(report.copies) == ALL and len(library) == 4
    assert report.copies["a"] == [str(backup / "a.mp4")]
    assert not library.index(films, backup).copies
    (films / "a.mp4").unlink()
    assert library.store.file_of("a") == backup / "a.mp4"
    assert library.index(films).moved == ["a"] and paths(library)["a"] == str(backup / "a.mp4")
    (backup / "b.mp4").unlink()
    library.index(backup)
    assert sorted(copy.path for copy in library.catalogue.copies()) == [
        str(backup / "d.mp4"),
        str(backup / "deep/c.mp4"),
    ]


def test_a_folder_is_forgotten_but_not_what_lies_elsewhere(
    library: Library, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_encoded(library, monkeypatch)
    (backup := tmp_path / "backup").mkdir()
    for name in ("a.mp4", "d.mp4"):
        shutil.copy(films / name, backup / name)
    shutil.copy(films / "b.mp4", films / "b again.mp4")
    library.index(films, backup)
    assert library.indexer.forget_root(films) == ["b", "deep/c"]
    assert paths(library) == {"a": str(backup / "a.mp4"), "d": str(backup / "d.mp4")}
    assert library.catalogue.copies() == []
    report = library.index(backup)
    assert (report.unchanged, report.updated) == (["a"], ["d"])  # whose subtitles were not copied
    assert library.indexer.restore(["b"]) == ["b"]
    assert [copy.path for copy in library.catalogue.copies()] == [str(films / "b again.mp4")]


def test_a_forgotten_folder_leaves_no_further_paths(library: Library, films: Path, tmp_path: Path) -> None:
    backup = shutil.copytree(films, tmp_path / "backup")
    library.index(films, backup)
    assert library.indexer.forget_root(backup) == []
    assert library.catalogue.copies() == [] and ids(library) == ALL


def test_copies_are_equal_in_every_byte(library: Library, films: Path, tmp_path: Path) -> None:
    """The hash reads four pieces: files that differ elsewhere are no copies."""
    for name, byte in (("one", b"\1"), ("two", b"\2")):
        content = (films / "a.mp4").read_bytes() + (2**23 - 8).to_bytes(4, "big") + b"free"
        content = content.ljust(2**22, b"\0") + byte
        (films / f"{name}.mp4").write_bytes(content.ljust(2**23, b"\0"))
    report = library.index(films)
    assert sorted(report.added) == ["one", "two"] and not report.copies


def test_two_new_copies_are_encoded_once(
    library: Library, films: Path, film: Callable[..., Path], tmp_path: Path
) -> None:
    film(films / "new.mp4", 3, seed=9)
    shutil.copy(films / "new.mp4", films / "newer.mp4")
    report = library.index(films)
    assert (report.added, report.copies) == (["new"], {"new": [str(films / "newer.mp4")]})
    (films / "new.mp4").write_bytes((films / "a.mp4").read_bytes())
    report = library.index(films)
    assert (report.moved, report.copies) == (["new"], {"a": [str(films / "new.mp4")]})


def test_a_copy_of_some_of_what_is_away_keeps_both_paths(
    library: Library, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be seen now is no copy: who deletes the other one would have none."""
    library.index(films)
    shutil.copytree(films, tmp_path / "backup", ignore=shutil.ignore_patterns("b.mp4"))
    films.rename(tmp_path / "unplugged")
    nothing_encoded(library, monkeypatch)
    report = library.index(tmp_path / "backup")
    some = sorted({*ALL} - {"b"})
    assert (sorted(report.moved), report.forgotten) == (some, [])
    assert library.store.file_of("a") == tmp_path / "backup" / "a.mp4"
    assert exact_copies(library.store) == []
    (tmp_path / "unplugged").rename(films)
    assert {one.video_ids[0] for one in exact_copies(library.store)} == {*some}
    shutil.rmtree(tmp_path / "backup")
    assert library.store.file_of("a") == films / "a.mp4" and exact_copies(library.store) == []
    report = library.index(films)
    assert (sorted(report.moved), report.forgotten) == (some, [str(tmp_path / "backup")])


def test_a_folder_whose_files_are_all_elsewhere_is_forgotten(
    library: Library, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one call and by several, with further paths in it; its former paths are no copies."""
    shutil.copy(films / "a.mp4", films / "a again.mp4")
    library.index(films)
    nothing_encoded(library, monkeypatch)
    (tmp_path / "one").mkdir()
    (films / "a.mp4").rename(tmp_path / "one" / "a.mp4")
    films.rename(tmp_path / "rest")
    report = library.index(tmp_path / "one")
    assert (report.moved, report.forgotten) == (["a"], [])
    report = library.index(tmp_path / "rest")
    assert (report.forgotten, report.away) == ([str(films)], [])
    assert [root.path for root in library.catalogue.roots()] == [
        str(tmp_path / "one"),
        str(tmp_path / "rest"),
    ]
    (copies,) = exact_copies(library.store)
    assert copies.paths == (str(tmp_path / "one" / "a.mp4"), str(tmp_path / "rest" / "a again.mp4"))
    assert copies.away == () and copies.wasted == copies.size
    os.link(tmp_path / "one" / "a.mp4", tmp_path / "one" / "link.mp4")
    library.index(tmp_path / "one")
    assert exact_copies(library.store) == [copies]
    (tmp_path / "one" / "a.mp4").unlink()
    (copies,) = exact_copies(library.store)
    assert copies.away == (str(tmp_path / "one" / "a.mp4"),) and len(copies.paths) == 2


def test_other_subtitles_leave_a_videos_copies_alone(library: Library, films: Path) -> None:
    shutil.copy(films / "d.mp4", films / "e.mp4")
    library.index(films)
    (films / "d.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nAnother line.\n")
    assert library.index(films).updated == ["d"]
    assert [copy.path for copy in library.catalogue.copies()] == [str(films / "e.mp4")]


# ---- another folder -------------------------------------------------------------------------------


def test_a_library_follows_its_folder(
    library: Library, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.index(films)
    shutil.copy(films / "a.mp4", films / "a again.mp4")
    library.index(films)
    nothing_encoded(library, monkeypatch)
    films.rename(there := tmp_path / "archive")
    with pytest.raises(NotFound, match="none of the 5 files"):
        library.indexer.move(films, tmp_path / "elsewhere")
    with pytest.raises(NotFound, match="no video there"):
        library.indexer.move(tmp_path / "elsewhere", there)
    assert library.indexer.move(films, there) == 5
    report = library.index(there)
    assert sorted(report.unchanged) == ALL and not report.copies
    assert [root.path for root in library.catalogue.roots()] == [str(there)]
    inner = there / "inner"
    inner.mkdir()
    for path in [path for path in there.iterdir() if path != inner]:
        path.rename(inner / path.name)
    assert library.indexer.move(there, inner) == 5
    assert sorted(library.index(inner).unchanged) == ALL and verify(library.store) == []


def test_a_folder_is_merged_into_another_one_of_the_library(
    library: Library, films: Path, tmp_path: Path
) -> None:
    (other := tmp_path / "other").mkdir()
    (films / "b.mp4").rename(other / "b.mp4")
    library.index(films, exclude=["old*"])
    library.index(other, exclude=["new*"])
    for path in list(films.iterdir()):
        path.rename(other / path.name)
    assert library.indexer.move(films, other) == 3
    assert [(root.path, root.patterns) for root in library.catalogue.roots()] == [(str(other), ("new*",))]
    assert sorted(library.index(other).unchanged) == ALL


@pytest.mark.parametrize("order", [("films", "other"), ("other", "films")], ids=" before ".join)
def test_a_folder_is_moved_to_where_its_copies_are_known(
    library: Library, films: Path, order: tuple[str, str]
) -> None:
    shutil.copytree(films, other := films.with_name("other"))
    library.index(films, other)
    old, new = map(films.with_name, order)
    shutil.rmtree(old)
    library.indexer.move(old, new)
    assert set(paths(library).values()) == {str(path) for path in new.rglob("*.mp4")}
    assert library.catalogue.copies() == []
    assert sorted(library.index(new).unchanged) == ALL and verify(library.store) == []


def test_removed_videos_follow_their_folder(library: Library, films: Path, tmp_path: Path) -> None:
    shutil.copy(films / "a.mp4", films / "a again.mp4")
    library.index(films)
    library.indexer.remove(["a"])
    films.rename(there := tmp_path / "archive")
    library.indexer.move(films, there)
    library.indexer.restore(["a"])
    video = library.catalogue.video("a")
    further = [copy.path for copy in library.catalogue.copies_of(video.row)]
    assert sorted([video.path, *further]) == [str(there / "a again.mp4"), str(there / "a.mp4")]


def test_what_comes_back_leaves_others_their_copies(library: Library, films: Path) -> None:
    shutil.copy(films / "a.mp4", again := films / "again.mp4")
    library.index(films)
    library.indexer.remove(["a"])
    (films / "a.mp4").unlink()
    shutil.copy(films / "b.mp4", again)
    library.index(films)
    assert library.indexer.restore(["a"]) == ["a"]
    copies = {copy.path: copy.video for copy in library.catalogue.copies()}
    assert copies == {str(again): library.catalogue.video("b").row}


@pytest.mark.parametrize("other", [None, "b.mp4"], ids=["its own path", "another film's path"])
def test_what_comes_back_elsewhere_has_no_path_twice(
    library: Library, films: Path, other: str | None
) -> None:
    """It comes back at its further path, or finds another film there, as a known one or a new one."""
    shutil.copy(films / "a.mp4", again := films / "again.mp4")
    library.index(films)
    library.indexer.remove(["a"])
    if other:
        (films / other).rename(again)
    else:
        (films / "a.mp4").unlink()
    assert library.index(films).restored == ["a"]
    assert library.catalogue.copies() == []
    assert paths(library)["a" if other is None else "b"] == str(again)


def test_a_new_film_takes_the_further_path_of_one_that_comes_back(
    library: Library, films: Path, film: Callable[..., Path]
) -> None:
    shutil.copy(films / "a.mp4", again := films / "again.mp4")
    library.index(films)
    library.indexer.remove(["a"])
    film(again, 5, seed=9)
    report = library.index(films)
    assert (report.restored, report.added) == (["a"], ["again"])
    assert library.catalogue.copies() == []


# ---- what is left out -----------------------------------------------------------------------------


def test_junk_is_left_out(library: Library, films: Path) -> None:
    for number, name in enumerate((
        "@eaDir/p.mp4", ".Trash-1000/p.mp4", "$RECYCLE.BIN/p.mp4", "lost+found/p.mp4",
        "x/node_modules/y/p.mp4", "a.trickplay/p.mp4", "#recycle/p.mp4", "private/p.mp4",
        "private/deep/p.mp4", "._a.mp4",
    )):  # fmt: skip
        path = films / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((films / "a.mp4").read_bytes() + b"\0\0\0\x09free%d" % number)
    (films / "private" / ".nomedia").touch()
    report = library.index(films)
    assert sorted(report.unchanged) == ALL and not report.added
    assert {str(films / "@eaDir"), str(films / "private")} <= set(report.excluded)
    assert len(library.index(films, default_excludes=False).added) == 10
    assert library.catalogue.roots()[0].defaults is False


def test_a_folder_takes_the_name_of_a_file(library: Library, films: Path) -> None:
    """As programs do that put each film into a folder of its own."""
    (films / "b.mp4").rename(films / "film")
    (films / "b.mp4").mkdir()
    (films / "film").rename(films / "b.mp4" / "b.mp4")
    (films / "a.mp4").unlink()
    (films / "a.mp4").mkdir()
    report = library.index(films)
    assert (report.moved, report.copies, report.missing) == (["b"], {}, ["a"])
    assert paths(library)["b"] == str(films / "b.mp4" / "b.mp4")


@pytest.mark.parametrize("known", [True, False], ids=["a known copy", "a new copy"])
@pytest.mark.parametrize("place", ["films", "other"])
def test_a_video_that_is_left_out_stays_by_a_copy(
    library: Library, films: Path, place: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_encoded(library, monkeypatch)
    other = films.with_name("other")
    other.mkdir()
    shutil.copy(films / "b.mp4", copy := films.with_name(place) / "again.mp4")
    if known:
        library.index(films, other)
    report = library.index(films, other, exclude=["/b.mp4"], prune=True)
    assert (report.moved, report.removed, report.left_out) == (["b"], [], [])
    assert paths(library)["b"] == str(copy) and library.catalogue.copies() == []
    assert sorted(library.index(films, other).unchanged) == ALL


def test_a_video_that_is_left_out_stays_by_a_copy_elsewhere(library: Library, films: Path) -> None:
    (other := films.with_name("other")).mkdir()
    shutil.copy(films / "b.mp4", copy := other / "again.mp4")
    library.index(other)
    report = library.index(films, exclude=["/b.mp4"], prune=True)
    assert (report.moved, report.removed) == (["b"], [])
    assert paths(library)["b"] == str(copy)


def test_what_a_library_holds_is_left_out(library: Library, films: Path) -> None:
    inside = library.folder / "cache" / "converted" / "1.mp4"
    inside.parent.mkdir(parents=True)
    shutil.copy(films / "a.mp4", inside)
    for defaults in (True, False):
        report = library.index(films.parent, default_excludes=defaults)
        assert sorted(report.unchanged) == ALL and not report.copies
        assert report.excluded == [str(library.folder)]
    for source in (library.folder, inside.parent, inside):
        with pytest.raises(
            InvalidValue, match=r"in the folder of the library .*name the folder of the videos"
        ):
            library.index(films, source)


def test_no_path_is_not_the_current_folder(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(films)
    with pytest.raises(InvalidValue, match=r"source '': name a video file or a folder"):
        library.index("")


def test_links_to_folders_are_left_out_and_named(library: Library, films: Path, tmp_path: Path) -> None:
    (other := tmp_path / "linked").mkdir()
    shutil.copy(films / "a.mp4", other / "copy.mp4")
    (films / "link").symlink_to(other)
    report = library.index(films)
    assert not report.added and not report.copies and report.excluded == [str(films / "link")]


def test_patterns_are_kept_for_a_folder_and_written_in_it(library: Library, films: Path) -> None:
    report = library.index(films, exclude=["deep/", "b.*"])
    assert sorted(report.left_out) == ["b", "deep/c"] and report.missing == []
    assert sorted(library.index(films).left_out) == ["b", "deep/c"]
    assert sorted(library.index(films, exclude=[]).unchanged) == ALL
    (films / ".moviolaignore").write_text("*.mp4\n!b.mp4\n")
    (films / "deep" / ".moviolaignore").write_text("!c.mp4\n")
    assert sorted(library.index(films).left_out) == ["a", "d"]
    report = library.index(films, prune=True, confirm=lambda *_: True)
    assert report.removed == ["a", "d"] and ids(library) == ["b", "deep/c"]
    with pytest.raises(InvalidValue, match=r"exclude.*\.gitignore"):
        library.index(films, exclude=["!"])
    with pytest.raises(InvalidValue, match=r"exclude '\*\.mp4': a single text; give a list"):
        library.index(films, exclude="*.mp4", prune=True)


def test_files_that_are_being_written_wait(library: Library, films: Path, film: Callable[..., Path]) -> None:
    film(films / "growing.mp4", 3, seed=5)
    report = library.index(films, settled=lambda path, status: status.st_size < 0)
    assert report.waiting == [str(films / "growing.mp4")] and not report.added
    assert library.index(films).added == ["growing"]


# ---- small stills -----------------------------------------------------------------------------------


def test_small_stills_stand_in_for_what_is_away(library: Library, films: Path, tmp_path: Path) -> None:
    """One of each segment, like the frame that it was made of; kept with the content until compaction."""
    content = library.catalogue.video("a").hash
    assert library.store.kept_still("a", 0.0) == library.store.kept_still("a", 0.9)
    times = [
        time
        for (time,) in library.store.stills._rows("SELECT time FROM stills WHERE content = ?", (content,))
    ]
    assert times == [0.0, 2.0, 6.0]  # of 9 s
    for time in times:
        data = library.store.kept_still("a", time)
        assert data is not None and len(data) < 3000
        small, frame = read_small_still(data, 160), frame_at(films / "a.mp4", time, 160)
        assert small.shape == frame.shape
        assert np.abs(small.astype(float) - frame).mean() < 8
    found = library.search("a wall", top_k=1)
    films.rename(tmp_path / "unplugged")
    sources = library.store.paths_of([found[0].video_id])[0]
    _, failed = moment_cells(found, sources, (), library.store.kept_still)
    assert failed == {} and moment_cells(found, sources)[1]
    library.indexer.remove(["a"])
    assert library.store.stills.nearest(content, 0.0) is not None
    compact(library.store)
    assert library.store.stills.nearest(content, 0.0) is None
    assert library.store.kept_still("b", 1.0) is not None


def test_the_nearest_still_is_found_without_looking_at_all(tmp_path: Path) -> None:
    stills = StillStore(tmp_path)
    stills.put("film", [(4.0 * number, str(number).encode()) for number in range(2000)], None)
    stills.put("other", [(7.0, b"other")], None)
    nearest = {-1.0: b"0", 5.9: b"1", 6.0: b"1", 6.1: b"2", 8.0: b"2", 1e6: b"1999"}
    assert {time: stills.nearest("film", time) for time in nearest} == nearest
    steps: list[int] = []
    stills._db.set_progress_handler(lambda: steps.append(1), 100)
    assert stills.nearest("film", 4000.0) == b"1000" and stills.nearest("none", 1.0) is None
    assert len(steps) < 10


def test_no_stills_where_none_are_wanted(
    opened: Callable[..., Library], film: Callable[..., Path], tmp_path: Path
) -> None:
    film(tmp_path / "films" / "a.mp4", 3)
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(tmp_path / "films", stills=False)
    assert library.store.kept_still("a", 0.0) is None
    with closing(sqlite3.connect(library.folder / "stills.sqlite")) as db:  # fingerprints lie there, too
        assert db.execute("SELECT count(*) FROM stills").fetchone() == (0,)


def test_a_library_whose_drive_goes_away_takes_no_half_of_a_video(
    library: Library, films: Path, film: Callable[..., Path]
) -> None:
    known = [video.video_id for video in library.videos()]
    film(films / "new.mp4", 3, seed=21)
    away = library.folder.with_name("away")

    def unplug(progress: IngestProgress) -> None:
        if progress.seconds and library.folder.is_dir():
            library.folder.rename(away)

    with pytest.raises(LibraryError, match="was its drive unplugged"):
        library.index(films, progress=unplug)
    library.close()
    assert not library.folder.exists()
    away.rename(library.folder)
    with Library(library.folder) as again:
        assert [video.video_id for video in again.videos()] == known and verify(again.store) == []
        assert again.index(films).added == ["new"]


def test_a_video_renamed_with_its_subtitles_is_not_read_again(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = next(films.glob("*.mp4"))
    path.with_name(f"{path.stem}.en.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nred doors\n")
    library.index(films)
    before = [cue.text for cue in library.catalogue.cues(library.catalogue.video(path.stem).row)]
    assert before == ["red doors"]
    path.with_name(f"{path.stem}.en.srt").rename(films / "other.en.srt")
    path.rename(films / "other.mp4")
    with monkeypatch.context() as patched:
        patched.setattr("moviola.library.ingest.frame_features.read_cues", None)
        assert library.index(films).moved == [path.stem]
    video = library.catalogue.video(path.stem)
    assert video.path == str(films / "other.mp4") and video.sidecars.startswith("other.en.srt")
    assert [cue.text for cue in library.catalogue.cues(video.row)] == before
    assert path.stem in library.index(films).unchanged
    # Other subtitles are read, also where the video is renamed at the same time.
    (films / "other.en.srt").unlink()
    (films / "again.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\ngreen doors\n")
    (films / "other.mp4").rename(films / "again.mp4")
    library.index(films)
    video = library.catalogue.video(path.stem)
    assert [cue.text for cue in library.catalogue.cues(video.row)] == ["green doors"]
