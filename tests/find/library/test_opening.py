"""Opening: creation, refusal of other encoders and formats, damage that is noticed and put right."""

from __future__ import annotations

import errno
import gc
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distinct import film_like
from moviola.encoders import best_encoder
from moviola.encoders.checkpoints import DEMO_FOLDER
from moviola.encoders.sentence_models import MINILM_FOLDER
from moviola.errors import (
    DamagedSettings,
    EncoderMismatch,
    InvalidValue,
    LibraryError,
    LibraryLocked,
    MissingModel,
    NotFound,
    SegmentIndexError,
)
from moviola.features import FeatureShards
from moviola.index import BACKENDS, load_index
from moviola.library import Catalogue, compact, repair, verify
from moviola.library.derived.indexes import piece_vectors
from moviola.library.disk import store
from moviola.search import Library
from written_settings import in_format, resealed


def test_public_names_of_a_library(library: Library) -> None:
    """What changes a library or keeps something is asked of a part, and is no name of the library's own."""
    assert [name for name in dir(library) if not name.startswith("_")] == [
        "catalogue", "checker", "close", "complete", "concepts", "curve", "examples", "facets", "folder",
        "index", "indexer", "ordered", "recordings", "refiner", "saved", "search", "search_many", "settings",
        "store", "userdata", "videos",
    ]  # fmt: skip
    assert library.index == library.indexer.index


@pytest.mark.parametrize("opened", [{"read_only": True}, {"create": False}])
def test_no_library_where_one_must_be(tmp_path: Path, opened: dict[str, bool]) -> None:
    with pytest.raises(NotFound, match="no library there"):
        Library(tmp_path / "nowhere", **opened)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("folder", "encoder", "error", "said"),
    [
        ("file/lib", "none", LibraryError, "file/lib: no library can be made there"),
        ("a\0b", "none", InvalidValue, "NUL; name another folder"),
        ("lib", 3, InvalidValue, "encoder 3: give the name of an encoder"),
    ],
)
def test_a_place_or_an_encoder_that_cannot_be_is_refused_in_words(
    tmp_path: Path, folder: str, encoder: Any, error: type[Exception], said: str
) -> None:
    """Not by the system's error, nor by one about a model of that name."""
    (tmp_path / "file").touch()
    with pytest.raises(error, match=said):
        Library(f"{tmp_path}/{folder}", encoder=encoder)


def test_a_source_with_nul_is_refused_in_words(library: Library) -> None:
    with pytest.raises(InvalidValue, match=r"source .a.x00b.: no path has the character NUL"):
        library.index("a\0b")


