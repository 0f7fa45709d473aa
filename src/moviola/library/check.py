"""Checks and repairs of a library."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from moviola.errors import DataError, IndexServerError, LibraryError, MoviolaError, SegmentIndexError
from moviola.features import Extent, FeatureShards
from moviola.index import backends_of, load_index
from moviola.library.derived.indexes import INDEXES, index_recipe, piece_counts, publish_indexes
from moviola.library.disk.catalogue import ShotRow, VideoRow
from moviola.library.disk.disk_cache import damaged_in_cache
from moviola.library.disk.models_in_use import NONE, ROLES, require_intact
from moviola.library.disk.places import present_path, root_of
from moviola.library.disk.store import LibraryStore
from moviola.library.disk.video_table import VideoTable
from moviola.library.ingest.indexer import Indexer
from moviola.library.ingest.reading import mend_cues
from moviola.library.kept.concepts import concepts_of, read_concept
from moviola.retrieval.saved.graphs import require_intact_graphs
from moviola.retrieval.segments import pack_ids

__all__ = ["Problem", "command", "compact", "repair", "verify"]

# What a writer leaves that was killed after it had changed the catalogue or the settings.
_LAGS = "searches complete it in memory, and the next write brings it up to date"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a video, or of the library as a whole, whose id is empty.

    ``repairable`` problems are fixed by :func:`repair`; the others need a person (a file that is gone).
    ``commands`` mend it, one after the other; none where only a copy of the file does.
    """

    video_id: str
    message: str
    repairable: bool
    commands: tuple[str, ...] = ()


def command(library: Path, *words: str) -> str:
    """A command on a library, quoted for a shell."""
    return shlex.join(["moviola", *words, "--library", str(library)])


def verify(store: LibraryStore) -> list[Problem]:
    """Check everything: catalogue, every feature byte, indexes, what people keep, source files. Changes
    nothing.
    """
    damage = store.catalogue.integrity_problem()
    if damage:
        return [Problem("", f"catalogue.sqlite: {damage}; restore it from a copy", False)]
    videos = [video for video in store.catalogue.videos() if video.state != "refused"]
    problems = [problem for video in videos for problem in _video_problems(store, video)]
    damaged = {problem.video_id for problem in problems if problem.repairable}
    sound = VideoTable.of(video for video in videos if video.video_id not in damaged)
    return [
        *problems, *_index_problems(store, sound), *_cache_problems(store), *_model_problems(store),
        *_still_problems(store), *_kept_problems(store), *_concept_problems(store),
    ]  # fmt: skip


def _still_problems(store: LibraryStore) -> Iterator[Problem]:
    try:
        damage = store.stills.problem()
    except LibraryError as error:
        damage = str(error)
    if damage:
        message = f"stills.sqlite: {damage}; repair deletes it, answers stay the same"
        yield Problem("", message, True, (command(store.folder, "repair"),))


def _kept_problems(store: LibraryStore) -> Iterator[Problem]:
    """Whether what people keep can be read, which no repair brings back."""
    from moviola.library.kept.entries import Kept  # which a search does without

    try:
        with closing(Kept(store.folder)) as kept:
            if damage := kept.problem():
                yield Problem("", f"{kept.path}: {damage}; {kept.remedy}", False)
            else:
                kept.entries()
    except LibraryError as error:
        yield Problem("", str(error), False)


def _concept_problems(store: LibraryStore) -> Iterator[Problem]:
    for name in concepts_of(store.folder):
        try:
            read_concept(store.folder, store.settings, name)
        except MoviolaError as error:
            yield Problem("", str(error), False, (command(store.folder, "concepts", "forget", name),))


def _video_problems(store: LibraryStore, video: VideoRow) -> Iterator[Problem]:
    root = root_of(video.path, store.catalogue.roots())  # by it the video gets the same id again
    index = command(store.folder, "index", root.path if root else video.path)
    repair = command(store.folder, "repair")
    for damage in _damage(store, video):
        commands = (repair, index) if damage.needs_file else (repair,)
        yield Problem(video.video_id, damage.message, True, commands)
    source = present_path(video, store.catalogue.copies_of(video.row))
    if source is None:
        message = f"{video.path}: not there; plug its drive in, index it at its new place, or remove it"
        yield Problem(video.video_id, message, False, (command(store.folder, "remove", video.video_id),))
    elif source.stat().st_size != video.size:
        message = f"{video.path}: the file has changed; index it again"
        yield Problem(video.video_id, message, False, (index,))


