"""Checks of a library: everything that is stored, compared with everything that says what should be.

Others may write meanwhile: catalogue and features are read in one state, and files that lag behind it are not
reported while a writer is at work.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from moviola.errors import (
    DamagedSettings,
    DataError,
    FeaturesAway,
    IndexServerError,
    LibraryError,
    MoviolaError,
    NotFound,
    SegmentIndexError,
    counted,
)
from moviola.features import Extent, FeatureShards, MappedShard
from moviola.files.presence import is_folder
from moviola.index import backends_of, load_index
from moviola.library.derived.indexes import INDEXES, index_recipe, piece_counts
from moviola.library.disk.catalogue import ShotRow, VideoRow
from moviola.library.disk.database import is_kept_from
from moviola.library.disk.disk_cache import damaged_in_cache
from moviola.library.disk.lock import is_being_written
from moviola.library.disk.models_in_use import NONE, ROLES
from moviola.library.disk.places import Copy, present_path, root_of
from moviola.library.disk.searching_models import require_intact
from moviola.library.disk.settings import FORMAT_VERSION, SETTINGS_FILE
from moviola.library.disk.store import LibraryStore
from moviola.library.disk.upgrade import require_fitting
from moviola.library.disk.video_table import VideoTable
from moviola.library.userdata.concepts import concepts_of, read_concept
from moviola.retrieval.saved.graphs import require_intact_graphs
from moviola.retrieval.segments import pack_ids

__all__ = ["LostShard", "Problem", "command", "lost_shards", "parts_damaged", "still_problems", "verify"]

# Frames that a whole video lacks from which on a part of it is missing; a part has some batches of these.
_MISSING = 32

# What a writer leaves that was ended after it had changed the catalogue or the settings; answers are whole.
_LAGS = "no damage: searches complete it in memory, and the next write brings it up to date"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a video, or of the library as a whole, whose id is empty.

    ``repairable`` problems are fixed by :func:`moviola.library.repair`, as ``repair`` says; the others need a
    person (a file that is gone). ``commands`` mend it, one after the other; none where only a copy of the
    file does. What any of them takes away can be brought back. ``is_damage`` is False of what is merely not
    up to date, without which every answer is whole: an index, after an interruption.
    """

    video_id: str
    message: str
    repairable: bool
    commands: tuple[str, ...] = ()
    repair: str = ""
    is_damage: bool = True


def command(library: Path, *words: str) -> str:
    """A command on a library, quoted for a shell."""
    return shlex.join(["moviola", *words, "--library", str(library)])


@dataclass(frozen=True, eq=False)
class _State:
    """One state of a library: its searchable videos, and what the catalogue has of each by row number; the
    maps of its features, which a compaction may delete meanwhile.
    """

    generation: int
    videos: list[VideoRow]
    cues: Mapping[int, int]
    shots: Mapping[int, list[ShotRow]]
    copies: Mapping[int, list[Copy]]
    held: tuple[tuple[MappedShard, ...] | None, ...]

    @classmethod
    def of(cls, store: LibraryStore) -> _State:
        catalogue = store.catalogue
        while True:
            with catalogue.snapshot():
                generation = catalogue.generation
                videos = [video for video in catalogue.videos() if video.state != "refused"]
                cues = {video.row: len(catalogue.cues(video.row)) for video in videos}
                shots = catalogue.shots_of([video.row for video in videos])
                copies: dict[int, list[Copy]] = defaultdict(list)
                for copy in catalogue.copies():
                    copies[copy.video].append(copy)
            table = VideoTable.of(videos)
            held = store.frame_features.hold(table.frames), store.cue_features.hold(table.cues)
            # A compaction may just have moved what is missing; if none has, it is damage.
            if None not in held or catalogue.generation == generation:
                return cls(generation, videos, cues, shots, copies, held)