def test_a_new_library_has_the_encoder_that_the_command_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Python one had to be named, and the one that examples named knows generated films alone."""
    with Library(tmp_path / "new") as library:
        assert library.settings.encoder == best_encoder().name != "demo"
    monkeypatch.setattr("moviola.search.library.best_encoder", lambda: pytest.fail("it has one"))
    with Library(tmp_path / "new") as again:
        assert again.settings.encoder == library.settings.encoder


def test_the_command_that_makes_a_library_can_be_pasted(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=rf"--library '{re.escape(str(tmp_path))}/my lib'` makes"):
        Library(tmp_path / "my lib", read_only=True)


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")
    with pytest.raises(NotFound, match=r"not a moviola library .*; name .* of a library, or an empty one"):
        Library(tmp_path)
    with pytest.raises(NotFound, match=r"not a moviola library .*; name the folder of a library$"):
        Library(tmp_path, encoder="demo", read_only=True)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_two_processes_that_create_a_library_do_not_mix_their_settings(
    tmp_path: Path, opened: Callable[..., Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = store.settings_of_new_library

    def slower(*given: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(store, "settings_of_new_library", made)
            opened(encoder="demo", sentence_encoder="none", segment_seconds=2.0)
        return made(*given)

    monkeypatch.setattr(store, "settings_of_new_library", slower)
    with pytest.raises(EncoderMismatch, match="segment seconds"):
        opened(encoder="demo", sentence_encoder="none", segment_seconds=4.0)
    assert Library(tmp_path / "library", read_only=True).settings.segment_seconds == 2.0


def test_an_encoder_that_is_named_is_opened_once(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[..., Library]
) -> None:
    from moviola import encoders

    load, names = encoders.load_encoder, []

    def counted(name: str, **options: Any) -> Any:
        names.append(name)
        return load(name, **options)

    monkeypatch.setattr(encoders, "load_encoder", counted)
    assert opened(encoder="demo").search("anything")
    assert names == ["demo"]


def test_another_encoder_is_refused_with_both_named(library: Library) -> None:
    with pytest.raises(EncoderMismatch, match=r"'.*demo.*', opened with ''"):
        Library(library.folder, encoder="none")


def test_the_precision_it_was_begun_with_is_recorded_and_binds_nobody(tmp_path: Path) -> None:
    with Library(tmp_path / "own", encoder="demo", sentence_encoder="none") as own:
        assert own.settings.encoder_precision == "fp32"
    with Library(tmp_path / "half", encoder="demo", sentence_encoder="none", precision="bf16") as half:
        assert half.settings.encoder_precision == "bf16"
    with Library(tmp_path / "half", precision="fp32") as opened:
        assert opened.store.encoders.visual is not None
        assert opened.settings.encoder_precision == "bf16"
    in_format(tmp_path / "own", 3, encoder_precision=None)
    with Library(tmp_path / "own", read_only=True) as older:
        assert older.settings.encoder_precision == ""


def test_an_encoder_that_is_missing_is_named_with_the_library(library: Library) -> None:
    resealed(library.folder, encoder=library.settings.encoder.replace("demo", "deeo"))
    both = rf"{re.escape(str(library.folder))}: .*deeo"
    with Library(library.folder, read_only=True) as renamed, pytest.raises(MissingModel, match=both):
        renamed.search("a red square")


def test_another_segment_length_is_refused_with_both_named(library: Library) -> None:
    with pytest.raises(EncoderMismatch, match=r"segment seconds 4\.0, opened with 8\.0"):
        Library(library.folder, segment_seconds=8)
    with Library(library.folder, segment_seconds=4, frame_rate=1) as reopened:
        assert len(reopened) == 4


def test_segments_and_frames_can_be_chosen(films: Path, opened: Callable[..., Library]) -> None:
    library = opened(encoder="demo", sentence_encoder="none", segment_seconds=2, frame_rate=2)
    library.index(films / "a.mp4")
    video = library.catalogue.video("a")
    assert video.frames is not None and video.frames.count == 18
    assert len(piece_vectors(library.store, "segments", video)) == 5
    assert all(m.end <= video.duration for m in library.search("anything"))


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan"), 1e300])
def test_impossible_frame_rates_are_refused(tmp_path: Path, rate: float) -> None:
    with pytest.raises(InvalidValue, match="frame_rate"):
        Library(tmp_path / "library", encoder="demo", frame_rate=rate)
    assert not (tmp_path / "library").exists()


@pytest.mark.parametrize("name", ["segment_seconds", "frame_rate"])
@pytest.mark.parametrize("value", ["x", "4", True, [], 10**400])
def test_values_that_are_no_numbers_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=f"{name} .*: give a number"):
        Library(tmp_path / "library", encoder="demo", **{name: value})
    assert not (tmp_path / "library").exists()


def mapped(folder: Path) -> list[str]:
    """Names of the files of a folder that this process maps."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sorted({Path(line.split(maxsplit=5)[5]).name for line in lines if str(folder) in line})


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux lists the maps of a process")
def test_a_closed_library_has_no_file_open(library: Library) -> None:
    library.close()
    gc.collect()
    gc.disable()  # closing is to need none
    try:
        with Library(library.folder) as opened:
            assert opened.search("an umbrella")
            opened.curve("an umbrella", "a")
            rows = opened.store.frame_features.read(opened.catalogue.video("a").frames)  # type: ignore[arg-type]
            before = rows.copy()
            assert "frames-00000.f16" in mapped(library.folder)
        assert mapped(library.folder) == ["frames-00000.f16"]
        assert np.array_equal(rows, before)  # they are still in use
        del rows
        assert mapped(library.folder) == []
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["read_only", "resident"])
def test_values_that_are_neither_true_nor_false_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidValue, match=f"{name} 'yes': give True or False"):
        Library(tmp_path / "library", encoder="demo", **{name: "yes"})  # type: ignore[arg-type]
    assert not (tmp_path / "library").exists()


