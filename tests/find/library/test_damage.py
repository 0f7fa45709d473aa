"""A damaged file of a library: an error that names it, or an answer, but never a traceback."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from moviola.errors import LibraryError, MissingModel, MoviolaError
from moviola.library import WantedCues, check, compact, repair, verify
from moviola.library.disk.database import named
from moviola.search import Library
from moviola.words import terms_of_word

Damage = Callable[[bytes], bytes]


@pytest.fixture
def closed(library: Library) -> Path:
    """The folder of a library whose catalogue is one file, without a journal."""
    library.close()
    return library.folder


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[:50],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:4096],
        lambda whole: b"nothing of a database" * 500,
        lambda whole: b"SQLite format 3\0" + b"\xff" * 4000,
    ],
    ids=["empty", "header", "half", "page", "text", "noise"],
)
def test_a_damaged_catalogue_is_refused(closed: Path, damage: Damage, read_only: bool) -> None:
    path = closed / "catalogue.sqlite"
    path.write_bytes(damage(path.read_bytes()))
    with (
        pytest.raises(LibraryError, match=r"catalogue\.sqlite: .*restore a copy or index into a new library"),
        Library(closed, read_only=read_only) as library,
    ):
        library.search("the lighthouse keeper")


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE meta",
        "DROP TABLE cues",
        "DROP TABLE videos",
        "ALTER TABLE videos DROP COLUMN codec",
        "DELETE FROM meta",
        "DELETE FROM feature_ends",
        "UPDATE videos SET size = 'large' WHERE video_id = 'a'",
        "UPDATE videos SET frame_offset = NULL",
        "UPDATE videos SET frame_count = -3",
        "UPDATE cues SET start = 'late'",
    ],
)
def test_a_catalogue_that_lacks_something_is_refused(closed: Path, change: str) -> None:
    with closing(sqlite3.connect(closed / "catalogue.sqlite")) as db:
        db.execute(change)
        db.commit()
    (closed / "cache" / "facts" / "videos.json").unlink()  # searches read the catalogue's videos from there
    with (
        pytest.raises(LibraryError, match=r"catalogue\.sqlite: damaged catalogue .*; restore a copy"),
        Library(closed) as library,
    ):
        library.search("the lighthouse keeper")


def test_an_emptied_catalogue_stays_as_it_is(closed: Path) -> None:
    """It must not become a library without videos: then nobody would look for a copy of it."""
    path = closed / "catalogue.sqlite"
    path.write_bytes(b"")
    with pytest.raises(LibraryError):
        Library(closed)
    assert path.read_bytes() == b""


def test_a_catalogue_that_is_gone_is_refused(closed: Path) -> None:
    (closed / "catalogue.sqlite").unlink()
    with pytest.raises(LibraryError, match=r"catalogue\.sqlite: missing"):
        Library(closed)


def test_a_closed_library_says_so(library: Library) -> None:
    library.close()
    with pytest.raises(LibraryError, match="was closed"):
        library.videos()


@pytest.mark.parametrize("name", ["catalogue.sqlite", "moviola.toml", "index/segments.json"])
def test_flipped_and_lost_bytes_end_in_an_error_or_an_answer(closed: Path, name: str) -> None:
    path = closed / name
    whole = path.read_bytes()
    generator = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        harmed = bytearray(whole)
        for place in generator.integers(0, len(whole), generator.integers(1, 30)):
            harmed[place] = generator.integers(0, 256)
        path.write_bytes(harmed[: generator.integers(1, len(whole))] if generator.random() < 0.3 else harmed)
        try:
            with Library(closed, read_only=True) as library:
                verify(library.store)
                library.search("the lighthouse keeper", top_k=3)
        except MoviolaError as error:
            assert str(closed) in str(error)
            refused += 1
    assert refused or name == "index/segments.json"  # an index is made again


@pytest.mark.parametrize("place", [0, -1])
def test_a_search_refuses_damaged_features(closed: Path, place: int) -> None:
    """One bit changes a score a little, and nobody sees that an answer rests on it."""
    (path,) = closed.glob("features/frames-*.f16")
    whole = bytearray(path.read_bytes())
    whole[place] ^= 1
    path.write_bytes(whole)
    with (
        Library(closed, read_only=True) as library,
        pytest.raises(LibraryError, match=rf"{path.name}: rows from \d+ on are damaged; `moviola doctor`"),
    ):
        library.search("a red square", top_k=40)


def damage_frames(library: Library, video: str) -> Path:
    """Flip a bit of the first feature of a video, wherever it lies: which film is done first may differ."""
    extent = library.catalogue.video(video).frames
    assert extent is not None
    (path,) = library.folder.glob("features/frames-*.f16")
    whole = bytearray(path.read_bytes())
    whole[extent.offset * library.store.frame_features.row_bytes] ^= 1
    path.write_bytes(whole)
    return path


def test_a_removed_video_whose_features_are_damaged_does_not_come_back(library: Library) -> None:
    """Searches would refuse from then on, until it is taken out again."""
    damage_frames(library, "a")
    library.indexer.remove(["a", "b"])
    with pytest.raises(LibraryError, match="a: its features are damaged; index its file again"):
        library.indexer.restore(["a", "b"])
    assert {video.video_id for video in library.catalogue.removed()} == {"a", "b"}
    assert library.indexer.restore(["b"]) == ["b"] and library.search("a red square")


def test_a_compaction_of_damaged_features_changes_nothing(library: Library) -> None:
    """It would give the damage a new CRC, by which it is whole."""
    path = damage_frames(library, "a")
    whole = path.read_bytes()
    library.indexer.remove(["b"])
    with pytest.raises(LibraryError, match="damaged features; `moviola doctor` says what mends them"):
        compact(library.store)
    assert list(library.folder.glob("features/frames-*.f16")) == [path] and path.read_bytes() == whole
    assert [video.video_id for video in library.catalogue.removed()] == ["b"]
    assert {problem.video_id for problem in verify(library.store)} >= {"a"}


def test_damaged_stills_are_found(closed: Path) -> None:
    path = closed / "stills.sqlite"
    whole = bytearray(path.read_bytes())
    whole[4096:4200] = b"\xff" * 104  # the head of the second page
    path.write_bytes(whole)
    with Library(closed, read_only=True) as library:
        (problem,) = [one for one in verify(library.store) if "stills.sqlite" in one.message]
    assert problem.repairable and "answers stay the same" in problem.message


@pytest.mark.parametrize(
    "change", ["UPDATE entries SET value = '{}x'", "PRAGMA user_version = 9", "head of a page"]
)
def test_damage_of_what_people_keep_is_found(closed: Path, change: str) -> None:
    with Library(closed) as library:
        library.userdata.put("search", "walls", {"query": "a wall"})
        assert verify(library.store) == []
    path = closed / "kept.sqlite"
    if change == "head of a page":
        whole = bytearray(path.read_bytes())
        whole[4096:4200] = b"\xff" * 104
        path.write_bytes(whole)
    else:
        with closing(sqlite3.connect(path)) as db:
            db.execute(change)
            db.commit()
    content = path.read_bytes()
    with Library(closed, read_only=True) as library:
        (problem,) = verify(library.store)
    assert str(path) in problem.message and not problem.repairable
    assert path.read_bytes() == content


def test_damaged_concepts_are_found(closed: Path) -> None:
    path = closed / "concepts" / "logo.safetensors"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"nothing of a concept")
    with Library(closed, read_only=True) as library:
        (problem,) = verify(library.store)
    assert f"{path}: damaged" in problem.message and not problem.repairable
    assert problem.commands == () and "restore it from a copy, or teach it again" in problem.message


def test_damaged_vectors_of_cues_are_not_copied(films: Path, tmp_path: Path) -> None:
    with Library(tmp_path / "spoken", encoder="none") as library:
        library.index(films / "d.mp4")
        before = library.catalogue.video("d").cues
        assert before is not None
        whole = library.store.cue_vectors(library.catalogue.video("d"))
    shard = library.store.cue_features.shard(before.shard)
    harmed = bytearray(shard.read_bytes())
    harmed[1] ^= 0x10
    shard.write_bytes(harmed)
    os.utime(films / "d.srt", (1, 1))
    with Library(tmp_path / "spoken") as library:
        assert library.index(films / "d.mp4").updated == ["d"]
        np.testing.assert_array_equal(library.store.cue_vectors(library.catalogue.video("d")), whole)


def test_the_end_of_a_job_hides_no_error(library: Library) -> None:
    with pytest.raises(LibraryError, match="its drive was unplugged"), library.catalogue.job("index", 1):
        library.close()  # as a catalogue whose drive is away, it takes no row any more
        raise LibraryError("its drive was unplugged")


def test_vectors_of_cues_that_the_catalogue_has_lost_are_not_reused(films: Path, tmp_path: Path) -> None:
    with Library(tmp_path / "spoken", encoder="none") as library:
        library.index(films / "d.mp4")
        whole = library.store.cue_vectors(library.catalogue.video("d"))
    with closing(sqlite3.connect(library.folder / "catalogue.sqlite")) as db:
        db.execute("DELETE FROM cues WHERE number = 1")
        db.commit()
    os.utime(films / "d.srt", (1, 1))
    with Library(tmp_path / "spoken") as library:
        assert "1 cues but 2 features" in verify(library.store)[0].message
        assert library.index(films / "d.mp4").updated == ["d"]
        np.testing.assert_array_equal(library.store.cue_vectors(library.catalogue.video("d")), whole)


def test_subtitles_of_which_the_catalogue_has_lost_some_are_named(films: Path, tmp_path: Path) -> None:
    with Library(tmp_path / "both", encoder="demo") as library:
        library.index(films / "d.mp4")
    with closing(sqlite3.connect(library.folder / "catalogue.sqlite")) as db:
        db.execute("DELETE FROM cues WHERE number = 1")
        db.commit()
    with Library(tmp_path / "both", read_only=True) as library:
        features = library.store.features_of(library.store.searchable())
        with pytest.raises(LibraryError, match=r"d: 1 cues but 2 features of them; .*repair"):
            features.read_subtitles(0)


def test_an_error_of_the_drive_is_not_called_damage(tmp_path: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
    with (
        pytest.raises(LibraryError, match=r"disk I/O error.*drive") as raised,
        named(tmp_path / "catalogue.sqlite"),
    ):
        raise error
    assert "restore a copy" not in str(raised.value)


def test_a_repair_minds_no_file_of_the_cache_that_a_reader_deletes(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "damaged_in_cache", lambda folder: [folder / "cache" / "gone.npy"])
    assert repair(library.store)


@pytest.fixture
def away(films: Path, tmp_path: Path) -> Path:
    """The folder of a closed library of one film with subtitles, whose drive is away."""
    with Library(tmp_path / "both", encoder="demo") as library:
        library.index(films)
    films.rename(tmp_path / "unplugged")
    return tmp_path / "both"


def flip_features(library: Library, video_id: str, kind: str) -> None:
    """Flip a bit of the features of a video, ``"frame"`` or ``"cue"``."""
    video = library.catalogue.video(video_id)
    shards, extent = {
        "frame": (library.store.frame_features, video.frames),
        "cue": (library.store.cue_features, video.cues),
    }[kind]
    assert extent is not None
    path = shards.shard(extent.shard)
    content = bytearray(path.read_bytes())
    content[extent.offset * shards.row_bytes + 1] ^= 0x10
    path.write_bytes(content)


def test_damaged_features_of_cues_are_computed_again_without_the_file(away: Path) -> None:
    with Library(away) as library:
        whole = library.store.cue_vectors(library.catalogue.video("d")).copy()
        pictures = library.search("a red square", top_k=20)
        flip_features(library, "d", "cue")
    with Library(away) as library:
        assert [
            p.video_id for p in verify(library.store) if "subtitle features are damaged" in p.message
        ] == ["d"]
        assert repair(library.store)[0].video_id == "d"
        assert not any(problem.repairable for problem in verify(library.store))
        np.testing.assert_array_equal(library.store.cue_vectors(library.catalogue.video("d")), whole)
        assert library.search("a red square", top_k=20) == pictures
        assert library.search("the lighthouse keeper", by="subtitles")[0].video_id == "d"


def test_cues_are_found_by_words_and_encoded_later_where_their_encoder_is_not_there(
    away: Path, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Library(away) as library:
        flip_features(library, "d", "cue")

    def missing(*_: object, **__: object) -> None:
        raise MissingModel("all-MiniLM-L6-v2: not on this machine; reinstall moviola")

    with monkeypatch.context() as context, Library(away) as library:
        context.setattr("moviola.encoders.load_sentence_encoder", missing)
        repair(library.store)
        assert not any(problem.repairable for problem in verify(library.store))
        video = library.catalogue.video("d")
        assert video.frames is not None and video.cues is None
        terms = terms_of_word("lighthouse", "en")
        assert [cue.video for cue in library.catalogue.match_cues(WantedCues(terms), 5)] == [video.row]
    (films.parent / "unplugged").rename(films)
    with Library(away) as library:
        assert library.index(films).updated == ["d"]
        assert verify(library.store) == [] and library.catalogue.video("d").cues is not None


def test_a_video_that_has_lost_cues_keeps_the_rest_until_its_file_is_read_again(
    away: Path, films: Path
) -> None:
    with closing(sqlite3.connect(away / "catalogue.sqlite")) as db:
        db.execute("DELETE FROM cues WHERE number = 1")
        db.commit()
    with Library(away) as library:
        assert repair(library.store)[0].video_id == "d"
        assert not any(problem.repairable for problem in verify(library.store))
        assert [cue.text for cue in library.catalogue.cues(library.catalogue.video("d").row)] == [
            "The lighthouse keeper lost his umbrella."
        ]
    (films.parent / "unplugged").rename(films)
    with Library(away) as library:
        assert library.index(films).updated == ["d"]
        assert len(library.catalogue.cues(library.catalogue.video("d").row)) == 2
        assert verify(library.store) == []


def test_damaged_shots_cost_no_features(away: Path, films: Path) -> None:
    with Library(away) as library:
        before = library.catalogue.video("a").frames
    with closing(sqlite3.connect(away / "catalogue.sqlite")) as db:
        db.execute("UPDATE shots SET start = 1.0 WHERE number = 0")
        db.commit()
    with Library(away) as library:
        assert {problem.video_id for problem in repair(library.store)} >= {"a", "d"}
        assert not any(problem.repairable for problem in verify(library.store))
        assert library.catalogue.video("a").frames == before
    (films.parent / "unplugged").rename(films)
    with Library(away) as library:
        assert "a" in library.index(films).shots_found
        assert verify(library.store) == []
