"""Readers beside writers: a video is removed, or the features are moved, between two steps of a search."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from left_drafts import leave_drafts
from moviola.features import FeatureShards
from moviola.files.writing import draft_of
from moviola.library import Catalogue, Job, LibraryStore, check, compact, diagnosis, verify
from moviola.library.derived.indexes import published_index
from moviola.library.disk.lock import drafts_in
from moviola.library.ingest import indexer
from moviola.search import Library
from moviola.search.found import still_there

Opened = Callable[..., Library]


@pytest.fixture
def writer(library: Library) -> Library:
    return library


def before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]) -> None:
    """Have ``act`` happen once, just before a method is called for the first time."""
    called = getattr(owner, name)
    waiting = [act]

    def method(*arguments: object, **options: object) -> object:
        if waiting:
            waiting.pop()()
        return called(*arguments, **options)

    monkeypatch.setattr(owner, name, method)


def test_a_reader_that_was_opened_before_a_compaction(writer: Library, opened: Opened) -> None:
    reader = opened(read_only=True)
    view = reader._searcher._viewer.view()
    rows = {row: video.frames for row, video in view.videos.items()}
    writer.indexer.remove(["a"])
    compact(writer.store)
    assert all(reader.store.frame_features.intact(extent) for extent in rows.values() if extent)
    assert {m.video_id for m in reader.search("a red square")} <= {"b", "d", "deep/c"}


@pytest.mark.parametrize("at", ["catalogue", "features"])
def test_a_compaction_while_a_reader_opens(
    writer: Library, opened: Opened, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    expected = writer.search("a red square", by="visual")
    reader = opened(read_only=True)
    if at == "catalogue":
        before(monkeypatch, LibraryStore, "features_of", lambda: compact(writer.store))
    else:
        # The catalogue is read, the shards are not mapped yet.
        before(monkeypatch, FeatureShards, "hold", lambda: compact(writer.store))
    assert reader.search("a red square", by="visual") == expected


def test_a_compaction_while_a_library_is_verified(
    writer: Library, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogue was read, and then features were looked for where they had been."""
    writer.indexer.remove(["a"])
    reader = opened(read_only=True)
    before(monkeypatch, FeatureShards, "hold", lambda: compact(writer.store))
    assert verify(reader.store) == []