@pytest.mark.parametrize("seconds", [0, -4, 0.5, float("nan"), float("inf")])
def test_segments_of_no_whole_number_of_frames_are_refused(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(InvalidValue, match=r"segment_seconds|whole number of frames"):
        Library(tmp_path / "library", encoder="demo", segment_seconds=seconds)
    assert not (tmp_path / "library").exists()


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('encoder_revision = "', 'encoder_revision = "x', DamagedSettings),
        ("format_version = ", "format_version = 9", LibraryError),
        ("segment_seconds = 4.0", "segment_seconds = 4.5", LibraryError),
        ("frame_rate = 1.0", "frame_rate = -1.0", LibraryError),
        ("frame_rate = 1.0", "frame_rate = ", LibraryError),
        ("index =", "surprise =", LibraryError),
        ('index = "auto"', 'index = "nosuch"', LibraryError),
        ("frame_rate = 1.0", "frame_rate = inf", LibraryError),
        ("encoder_dim = ", "encoder_dim = 0 #", LibraryError),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    library: Library, old: str, new: str, error: type[Exception]
) -> None:
    path = library.folder / "moviola.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(error, match=str(library.folder)), Library(library.folder) as reopened:
        reopened.search("anything")


def test_an_encoder_that_was_moved_is_named_once(films: Path, tmp_path: Path) -> None:
    """The same weights in another folder were another encoder: all would have been encoded again."""
    here, there = tmp_path / "here", tmp_path / "there"
    for name, source in (("clip", DEMO_FOLDER), ("sentences", MINILM_FOLDER)):
        shutil.copytree(source, here / name)
    shutil.copytree(here / "clip", tmp_path / "another")
    (tmp_path / "another" / "further.txt").write_text("not the same")
    folder = tmp_path / "library"
    encoders = {"encoder": str(here / "clip"), "sentence_encoder": str(here / "sentences")}
    with Library(folder, **encoders) as library:  # type: ignore[arg-type]
        library.index(films, ocr=False)
        expected = library.search("lighthouse keeper", top_k=50)
    here.rename(there)
    with Library(folder) as library, pytest.raises(MissingModel, match=r"name that place once"):
        library.search("lighthouse keeper")
    with pytest.raises(EncoderMismatch, match="another"):
        Library(folder, encoder=str(tmp_path / "another"))
    moved = {"encoder": str(there / "clip"), "sentence_encoder": str(there / "sentences")}
    with Library(folder, read_only=True, **moved) as library:  # type: ignore[arg-type]
        assert library.search("lighthouse keeper", top_k=50) == expected
    with Library(folder, **moved) as library:  # type: ignore[arg-type]
        report = library.index(films, ocr=False)
        assert (report.added, report.updated) == ([], [])
    with Library(folder) as library:
        assert library.search("lighthouse keeper", top_k=50) == expected
        assert verify(library.store) == []


def test_another_revision_of_the_encoder_is_refused(library: Library) -> None:
    resealed(library.folder, encoder_revision="another")
    with pytest.raises(EncoderMismatch, match="'another'"), Library(library.folder) as reopened:
        reopened.search("anything")


@pytest.mark.parametrize("victim", ["*.faiss", "*.json"])
def test_a_lost_or_damaged_index_is_made_again(library: Library, victim: str) -> None:
    expected = library.search("anything", top_k=50)
    for path in (library.folder / "index").glob(victim):
        path.write_bytes(path.read_bytes()[:-7])
    with Library(library.folder) as reopened:
        assert [p.repairable for p in verify(reopened.store)] == [True]
        assert reopened.search("anything", top_k=50) == expected
        repair(reopened.store)
        assert verify(reopened.store) == []
    for path in (library.folder / "index").iterdir():
        path.unlink()
    with Library(library.folder, read_only=True) as reopened:
        assert reopened.search("anything", top_k=50) == expected
        assert ["missing" in problem.message for problem in verify(reopened.store) if problem.repairable] == [
            True
        ]