@dataclass(frozen=True, slots=True)
class _Damage:
    """Damage of one part of what is stored of a video; ``needs_file``: only indexing its file again brings
    the part back.
    """

    part: Literal["frames", "cues", "shots"]
    message: str
    needs_file: bool = True


def _damage(store: LibraryStore, video: VideoRow) -> Iterator[_Damage]:
    if video.frames is not None and not store.frame_features.intact(video.frames):
        yield _Damage("frames", "frame features are damaged; index the video again")
    stored = len(store.catalogue.cues(video.row))
    if video.cues is not None and video.cues.count != stored:
        yield _Damage("cues", f"{stored} cues but {video.cues.count} features; index again")
    elif video.cues is not None and not store.cue_features.intact(video.cues):
        message = "subtitle features are damaged; repair computes them again from the texts"
        yield _Damage("cues", message, needs_file=False)
    if not _follow_each_other(store.catalogue.shots(video.row), video.duration):
        yield _Damage("shots", "its shots do not follow each other; index the video again")


def _follow_each_other(shots: Sequence[ShotRow], duration: float) -> bool:
    """Whether shots cover a video from its beginning to its end."""
    starts = [shot.start for shot in shots]
    return not shots or (
        shots[0] == ShotRow(0, "start")
        and starts[-1] < duration
        and starts == sorted(set(starts))
        and {shot.opening for shot in shots[1:]} <= {"cut", "dissolve", "fade"}
    )


def _index_problems(store: LibraryStore, sound: VideoTable) -> Iterator[Problem]:
    """Compare each published index with what the features say it should hold."""
    mend = (command(store.folder, "repair"),)
    for name in INDEXES:
        try:
            backends = backends_of(store.settings.index)
            loaded = load_index(store.folder / "index", name, backends, thorough=True)
        except IndexServerError as error:
            yield Problem("", f"index {name}: {error}", False)
            continue
        except SegmentIndexError as error:
            yield Problem("", f"{error} (it is rebuilt from the features)", True, mend)
            continue
        counts = piece_counts(store, name, sound).tolist()
        wanted = [pack_ids(row, count) for row, count in zip(sound, counts, strict=True)]
        ids = np.sort(np.concatenate(wanted)) if wanted else np.empty(0, np.int64)
        if loaded is None:
            if len(ids):
                yield Problem("", f"index {name}: missing; {_LAGS}", True, mend)
            continue
        index, recipe = loaded
        if recipe != index_recipe(store, name):
            made = f"made as {recipe!r}, not as {index_recipe(store, name)!r}"
            yield Problem("", f"index {name}: {made}; {_LAGS}", True, mend)
        elif not np.array_equal(np.sort(index.ids()), ids):
            held = f"{len(index)} vectors, the features give {len(ids)}"
            yield Problem("", f"index {name}: {held}; {_LAGS}", True, mend)


def _cache_problems(store: LibraryStore) -> Iterator[Problem]:
    # Before format 2 there were no digests.
    for path in damaged_in_cache(store.folder) if store.settings.format_version > 1 else ():
        name = path.relative_to(store.folder).as_posix()
        message = f"{name}: damaged; searches ignore it, and it is rebuilt"
        yield Problem("", message, True, (command(store.folder, "repair"),))


def _model_problems(store: LibraryStore) -> Iterator[Problem]:
    for role in ROLES:
        if getattr(store.settings, role):
            try:
                require_intact_graphs(require_intact(store.folder, role, store.settings))
            except (LibraryError, DataError) as error:
                without = command(store.folder, "library", "use", f"--{role}", NONE)
                yield Problem("", str(error), False, (without,))