def verify(store: LibraryStore) -> list[Problem]:
    """Check everything: catalogue, every feature byte, indexes, what people keep, source files. Changes
    nothing. Findings that are no damage (:class:`Problem`) are in it, too.
    """
    damage = store.catalogue.integrity_problem()
    if damage:
        return [Problem("", f"catalogue.sqlite: {damage}; restore it from a copy", False)]
    store.refresh()
    state = _State.of(store)
    lost = lost_shards(store, state.videos)
    if lost and store.catalogue.generation != state.generation:
        lost = []  # a compaction has moved what was there
    problems = [Problem("", one.message, False) for one in lost]
    if not lost and store.settings.format_version < FORMAT_VERSION:
        problems += _older_settings_problems(store)
    if not problems:
        for video in state.videos:
            problems += _video_problems(store, video, state)
    damaged = {problem.video_id for problem in problems if problem.repairable}
    sound = VideoTable.of(video for video in state.videos if video.video_id not in damaged)
    return [
        *problems, *_source_problems(store, state), *_index_problems(store, sound, state.generation),
        *_cache_problems(store), *_model_problems(store), *still_problems(store), *_kept_problems(store),
        *_concept_problems(store),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LostShard:
    """Features that are not where they were: their file, or the folder of all; why; ids of the videos that
    lie there; and their kind.
    """

    path: Path
    reason: str
    video_ids: tuple[str, ...]
    kind: Literal["frames", "cues"]

    @property
    def message(self) -> str:
        videos = counted(len(self.video_ids), "video")
        return (
            f"{self.path}: {self.reason}, and features of {videos} lie there; put it back from a copy, or "
            "connect its drive. Nothing is taken out of the library for that"
        )


def lost_shards(store: LibraryStore, videos: Sequence[VideoRow]) -> list[LostShard]:
    """Files of features, or their folder, that are missing, empty, or cannot be read."""
    lost = []
    kinds: tuple[tuple[Literal["frames", "cues"], FeatureShards], ...] = (
        ("frames", store.frame_features), ("cues", store.cue_features),
    )  # fmt: skip
    for kind, features in kinds:
        held: dict[int, list[VideoRow]] = defaultdict(list)
        for video in videos:
            extent: Extent | None = getattr(video, kind)
            if extent is not None and extent.count:
                held[extent.shard].append(video)
        for number, there in held.items():
            try:
                features.require_there(number)
            except FeaturesAway as error:
                missing = not is_folder(features.folder)
                path = features.folder if missing else features.shard(number)
                reason = "not there" if missing else str(error).removeprefix(f"{path}: ").partition(";")[0]
                lost.append(LostShard(path, reason, tuple(video.video_id for video in there), kind))
    return lost


def _older_settings_problems(store: LibraryStore) -> Iterator[Problem]:
    """Whether settings that bear no digest fit what is stored."""
    try:
        require_fitting(store.folder, store.catalogue, store.settings)
    except DamagedSettings as error:
        yield Problem("", str(error), False)


def still_problems(store: LibraryStore) -> Iterator[Problem]:
    """Damage of the small stills."""
    try:
        damage = store.stills.problem()
    except LibraryError as error:
        if is_kept_from(store.stills.path, error):
            yield Problem("", f"{error}; answers stay the same", False)
            return
        damage = str(error)
    if damage:
        message = f"stills.sqlite: {damage}; answers stay the same"
        repair = "moves the file to backups/; indexing makes stills of new videos"
        yield Problem("", message, True, (command(store.folder, "repair"),), repair)


def _kept_problems(store: LibraryStore) -> Iterator[Problem]:
    """Whether what people keep can be read, which no repair brings back."""
    from moviola.library.userdata.entries import UserData  # which a search does without

    try:
        with closing(UserData(store.folder)) as userdata:
            if damage := userdata.problem():
                yield Problem("", f"{userdata.path}: {damage}; {userdata.remedy}", False)
            else:
                userdata.entries()
                for name in userdata.pictures():
                    userdata.picture(name)
    except LibraryError as error:
        yield Problem("", str(error), False)


def _concept_problems(store: LibraryStore) -> Iterator[Problem]:
    for name in concepts_of(store.folder):
        try:
            read_concept(store.folder, store.settings, name)
        except NotFound:  # it was deleted this moment
            continue
        except MoviolaError as error:
            yield Problem("", str(error), False)


def _video_problems(store: LibraryStore, video: VideoRow, state: _State) -> Iterator[Problem]:
    """Damage of what is stored of a video."""
    root = root_of(video.path, store.catalogue.roots())  # by it the video gets the same id again
    index = command(store.folder, "index", root.path if root else video.path)
    repair = command(store.folder, "repair")
    unread: list[FeaturesAway] = []
    for damage in _damage(store, video, state.cues[video.row], state.shots.get(video.row, []), unread):
        commands = (repair, index) if damage.needs_file else (repair,)
        yield Problem(video.video_id, damage.message, True, commands, damage.repair)
    for error in unread:
        yield Problem(video.video_id, str(error), False)


def _source_problems(store: LibraryStore, state: _State) -> Iterator[Problem]:
    """Films that are gone, or others than they were."""
    for video in state.videos:
        problem = _source_problem(store, video, state.copies[video.row])
        if problem is None:
            continue
        # A writer may have followed it meanwhile.
        if store.catalogue.generation != state.generation:
            now = store.catalogue.videos_named([video.video_id]).get(video.video_id)
            problem = _source_problem(store, now, store.catalogue.copies_of(now.row)) if now else None
        if problem is not None:
            yield problem


def _source_problem(store: LibraryStore, video: VideoRow, copies: Sequence[Copy]) -> Problem | None:
    source = present_path(video, copies, store.catalogue.roots())
    try:
        size = None if source is None else source.stat().st_size
    except OSError:  # gone this moment
        size = None
    if size is None:
        message = f"{video.path}: not there; plug its drive in, index it at its new place, or remove it"
        return Problem(video.video_id, message, False, (command(store.folder, "remove", video.video_id),))
    if size != video.size:
        message = f"{video.path}: the file has changed; index it again"
        root = root_of(video.path, store.catalogue.roots())
        index = command(store.folder, "index", root.path if root else video.path)
        return Problem(video.video_id, message, False, (index,))
    return None


@dataclass(frozen=True, slots=True)
class _Damage:
    """Damage of one part of what is stored of a video, and what a repair does about it; ``needs_file``: only
    indexing its file again brings the part back.
    """

    part: Literal["frames", "missing", "cues", "shots"]
    message: str
    repair: str
    needs_file: bool = True


def parts_damaged(store: LibraryStore, video: VideoRow) -> set[str]:
    """The parts of what is stored of a video now that are damaged."""
    cues, shots = store.catalogue.cues(video.row), store.catalogue.shots(video.row)
    return {damage.part for damage in _damage(store, video, len(cues), shots, [])}


def _damage(
    store: LibraryStore, video: VideoRow, cues: int, shots: Sequence[ShotRow], unread: list[FeaturesAway]
) -> Iterator[_Damage]:
    """Damage of a video with a number of cues, and its shots. Features that cannot be read now are none; why
    goes to ``unread``.
    """
    if _is_damaged(store.frame_features, video.frames, unread):
        message = "frame features are damaged; index the video again"
        yield _Damage(
            "frames", message, "takes the video out; `moviola library restore` brings back whole ones"
        )
    elif missing := _missing_seconds(store, video):
        message = f"pictures of {missing:.0f} of its {video.duration:.0f} seconds are missing"
        yield _Damage("missing", message, "keeps the others, and marks the video to be encoded again")
    if video.cues is not None and video.cues.count != cues:
        message = f"{cues} cues but {video.cues.count} features; index again"
        yield _Damage("cues", message, "keeps those that are there, and marks the video to be read again")
    elif _is_damaged(store.cue_features, video.cues, unread):
        message, repair = "subtitle features are damaged", "computes them again from the texts"
        yield _Damage("cues", message, repair, needs_file=False)
    if not _follow_each_other(shots, video.duration):
        message = "its shots do not follow each other; index the video again"
        yield _Damage("shots", message, "drops them, to be found again when the file is indexed")


def _missing_seconds(store: LibraryStore, video: VideoRow) -> float:
    """Seconds of a whole video of which no features are stored, where it is a part or more."""
    if video.frames is None or video.state != "ready":
        return 0.0
    missing = video.duration - video.frames.count / store.settings.frame_rate
    return missing if missing * store.settings.frame_rate >= _MISSING else 0.0


def _is_damaged(features: FeatureShards, extent: Extent | None, unread: list[FeaturesAway]) -> bool:
    try:
        return extent is not None and not features.intact(extent)
    except FeaturesAway as error:
        unread.append(error)
        return False


def _follow_each_other(shots: Sequence[ShotRow], duration: float) -> bool:
    """Whether shots cover a video from its beginning to its end."""
    starts = [shot.start for shot in shots]
    return not shots or (
        shots[0] == ShotRow(0, "start")
        and starts[-1] < duration
        and starts == sorted(set(starts))
        and {shot.opening for shot in shots[1:]} <= {"cut", "dissolve", "fade", "wipe"}
    )


def _index_problems(store: LibraryStore, sound: VideoTable, generation: int) -> Iterator[Problem]:
    """Compare each published index with what the features say it should hold."""
    for name in INDEXES:
        before = _moment(store, name)
        for problem, lags in _index_problem(store, name, sound):
            # Indexes are published after the videos: while a writer is at work, they lag behind.
            at_rest = not before[0] and before[1] == generation and before == _moment(store, name)
            if at_rest or not lags:
                yield problem


def _moment(store: LibraryStore, name: str) -> tuple[Any, ...]:
    """What differs when another process writes, or has written: whether it is so now, the generation of the
    catalogue, and the files of the settings and of an index.
    """
    stamps = []
    for path in (store.folder / SETTINGS_FILE, store.folder / "index" / f"{name}.json"):
        try:
            status = path.stat()
            stamps.append((status.st_ino, status.st_mtime_ns))
        except OSError:
            stamps.append((0, 0))
    return is_being_written(store.folder), store.catalogue.generation, *stamps


def _index_problem(store: LibraryStore, name: str, sound: VideoTable) -> Iterator[tuple[Problem, bool]]:
    """The problem of an index, and whether it only lags behind."""
    mend, repair = (command(store.folder, "repair"),), "rebuilds it from the features"
    try:
        backends = backends_of(store.settings.index)
        loaded = load_index(store.folder / "index", name, backends, thorough=True)
    except IndexServerError as error:
        yield Problem("", f"index {name}: {error}", False), False
        return
    except SegmentIndexError as error:
        yield Problem("", f"{error} (it is rebuilt from the features)", True, mend, repair), False
        return
    counts = piece_counts(store, name, sound).tolist()
    wanted = [pack_ids(row, count) for row, count in zip(sound, counts, strict=True)]
    ids = np.sort(np.concatenate(wanted)) if wanted else np.empty(0, np.int64)
    if loaded is None:
        wrong = "missing" if len(ids) else ""
    elif loaded[1] != index_recipe(store, name):
        wrong = f"made as {loaded[1]!r}, not as {index_recipe(store, name)!r}"
    elif not np.array_equal(np.sort(loaded[0].ids()), ids):
        wrong = f"{len(loaded[0])} vectors, the features give {len(ids)}"
    else:
        wrong = ""
    if wrong:
        yield Problem("", f"index {name}: {wrong}; {_LAGS}", True, mend, repair, is_damage=False), True


def _cache_problems(store: LibraryStore) -> Iterator[Problem]:
    # Before format 2 there were no digests.
    for path in damaged_in_cache(store.folder) if store.settings.format_version > 1 else ():
        name = path.relative_to(store.folder).as_posix()
        message = f"{name}: damaged; searches ignore it, and it is rebuilt"
        yield Problem("", message, True, (command(store.folder, "repair"),), "makes it again")


def _model_problems(store: LibraryStore) -> Iterator[Problem]:
    for role in ROLES:
        if getattr(store.settings, role):
            try:
                require_intact_graphs(require_intact(store.folder, role, store.settings))
            except (LibraryError, DataError) as error:
                without = command(store.folder, "library", "use", f"--{role}", NONE)
                yield Problem("", str(error), False, (without,))
