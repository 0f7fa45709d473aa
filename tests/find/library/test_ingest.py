"""Indexing: what goes in, what is passed over, what is refused, and that nothing else suffers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from late_pictures import late_pictures
from made_films import Pictures, make_film
from moviola.errors import InvalidValue, LibraryError, LibraryLocked, NotFound
from moviola.library import verify
from moviola.library.disk.lock import writing
from moviola.search import Library


def test_everything_below_a_folder_goes_in(library: Library) -> None:
    assert [video.video_id for video in library.videos()] == ["a", "b", "d", "deep/c"]
    assert [round(video.duration) for video in library.videos()] == [9, 10, 12, 11]
    assert verify(library.store) == []


def test_what_has_not_changed_is_passed_over(library: Library, films: Path) -> None:
    before = {v.video_id: v.row for v in library.catalogue.videos()}
    report = library.index(films)
    assert sorted(report.unchanged) == ["a", "b", "d", "deep/c"]
    assert not report.added and not report.updated
    assert {v.video_id: v.row for v in library.catalogue.videos()} == before


def test_new_changed_and_touched_files(library: Library, films: Path, film: Callable[..., Path]) -> None:
    film(films / "new.mp4", 5, seed=9)
    film(films / "a.mp4", 14, seed=10)
    os.utime(films / "b.mp4", (1, 1))
    features = library.store.frame_features.read(library.catalogue.video("b").frames).copy()
    report = library.index(films)
    assert report.added == ["new"]
    assert report.updated == ["a"]
    assert report.moved == ["b"]
    assert round(library.catalogue.video("a").duration) == 14
    np.testing.assert_array_equal(
        library.store.frame_features.read(library.catalogue.video("b").frames), features
    )
    assert verify(library.store) == []


def test_a_moved_file_keeps_its_id_and_features(library: Library, films: Path) -> None:
    row = library.catalogue.video("b").row
    (films / "elsewhere").mkdir()
    (films / "b.mp4").rename(films / "elsewhere" / "renamed.mp4")
    report = library.index(films)
    assert report.moved == ["b"]
    assert not report.added and not report.missing
    video = library.catalogue.video("b")
    assert (video.row, Path(video.path).name) == (row, "renamed.mp4")


def test_a_copy_is_the_same_video_at_a_further_path(library: Library, films: Path) -> None:
    shutil.copy(films / "b.mp4", films / "copy.mp4")
    report = library.index(films)
    assert (report.added, report.copies) == ([], {"b": [str(films / "copy.mp4")]})


def test_missing_files_stay_until_pruned(library: Library, films: Path) -> None:
    (films / "a.mp4").unlink()
    assert library.index(films).missing == ["a"]
    assert len(library) == 4
    assert library.index(films, prune=True).removed == ["a"]
    assert len(library) == 3
    assert verify(library.store) == []


def test_removed_videos_are_not_found_any_more(library: Library) -> None:
    assert any(m.video_id == "b" for m in library.search("anything", top_k=100))
    assert library.indexer.remove(["b"]) == ["b"]
    assert not any(m.video_id == "b" for m in library.search("anything", top_k=100))
    assert verify(library.store) == []


def test_an_id_by_itself_is_not_taken_for_its_letters(library: Library) -> None:
    """``ab`` would be the videos a and b."""
    for change in (library.indexer.remove, library.indexer.restore, library.indexer.again):
        with pytest.raises(InvalidValue, match="'ab': a single text"):
            change("ab")
    assert {"a", "b"} <= {video.video_id for video in library.videos()}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prune": "yes"}, "prune 'yes': give True or False"),
        ({"stills": 3}, "stills 3: give True or False"),
        ({"every_frame": None}, "every_frame None: give True or False"),
        ({"ocr": "x"}, "ocr 'x': give True, False or None"),
        ({"ocr": 3}, "ocr 3: give True, False or None"),
        ({"default_excludes": "no"}, "default_excludes 'no': give True, False or None"),
        ({"progress": 3}, "progress 3: give a function, or None"),
    ],
)
def test_arguments_of_another_type_are_refused(
    library: Library, films: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidValue, match=f"^{said}$"):
        library.index(films, **given)


def test_folders_of_another_type_are_refused(library: Library, films: Path) -> None:
    odd: Any = 3
    with pytest.raises(InvalidValue, match="old 3: give the path of a folder"):
        library.indexer.move(odd, films)
    with pytest.raises(InvalidValue, match="new 3: give the path of a folder"):
        library.indexer.move(films, odd)
    with pytest.raises(InvalidValue, match="root 3: give the path of a folder"):
        library.indexer.forget_root(odd)


def test_a_renamed_video_is_known_by_its_id_and_by_every_name_of_its_files(
    library: Library, films: Path
) -> None:
    """Who renames a file knows the new name alone; a name that two videos have names neither."""
    (films / "sub").mkdir()
    (films / "a.mp4").rename(films / "Été.2019.mp4")
    shutil.copy(films / "b.mp4", films / "sub" / "Copy of b.mp4")
    library.index(films)
    names = ["a", "Été.2019", "E\u0301te\u0301.2019.mp4", str(films / "Été.2019.mp4")]
    assert {library.catalogue.video(name).video_id for name in names} == {"a"}
    assert library.catalogue.video("sub/Copy of b").video_id == "b"
    for unknown in ("", "/", "..", ".", "mp4", "by of b.mp4"):
        with pytest.raises(NotFound):
            library.catalogue.video(unknown)
    shutil.copytree(films, films.parent / "other")
    for film in (films.parent / "other").rglob("*.mp4"):
        film.write_bytes(film.read_bytes() + b"\0" * 8)
    library.index(films.parent / "other")
    with pytest.raises(NotFound, match=r"Été.2019.mp4: 2 videos are called so; name one: a, "):
        library.catalogue.video("Été.2019.mp4")


def test_removing_is_all_or_nothing(library: Library) -> None:
    with pytest.raises(NotFound, match=r"deep/d: .*did you mean"):
        library.indexer.remove(["a", "deep/d"])
    assert len(library) == 4


def test_bad_files_are_refused_with_a_reason_and_stop_nobody(
    films: Path, opened: Callable[..., Library], film: Callable[..., Path]
) -> None:
    (films / "empty.mp4").write_bytes(b"")
    (films / "words.mkv").write_text("not a film at all")
    whole = (films / "b.mp4").read_bytes()
    (films / "torn.mp4").write_bytes(whole[: len(whole) // 2])
    library = opened(encoder="demo", sentence_encoder="none")
    report = library.index(films)
    assert set(report.refused) == {"empty", "words", "torn"}
    assert all(reason.endswith("skipped") for reason in report.refused.values())
    assert len(library) == 4
    film(films / "empty.mp4", 4, seed=20)
    assert library.index(films).updated == ["empty"]
    assert verify(library.store) == []


def test_other_files_are_reported_and_a_named_one_is_tried(library: Library, films: Path) -> None:
    (films / "song.mp3").write_bytes(b"ID3 la la la")
    (films / ".hidden").write_text("x")
    (films / "a.mp4").rename(films / "a.film")
    report = library.index(films, films / "a.film")
    assert [Path(path).name for path in report.ignored] == ["a.film", "song.mp3"]
    assert report.moved == ["a"]


def test_names_that_collide_get_longer_ids(
    tmp_path: Path, opened: Callable[..., Library], film: Callable[..., Path]
) -> None:
    first, second = film(tmp_path / "x" / "one.mp4", 4, 1), film(tmp_path / "y" / "one.mp4", 4, 2)
    third = film(tmp_path / "x" / "one.mkv", 4, 3)
    library = opened(encoder="demo", sentence_encoder="none")
    for source in (first, second, third):
        library.index(source)
    ids = {Path(v.path): v.video_id for v in library.catalogue.videos()}
    assert ids[first.resolve()] == "one"
    assert len(set(ids.values())) == 3


def test_films_of_camcorders_count_as_videos(tmp_path: Path, opened: Callable[..., Library]) -> None:
    """Those of tape and hard disk, older names of the same formats, in small letters or large ones."""
    written = {"MOV001.MOD": "mpeg", "MOV002.TOD": "mpegts", "old.qt": "mov", "tape.m2t": "mpegts",
               "3d.mk3d": "matroska"}  # fmt: skip
    codec = "mpeg2video"
    for number, (name, format) in enumerate(written.items(), 1):
        make_film(tmp_path / "in" / name, Pictures(number + 1.0, codec=codec, options={}), format=format)
    library = opened(encoder="demo", sentence_encoder="none")
    report = library.index(tmp_path / "in")
    assert (len(report.added), report.refused, report.ignored) == (len(written), {}, [])


def test_files_by_another_suffix_count_as_videos_where_it_is_given(library: Library, films: Path) -> None:
    """And are followed in later runs, in which new ones of the same suffix come in, too."""
    (films / "b.mp4").rename(films / "b.DAT")
    shutil.copy(films / "a.mp4", films / "notes.bin")
    report = library.index(films)
    assert (report.moved, sorted(Path(path).name for path in report.ignored)) == ([], ["b.DAT", "notes.bin"])
    assert library.index(films, suffixes=["dat"]).moved == ["b"]
    late_pictures(films / "d.mp4", films / "late.mp4", 2)
    (films / "late.mp4").rename(films / "late.dat")
    report = library.index(films)
    assert (report.added, [Path(path).name for path in report.ignored]) == (["late"], ["notes.bin"])
    (films / "late.dat").unlink()
    assert library.index(films).missing == ["late"]
    for wrong, said in (("", "give one such as .dat"), ("a/b", "give one"), (".srt", "read as subtitles")):
        with pytest.raises(InvalidValue, match=said):
            library.index(films, suffixes=[wrong])


def test_subtitles_that_change_are_read_again_without_decoding(library: Library, films: Path) -> None:
    before = library.catalogue.video("d")
    assert next(cue.text for cue in library.catalogue.cues(before.row)).startswith("The lighthouse")
    (films / "d.srt").write_text("1\n00:00:02,000 --> 00:00:04,000\nA zebra sings.\n")
    (films / "a.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nA walrus hums.\n")
    assert sorted(library.index(films).updated) == ["a", "d"]
    after = library.catalogue.video("d")
    assert after.frames == before.frames
    assert [cue.text for cue in library.catalogue.cues(after.row)] == ["A zebra sings."]
    assert library.search("walrus", by="subtitles")[0].video_id == "a"
    assert verify(library.store) == []


def test_subtitles_count_from_the_beginning_of_the_file(library: Library, films: Path) -> None:
    """Pictures from the first of them."""
    late_pictures(films / "d.mp4", films / "late.mp4", 2)
    times = (
        "00:00:00,500 --> 00:00:02,000",
        "00:00:01,000 --> 00:00:03,000",
        "00:00:06,000 --> 00:00:08,000",
    )
    (films / "late.srt").write_text("\n".join(f"{n}\n{one}\nline {n}\n" for n, one in enumerate(times, 1)))
    library.index(films)
    cues = library.catalogue.cues(library.catalogue.video("late").row)
    assert [(cue.text, cue.start, cue.end) for cue in cues] == [("line 2", 0, 1), ("line 3", 4, 6)]


def test_one_writer_at_a_time_while_readers_read(library: Library, films: Path) -> None:
    with writing(library.folder):
        with pytest.raises(LibraryLocked, match=f"process {os.getpid()} is writing"):
            library.index(films)
        assert library.search("anything")


def test_a_read_only_library_is_not_written(library: Library, films: Path) -> None:
    with Library(library.folder, read_only=True) as reader:
        assert len(reader) == 4
        with pytest.raises(InvalidValue, match="read-only"):
            reader.index(films)
        with pytest.raises(InvalidValue, match="read-only"):
            reader.indexer.remove(["a"])


def test_a_reader_sees_what_a_writer_commits(
    library: Library, films: Path, film: Callable[..., Path]
) -> None:
    with Library(library.folder, read_only=True) as reader:
        assert len({m.video_id for m in reader.search("anything", top_k=100)}) == 4
        film(films / "late.mp4", 6, seed=30)
        library.index(films)
        library.indexer.remove(["a"])
        assert {m.video_id for m in reader.search("anything", top_k=100)} == {"b", "d", "deep/c", "late"}


def test_nothing_to_index_is_said(library: Library, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="nothing to index"):
        library.index()
    with pytest.raises(NotFound, match="no such file or folder"):
        library.index(tmp_path / "nowhere")
    with pytest.raises(InvalidValue, match=r"index\(\*paths\)"):
        library.index([tmp_path, tmp_path])  # type: ignore[arg-type]


def test_without_a_visual_encoder_subtitles_are_searched(films: Path, opened: Callable[..., Library]) -> None:
    library = opened(encoder="none", sentence_encoder="none")
    library.index(films)
    (moment,) = library.search("lighthouse umbrella")
    assert (moment.video_id, moment.source) == ("d", "subtitle")
    with pytest.raises(LibraryError, match="without a visual encoder"):
        library.search("lighthouse", by="visual")
    assert verify(library.store) == []