def test_an_index_that_is_replaced_while_a_reader_opens_it(
    writer: Library, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moviola.files.parts import NamedFile

    before(monkeypatch, NamedFile, "require_intact", lambda: writer.indexer.remove(["a"]))
    index = published_index(opened(read_only=True).store, "segments")
    assert index is not None and len(index) == sum(-(-(9 + n) // 4) for n in (1, 2, 3))


def test_a_video_that_is_removed_before_its_cues_are_read(
    writer: Library, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = opened(read_only=True)
    assert reader.search("lighthouse keeper", by="subtitles")[0].video_id == "d"
    before(monkeypatch, Catalogue, "cues", lambda: writer.indexer.remove(["d"]))
    assert reader.search("lighthouse keeper", by="subtitles") == []


def test_a_video_that_is_removed_while_it_is_searched_is_not_half_in(
    writer: Library, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its frames were still held, its shots and cues were gone: it answered with other bounds and scores."""
    reader = opened(read_only=True)
    expected = {(m.video_id, m.start, m.end, m.score) for m in reader.search("a red square", top_k=40)}
    before(monkeypatch, Catalogue, "shots_of", lambda: writer.indexer.remove(["a"]))
    before(monkeypatch, Catalogue, "cues_with", lambda: writer.indexer.remove(["b"]))
    found = opened(read_only=True).search("a red square", top_k=40)
    assert {m.video_id for m in found} == {"d", "deep/c"}
    assert {(m.video_id, m.start, m.end, m.score) for m in found} <= expected


def test_an_answer_is_described_without_videos_that_are_gone(writer: Library, opened: Opened) -> None:
    reader = opened(read_only=True)
    found = reader.search("a red square", top_k=40)
    assert len({moment.video_id for moment in found}) == 4
    writer.indexer.remove([found[0].video_id])
    kept, videos, _ = still_there(found, reader.catalogue)
    assert [moment.rank for moment in kept] == list(range(1, len(kept) + 1))
    assert {moment.video_id for moment in kept} == set(videos) and len(videos) == 3
    assert (kept.confident, kept.timings) == (found.confident, found.timings)


# ---- what writers leave ------------------------------------------------------------------------------------


def test_all_space_is_given_back_where_everything_was_removed(writer: Library) -> None:
    writer.indexer.remove([video.video_id for video in writer.videos()])
    assert compact(writer.store) > 0
    assert list((writer.folder / "features").iterdir()) == []
    films = writer.folder.parent / "films"
    assert len(writer.index(films).added) == 4 and verify(writer.store) == []
    assert compact(writer.store) == 0 and verify(writer.store) == []


def test_drafts_of_killed_writers_are_swept_and_those_of_living_ones_are_not(writer: Library) -> None:
    """A reader's draft in the cache that stays for good once it was killed, or that is taken from under a
    reader at work, whose answer fails then.
    """
    folder = writer.folder
    names = (
        "moviola.toml", "index/segments.json", "cache/facts/videos.json", "cache/background.npz",
        "cache/last-answer.json", "cache/copies.table", "concepts/walls.safetensors",
        "models/refiner/config.json", "backups/moviola.toml",
    )  # fmt: skip
    left = [*leave_drafts(*(folder / name for name in names))]
    for name in ("index/segments-new.faiss", "cache/facts/videos-new.part"):
        left.append(folder / name)
        left[-1].write_bytes(b"half of it")
    with ExitStack() as at_work:
        written = [folder / name for name in names if name.startswith("cache")]
        drafts = [at_work.enter_context(draft_of(path)) for path in written]
        drafts[-1].write_bytes(b"of a reader")
        for path in drafts[:-1]:
            path.write_bytes(b"of another")
        assert {*drafts_in(folder)} == {*left}
        writer.indexer.remove(["a"])
        assert not any(path.exists() for path in left)
        assert all(path.exists() for path in drafts)
    assert written[-1].read_bytes() == b"of a reader"


def test_an_index_that_lags_is_said_to_mend_itself(writer: Library) -> None:
    with writer.catalogue.transaction():  # as by a writer that was killed after it
        writer.catalogue.drop(writer.catalogue.video("a").row)
    for problem in verify(writer.store):
        assert problem.repairable and "the next write brings it up to date" in problem.message
    assert verify(writer.store)
    writer.indexer.remove(["b"])
    assert verify(writer.store) == []


def test_two_writers_without_a_number(writer: Library, tmp_path: Path) -> None:
    from moviola.errors import LibraryLocked

    with writer.store.writing():
        (writer.folder / ".lock.owner").unlink()
        with (
            pytest.raises(LibraryLocked, match=r"library: another process is writing to this library; wait"),
            writer.store.writing(),
        ):
            pass


def test_subtitles_that_are_read_again_cost_no_other_video_its_features(
    writer: Library, film: Callable[..., Path]
) -> None:
    """The end of all features moved back to that of the video, and the next was written over the others."""
    films = writer.folder.parent / "films"
    writer.index(films)
    first = min(writer.catalogue.videos(), key=lambda video: video.row)
    Path(first.path).with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nA new line.\n")
    assert writer.index(films).updated == [first.video_id]
    film(films / "new.mp4", 5, 9)
    assert writer.index(films).added == ["new"]
    assert verify(writer.store) == []


def test_features_that_were_moved_are_not_held_for_ever(writer: Library, opened: Opened) -> None:
    """A server would keep the room of every compaction until it ends."""
    reader = opened(read_only=True)
    expected = reader.search("a red square", by="visual")
    view = reader._searcher._viewer.view()
    old = weakref.ref(view.held[0])
    compact(writer.store)
    assert reader.search("a red square", by="visual") == expected
    assert old() is not None  # a search that still reads the earlier state finds it
    del view
    gc.collect()
    assert old() is None
    for features in (reader.store.frame_features, writer.store.frame_features):
        assert all(features.shard(number).exists() for number in features._maps)


# ---- checks beside writers ---------------------------------------------------------------------------------


def wrong(folder: Path) -> list[str]:
    return [finding.detail for finding in diagnosis._library(folder) if not finding.ok]


@pytest.mark.parametrize(
    "at", ["cues", "hold", "intact", "require_there", "_index_problem", "damaged_in_cache"]
)
@pytest.mark.parametrize("act", ["removes", "compacts", "indexes", "uses"])
def test_a_check_beside_a_writer_raises_no_false_alarm(
    writer: Library,
    opened: Opened,
    film: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    act: str,
) -> None:
    """ "0 cues but 11 features" of a video that had just been replaced, and repairs that were advised."""
    films = writer.folder.parent / "films"
    writer.index(films)
    if act == "compacts":
        writer.indexer.remove(["b"])
    reader = opened(read_only=True)
    film(films / "new.mp4", 5, 9)
    (films / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nA new line.\n")
    acts: dict[str, Callable[[], object]] = {
        "removes": lambda: writer.indexer.remove(["a", "d"]), "compacts": lambda: compact(writer.store),
        "indexes": lambda: writer.index(films), "uses": lambda: writer.indexer.use(refiner="demo"),
    }  # fmt: skip
    owner: Any = {"cues": Catalogue, "hold": FeatureShards, "intact": FeatureShards}.get(at, check)
    before(monkeypatch, FeatureShards if at == "require_there" else owner, at, acts[act])
    assert verify(reader.store) == []
    assert wrong(writer.folder) == []


@pytest.mark.parametrize("at", ["searchable", "append", "publish_indexes"])
def test_a_check_while_something_is_written_says_nothing_of_what_lags(
    writer: Library, opened: Opened, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """An index that is just being grown has fewer vectors than the features give."""
    films, found = writer.folder.parent / "films", list[object]()
    film(films / "new.mp4", 5, 9)
    reader = opened(read_only=True)

    def look() -> None:
        found.extend(verify(reader.store))
        found.extend(wrong(writer.folder))

    owner: Any = {"searchable": LibraryStore, "append": FeatureShards}.get(at, indexer)
    before(monkeypatch, owner, at, look)
    assert writer.index(films).added == ["new"] and found == []
    with writer.store.writing():
        with writer.catalogue.transaction():
            writer.catalogue.drop(writer.catalogue.video("new").row)
        assert verify(reader.store) == []
    assert verify(reader.store) != []  # as a killed writer leaves it


def test_drafts_and_jobs_that_end_while_they_are_looked_at(
    writer: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    (draft,) = leave_drafts(writer.folder / "index" / "cues.json")
    drafts = diagnosis.drafts_in(writer.folder)
    assert drafts == [draft]
    draft.unlink()
    monkeypatch.setattr(diagnosis, "drafts_in", lambda _: drafts)
    assert wrong(writer.folder) == []
    states = iter([Job("index", 4, 3, "running", "now"), Job("index", 4, 4, "done", "now")])
    monkeypatch.setattr(Catalogue, "last_job", lambda _: next(states))
    assert wrong(writer.folder) == []