def repair(store: LibraryStore) -> list[Problem]:
    """Mend what is damaged; returns the problems that were fixed.

    Videos with damaged features of pictures are removed, and indexing brings them back. Where other parts are
    damaged, the rest stays: features of cues are computed again from their texts, and cues that are lost,
    shots, and features whose encoder is not on this machine are made when the file is indexed the next time.
    Indexes and caches are rebuilt.

    Raises:
        InvalidValue, LibraryLocked: as of :class:`Indexer`.
        MissingModel: a damaged cache file needs a model that is not on this machine; the file was deleted,
            and searches work without it.
    """
    problems = [problem for problem in verify(store) if problem.repairable]
    indexer, catalogue = Indexer(store), store.catalogue
    named = catalogue.videos_named({problem.video_id for problem in problems if problem.video_id})
    damaged = {
        video_id: {damage.part for damage in _damage(store, video)} for video_id, video in named.items()
    }
    if lost := [video_id for video_id, parts in damaged.items() if "frames" in parts]:
        indexer.remove(lost, for_good=True)
    with store.writing():
        for video_id, parts in damaged.items():
            if "frames" not in parts:
                _mend(store, catalogue.video(video_id), parts)
        in_cache = damaged_in_cache(store.folder)
        for path in in_cache:
            path.unlink(missing_ok=True)  # a reader may have swept it
        if any(_still_problems(store)):
            store.stills.discard()
        publish_indexes(store, thorough=True)
        if in_cache:
            indexer.publish()
    return problems


def _mend(store: LibraryStore, video: VideoRow, parts: Collection[str]) -> None:
    if "shots" in parts:  # without any, the next indexing finds them again
        with store.catalogue.transaction():
            store.catalogue.set_shots(video.row, ())
    if "cues" in parts:
        mend_cues(store, video)


def compact(store: LibraryStore) -> int:
    """Copy live features into new shards and delete the old ones; returns the bytes that were freed. Removed
    videos cannot be brought back afterwards. Readers that have the old shards open keep them; the catalogue
    changes over in one transaction.

    Raises:
        InvalidValue, LibraryLocked: as of :class:`Indexer`.
        LibraryError: features are damaged; :func:`repair` first.
    """
    catalogue = store.catalogue
    kinds = {"frames": store.frame_features, "cues": store.cue_features}
    with store.writing():
        videos, before = catalogue.videos(), _bytes(store)
        # Numbers are never used again: readers may still have the shards that bore them.
        first = {
            kind: max([*features.shards(), catalogue.feature_end(kind)[0]]) + 1
            for kind, features in kinds.items()
        }
        try:
            copies = {
                kind: _copied(features, {video.row: getattr(video, kind) for video in videos}, first[kind])
                for kind, features in kinds.items()
            }
            with catalogue.transaction():
                catalogue.forget_removed()
                for video in videos:
                    frames, cues = (extents.get(video.row) for extents, _ in copies.values())
                    catalogue.relocate(video.row, frames, cues)
                for kind, (_, end) in copies.items():
                    catalogue.set_feature_end(kind, *end)
        finally:
            for kind, features in kinds.items():
                _delete_unused(features, first[kind], catalogue.feature_end(kind)[0])
        store.stills.keep_only({video.hash for video in videos})
        return before - _bytes(store)


def _delete_unused(features: FeatureShards, first: int, end: int) -> None:
    """Delete the old shards, or the new ones, from the first on, if the catalogue ends in an old one: what a
    failed compaction has copied would keep a full disk full.
    """
    for number, path in features.shards().items():
        if (number < first) == (end >= first):
            path.unlink()
    features.let_go()


def _copied(
    features: FeatureShards, extents: dict[int, Extent | None], shard: int
) -> tuple[dict[int, Extent], tuple[int, int]]:
    """The rows of videos, by row number, copied to shards from a number on: their extents, and their end."""
    end, copies = (shard, 0), {}
    for row, extent in extents.items():
        if extent is None:
            continue
        if not features.intact(extent):
            raise LibraryError(f"{features.kind}: damaged features; run `moviola repair` first")
        copies[row] = copy = features.append(features.read(extent), end)
        end = copy.shard, copy.offset + copy.count
    return copies, end


def _bytes(store: LibraryStore) -> int:
    return sum(path.stat().st_size for path in (store.folder / "features").glob("*.f16"))