def test_a_byte_that_opening_does_not_look_at_is_found_and_put_right(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of large index files opening compares the length alone."""
    monkeypatch.setattr("moviola.index.files._CHECKED_BYTES", 0)
    expected = library.search("anything", top_k=50)
    (path,) = (library.folder / "index").glob("segments-*.faiss")
    data = bytearray(path.read_bytes())
    data[-5] ^= 0x20
    path.write_bytes(data)
    with Library(library.folder) as reopened:
        assert [problem.repairable for problem in verify(reopened.store)] == [True]
        repair(reopened.store)
        assert verify(reopened.store) == []
        assert reopened.search("anything", top_k=50) == expected


def test_damaged_features_are_found_and_taken_out(library: Library, films: Path) -> None:
    row = library.catalogue.video("b")
    assert row.frames is not None
    shard = library.store.frame_features.shard(row.frames.shard)
    with shard.open("r+b") as file:
        file.seek(row.frames.offset * library.store.frame_features.row_bytes + 3)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 0x5A]))
    with Library(library.folder) as reopened:
        assert [p.video_id for p in verify(reopened.store)] == ["b", ""]
        assert {p.video_id for p in repair(reopened.store)} >= {"b"}
        assert [v.video_id for v in reopened.videos()] == ["a", "d", "deep/c"]
        assert reopened.index(films).added == ["b"]
        assert verify(reopened.store) == []


def test_a_shortened_shard_is_found(library: Library) -> None:
    shard = library.store.frame_features.shard(0)
    shard.write_bytes(shard.read_bytes()[:-10])
    with Library(library.folder) as reopened:
        problems = verify(reopened.store)
        assert [p.message.split(";")[0] for p in problems if p.video_id] == ["frame features are damaged"]


def test_what_a_killed_process_left_behind_is_harmless(library: Library, films: Path) -> None:
    shard = library.store.frame_features.shard(0)
    with shard.open("ab") as file:
        file.write(b"half a video" * 99)
    (films / "a.mp4").rename(films / "z.mp4")
    film_like(films / "b.mp4", films / "new.mp4")
    with Library(library.folder) as reopened:
        assert verify(reopened.store) == [] or all(
            "not there; plug its drive in" in p.message for p in verify(reopened.store)
        )
        reopened.index(films)
        assert verify(reopened.store) == []


def test_compaction_frees_space_and_changes_no_answer(library: Library) -> None:
    library.indexer.remove(["a", "d"])
    expected = library.search("anything", top_k=50)
    features = {
        v.video_id: library.store.frame_features.read(v.frames).copy() for v in library.catalogue.videos()
    }
    assert compact(library.store) > 0
    assert library.search("anything", top_k=50) == expected
    with Library(library.folder) as reopened:
        assert verify(reopened.store) == []
        assert reopened.search("anything", top_k=50) == expected
        for video in reopened.catalogue.videos():
            np.testing.assert_array_equal(
                reopened.store.frame_features.read(video.frames), features[video.video_id]
            )
    assert compact(library.store) == 0


@pytest.mark.parametrize("where", [(FeatureShards, "append"), (Catalogue, "relocate")])
def test_a_compaction_that_finds_the_disk_full_leaves_nothing_behind(
    library: Library, monkeypatch: pytest.MonkeyPatch, where: tuple[type, str]
) -> None:
    """Its copies would keep the disk full, and the library from being written."""
    library.indexer.remove(["a", "d"])
    before = sorted((library.folder / "features").iterdir())
    done, calls = getattr(*where), []

    def full(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return done(*args)

    with monkeypatch.context() as patch:
        patch.setattr(*where, full)
        with pytest.raises(LibraryError, match="No space left"):
            compact(library.store)
    assert sorted((library.folder / "features").iterdir()) == before
    assert verify(library.store) == []
    assert compact(library.store) > 0 and verify(library.store) == []


def test_a_compaction_deletes_old_features_before_it_needs_room_for_stills(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.indexer.remove(["a", "d"])
    old = library.store.frame_features.shard(0)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(library.store.stills, "keep_only", full)
    with pytest.raises(LibraryError, match="No space left"):
        compact(library.store)
    assert not old.exists() and verify(library.store) == []


def test_compactions_of_an_empty_library_give_no_number_of_a_shard_again(
    library: Library, films: Path, opened: Callable[..., Library]
) -> None:
    """A reader may still have the shard that had this number before."""
    reader = opened(read_only=True)
    library.indexer.remove([video.video_id for video in library.videos()])
    compact(library.store)
    library.index(films)
    assert reader.search("anything")
    library.indexer.remove([video.video_id for video in library.videos()])
    compact(library.store)
    compact(library.store)
    (films / "a.mp4").unlink()
    library.index(films)
    assert reader.search("anything")


def test_rows_that_a_reader_still_holds_are_not_overwritten(
    library: Library, films: Path, opened: Callable[..., Library]
) -> None:
    reader = opened(read_only=True)
    video = reader.catalogue.video("deep/c")
    before = reader.store.frame_features.read(video.frames).copy()
    library.indexer.remove(["deep/c", "d"])
    library.index(films)
    np.testing.assert_array_equal(reader.store.frame_features.read(video.frames), before)


def test_a_copied_library_works(library: Library, tmp_path: Path) -> None:
    expected = library.search("anything", top_k=50)
    library.close()
    shutil.copytree(library.folder, tmp_path / "copy")
    with Library(tmp_path / "copy", read_only=True) as copied:
        assert copied.search("anything", top_k=50) == expected


def test_a_library_opened_read_only_is_not_compacted(library: Library) -> None:
    library.indexer.remove(["a", "d"])
    before = {path.name: path.read_bytes() for path in (library.folder / "features").iterdir()}
    with Library(library.folder, read_only=True) as reader, pytest.raises(InvalidValue, match="read-only"):
        compact(reader.store)
    assert {path.name: path.read_bytes() for path in (library.folder / "features").iterdir()} == before


def test_compaction_waits_for_no_other_writer(library: Library) -> None:
    with (
        library.store.writing(),
        pytest.raises(LibraryLocked, match="is writing"),
        Library(library.folder) as other,
    ):
        compact(other.store)


def test_compaction_goes_on_with_the_models_in_use_now(library: Library) -> None:
    """Another process may have put models in use since this one opened the library."""
    with Library(library.folder) as other:
        other.indexer.use(stage1="demo")
        assert library.indexer.models_in_use()["stage1"] is None
        compact(library.store)
        assert library.indexer.models_in_use() == other.indexer.models_in_use()


@pytest.mark.parametrize("name", ["films 🎬", 'say "hé\\llo"', "tab\there", "\x7f"])
def test_any_folder_name_can_be_an_encoder(tmp_path: Path, name: str) -> None:
    """Settings hold the folder of an encoder as it is called."""
    from moviola.encoders.checkpoints import DEMO_FOLDER

    shutil.copytree(DEMO_FOLDER, tmp_path / name)
    with Library(tmp_path / "library", encoder=str(tmp_path / name), sentence_encoder="none") as library:
        made = library.settings
    with Library(tmp_path / "library") as again:
        assert again.settings == made
        assert name in again.settings.encoder


@pytest.fixture
def unshared(library: Library, tmp_path: Path) -> Path:
    """A copy of the library where SQLite cannot make the file that readers and writers of a journal share."""
    copy = shutil.copytree(library.folder, tmp_path / "copy", ignore=shutil.ignore_patterns("*-shm"))
    (copy / "catalogue.sqlite-shm").symlink_to(tmp_path / "nowhere" / "shared")
    return copy


def test_changes_that_wait_in_a_journal_are_not_passed_over(unshared: Path) -> None:
    """On a read-only file system SQLite cannot read a journal: that must be said, not answered wrongly."""
    assert (unshared / "catalogue.sqlite-wal").stat().st_size > 0
    with pytest.raises(LibraryError, match="changes wait"):
        Library(unshared, read_only=True)


def test_without_a_journal_a_read_only_library_is_read(library: Library, unshared: Path) -> None:
    library.close()  # which brings the changes of the journal into the catalogue
    shutil.copy(library.folder / "catalogue.sqlite", unshared)
    (unshared / "catalogue.sqlite-wal").unlink()
    with Library(unshared, read_only=True) as reader:
        assert len(reader) == 4


def test_every_flipped_bit_of_a_manifest_is_found(library: Library) -> None:
    path = library.folder / "index" / "segments.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        harmed = bytearray(whole)
        harmed[place] ^= 1 << place % 7
        path.write_bytes(harmed)
        with pytest.raises(SegmentIndexError):
            load_index(library.folder / "index", "segments", dict(BACKENDS))
