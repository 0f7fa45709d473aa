"""Which videos of a library are the same, byte by byte, or show the same: the whole film in another
encoding, or a part.

Candidates come from the library's own index of segments: videos whose segments are nearest to one's own.
Fingerprints (:mod:`moviola.library.disk.fingerprints`) decide whether they show the same, and when.
Results are kept in ``cache/copies.table`` by the digests of the videos' files, with those of videos that were
taken out and may come back: a later call compares what is new. So is what a call has found that was stopped.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError
from moviola.files.array_file import map_sealed_arrays, write_sealed_arrays
from moviola.library.derived.indexes import current_index, piece_vectors
from moviola.library.disk.disk_cache import COPIES_FILE
from moviola.library.disk.fingerprints import aligned
from moviola.library.disk.store import LibraryStore
from moviola.library.disk.video_table import VideoTable
from moviola.retrieval.segments import unpack_ids
from moviola.threads import one_blas_thread
from moviola.types import Span

__all__ = [
    "COPIES_FILE", "ExactCopies", "KnownCopies", "NearCopies", "by_certainty", "exact_copies",
    "find_near_copies", "known_copies", "known_pairs", "without_fingerprint",
]  # fmt: skip

# Nearest segments of each, and of the videos that hold them those that are compared.
_SEGMENTS, _VIDEOS = 80, 16
# Share of both videos that the same film has at least.
_WHOLE = 0.8
# Copies of one video, which are compared with each other.
_FAMILY = 40
_COLUMNS = {"contents": "u1", "steps": "u1", "pairs": "<i8", "spans": "<f8", "certainty": "<f8"}
# Steps of a content: it was compared with what is like it, and its copies with each other.
_COMPARED, _JOINED = 1, 2
# Share of the work that the first step is.
_FIRST = 0.9


@dataclass(frozen=True, slots=True)
class ExactCopies:
    """Files of the same content that are there now, each of ``size`` bytes; the library has several videos
    of them only if it was built before copies were known.

    ``away`` are further paths that cannot be seen now, of a folder that is away or of a file that is gone:
    they are no copies that anybody could rely on.
    """

    video_ids: tuple[str, ...]
    paths: tuple[str, ...]
    size: int
    away: tuple[str, ...] = ()

    @property
    def wasted(self) -> int:
        """Bytes that all copies but one take."""
        return self.size * (len(self.paths) - 1)


def exact_copies(store: LibraryStore) -> list[ExactCopies]:
    """All duplicates of a library, largest first: by sizes and hashes at the time of indexing, of files that
    are there now with that size. Links to one file are one.
    """
    further = defaultdict(list)
    for copy in store.catalogue.copies():
        further[copy.video].append(copy.path)
    same = defaultdict(list)
    for video in store.catalogue.videos():
        if video.state != "refused":
            same[video.hash].append(video)
    groups = []
    for videos in same.values():
        paths = [path for video in videos for path in (video.path, *further[video.row])]
        if len(paths) > 1:
            size, names = videos[0].size, tuple(video.video_id for video in videos)
            there = {path: place for path in paths if (place := _place_of(path, size))}
            distinct = {place: path for path, place in reversed(there.items())}
            away = tuple(path for path in paths if path not in there)
            groups.append(ExactCopies(names, tuple(reversed(distinct.values())), size, away))
    several = (copies for copies in groups if len(copies.paths) > 1)
    return sorted(several, key=lambda copies: (-copies.wasted, copies.video_ids))


def _place_of(path: str, size: int) -> tuple[int, int] | None:
    """Volume and number of the file of a path, by which links to one file are known; None where none of this
    size is there.
    """
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status.st_size == size else None


@dataclass(frozen=True, slots=True)
class NearCopies:
    """Two videos that show the same, the longer one first: in nearly all of both (``"same"``), or in a part.

    ``spans`` are those of the stretch, in seconds of each; ``certainty`` says how well the pictures and what
    changes in them go together, up to 1.
    """

    kind: Literal["same", "part"]
    video_ids: tuple[str, str]
    spans: tuple[Span, Span]
    certainty: float


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two videos by row numbers, the longer first, with the span that each shares with the other."""

    rows: tuple[int, int]
    spans: tuple[Span, Span]
    certainty: float


class KnownCopies:
    """What was found, by video: where a moment of one is shown in others."""

    def __init__(self, pairs: Iterable[_Pair] = ()) -> None:
        self._of: dict[int, dict[int, tuple[Span, Span]]] = defaultdict(dict)
        for pair in pairs:
            (one, other), (own, its) = pair.rows, pair.spans
            self._of[one][other] = own, its
            self._of[other][one] = its, own

    @classmethod
    def joined(
        cls, parts: Mapping[int, KnownCopies], same: Iterable[Sequence[tuple[int, float]]] = ()
    ) -> KnownCopies:
        """The copies that several libraries know, by a number that is added to the rows of each, and groups
        of videos of one content by row number, with their seconds.
        """
        found = cls(
            _Pair((one, other), (Span(0.0, seconds), Span(0.0, seconds)), 1.0)
            for group in same
            for (one, seconds), (other, _) in combinations(group, 2)
        )
        for first, part in parts.items():
            for row, others in part._of.items():
                found._of[row + first] |= {other + first: spans for other, spans in others.items()}
        return found

    def __bool__(self) -> bool:
        return bool(self._of)

    def copies_of(self, row: int) -> AbstractSet[int]:
        """Row numbers of the videos that share something with one."""
        return self._of[row].keys() if row in self._of else frozenset()

    def families(self) -> Iterator[tuple[int, list[int]]]:
        """The row number of each video that has copies, and those of some of them, rising."""
        yield from ((row, sorted(copies)[:_FAMILY]) for row, copies in self._of.items())

    def there(self, row: int, span: Span, other: int) -> Span | None:
        """The span of another video that shows a moment of one; None if it shows less than half of it."""
        spans = self._of[row].get(other) if row in self._of else None
        if spans is None or spans[0].intersection(span) < span.duration / 2:
            return None
        later = spans[1].start - spans[0].start
        start = max(span.start + later, 0.0)
        return Span(start, max(span.end + later, start + 1e-3))


def known_copies(store: LibraryStore) -> KnownCopies:
    """What :func:`find_near_copies` has found so far, to be asked for moments."""
    return KnownCopies(_read(store.folder).pairs_in(store))


def known_pairs(store: LibraryStore) -> list[NearCopies]:
    """What :func:`find_near_copies` has found so far of videos that are there, the surest first."""
    return _named(store, _read(store.folder).pairs_in(store))


@one_blas_thread()
def find_near_copies(
    store: LibraryStore, progress: Callable[[float], None] = lambda _: None
) -> list[NearCopies]:
    """Compare what was not compared yet, and keep what is found; searches fold it from then on.

    Videos without a fingerprint (:func:`without_fingerprint`) are passed over until they have one. A library
    that is open read-only keeps nothing. ``progress`` is called with the share of the work that is done, from
    0 to 1; an error that it raises stops the work, and what was found until then is kept. Returns all that is
    known, the surest first.
    """
    videos, known = store.searchable(), _read(store.folder)
    contents = {row: video.hash for row, video in videos.items()}
    pairs = known.pairs_in(store)
    compare = _Comparison(store, videos, {_key(pair.rows): pair for pair in pairs})
    steps = {row: known.steps.get(content, 0) for row, content in contents.items()}
    fresh = {row for row, step in steps.items() if step < _JOINED}
    try:
        if fresh:
            _compare(store, compare, steps, progress)
    finally:
        if fresh and not store.read_only:
            lacking = set(without_fingerprint(store))
            there = {contents[row] for row in videos if videos[row].video_id not in lacking}
            there |= {removed.hash for removed in store.catalogue.removed()}
            own = {tuple(contents[row] for row in pair.rows): pair for pair in compare.found()}
            found = {both: pair for both, pair in {**known.pairs, **own}.items() if there.issuperset(both)}
            done = {**known.steps, **{contents[row]: step for row, step in steps.items()}}
            _write(store.folder, {one: done.get(one, 0) for one in sorted(there)}, found)
    return _named(store, compare.found())


def _compare(
    store: LibraryStore, compare: _Comparison, steps: dict[int, int], progress: Callable[[float], None]
) -> None:
    """Both steps for the rows that lack them; ``steps``, by row, are noted as they are done."""
    fresh = [row for row, step in sorted(steps.items()) if step < _JOINED]
    new = [row for row in fresh if steps[row] < _COMPARED]
    for number, (row, others) in enumerate(_candidates(store, compare.videos, new)):
        progress(_FIRST * number / len(new))
        for other in others:
            compare(row, other)
        steps[row] = _COMPARED
    families = list(KnownCopies(compare.found()).families())
    for number, (owner, copies) in enumerate(families):
        progress(_FIRST + (1 - _FIRST) * number / len(families))
        for one, other in combinations(copies, 2):
            # The others were compared when they came.
            if any(steps[row] < _JOINED for row in (owner, one, other)):
                compare(one, other)
    steps |= dict.fromkeys(fresh, _JOINED)
    progress(1.0)


def without_fingerprint(store: LibraryStore) -> list[str]:
    """Ids of the videos without a fingerprint: indexed before these were kept, and not since."""
    kept = store.stills.with_fingerprint()
    videos = store.catalogue.videos()
    return [video.video_id for video in videos if video.frames is not None and video.hash not in kept]


class _Comparison:
    """Compares videos, each pair once."""

    def __init__(self, store: LibraryStore, videos: VideoTable, known: dict[tuple[int, int], _Pair]) -> None:
        self.videos = videos
        self._fingerprint = lru_cache(maxsize=4096)(lambda row: store.stills.fingerprint(videos[row].hash))
        self._known: dict[tuple[int, int], _Pair | None] = {**known}

    def __call__(self, one: int, other: int) -> None:
        if one != other and (key := _key((one, other))) not in self._known:
            self._known[key] = self._pair(*key)

    def found(self) -> list[_Pair]:
        return [pair for pair in self._known.values() if pair is not None]

    def _pair(self, *rows: int) -> _Pair | None:
        longer, shorter = sorted(rows, key=lambda row: (-self.videos[row].duration, row))
        one, other = self._fingerprint(longer), self._fingerprint(shorter)
        if one is None or other is None or (found := aligned(one, other)) is None:
            return None
        later = found.later
        # Both end where the shorter does: the last frame stands for less than its time.
        first = max(found.start, -later, 0.0)
        last = min(found.end, self.videos[longer].duration, self.videos[shorter].duration - later)
        if last <= first:
            return None
        spans = Span(first, last), Span(max(first + later, 0.0), last + later)
        return _Pair((longer, shorter), spans, found.agreement)


def _key(rows: tuple[int, int]) -> tuple[int, int]:
    return min(rows), max(rows)


def _candidates(
    store: LibraryStore, videos: VideoTable, rows: Iterable[int]
) -> Iterator[tuple[int, list[int]]]:
    name = "pictures" if store.settings.picture_dim else "segments"
    index, _ = current_index(store, name, videos)
    for row in rows:
        vectors = piece_vectors(store, name, videos[row])
        if index is None or not len(vectors):
            continue
        scores, ids = index.search(vectors, _SEGMENTS)
        votes: dict[int, float] = defaultdict(float)
        for near, others in zip(scores, unpack_ids(ids)[0], strict=True):
            best, places = np.unique(others, return_index=True)  # scores fall, so the first is the best
            for other, score in zip(best.tolist(), near[places].tolist(), strict=True):
                if other != row:
                    votes[other] += score - float(near[-1])  # a part stands out from what is merely like it
        yield row, sorted(votes, key=lambda other: (-votes[other], other))[:_VIDEOS]


def _named(store: LibraryStore, pairs: Iterable[_Pair]) -> list[NearCopies]:
    videos = store.searchable()
    found = []
    for pair in pairs:
        if all(row in videos for row in pair.rows):
            one, other = (videos[row] for row in pair.rows)
            both = zip(pair.spans, (one, other), strict=True)
            whole = all(span.duration >= _WHOLE * video.duration for span, video in both)
            ids = one.video_id, other.video_id
            found.append(NearCopies("same" if whole else "part", ids, pair.spans, pair.certainty))
    return sorted(found, key=by_certainty)


def by_certainty(copies: NearCopies) -> tuple[bool, float, tuple[str, ...]]:
    """What copies are sorted by: whole films first, then the surest."""
    return copies.kind != "same", -copies.certainty, copies.video_ids


@dataclass(frozen=True)
class _Kept:
    """Known results, by contents: the step of each, and pairs, whose ``rows`` are of another state."""

    steps: Mapping[str, int]
    pairs: Mapping[tuple[str, ...], _Pair]

    def pairs_in(self, store: LibraryStore) -> list[_Pair]:
        """The pairs of the videos that a library has now."""
        rows = store.catalogue.rows_with({content for pair in self.pairs for content in pair})
        found = []
        for (one, other), pair in self.pairs.items():
            both = product(rows.get(one, ()), rows.get(other, ()))
            found += [replace(pair, rows=(a, b)) for a, b in both if (a < b if one == other else a != b)]
        return found


def _read(folder: Path) -> _Kept:
    """What was found; nothing where the file is missing, damaged or of an earlier form."""
    try:
        arrays = map_sealed_arrays(folder / COPIES_FILE, _COLUMNS)
    except DataError:
        return _Kept({}, {})
    contents = json.loads(arrays["contents"].tobytes())
    pairs, spans, certainty = (arrays[name].tolist() for name in ("pairs", "spans", "certainty"))
    return _Kept(
        {one: step for one, step in zip(contents, arrays["steps"].tolist(), strict=True) if step},
        {
            (contents[one], contents[other]): _Pair((0, 0), (Span(*own), Span(*its)), sure)
            for (one, other), (own, its), sure in zip(pairs, spans, certainty, strict=True)
        },
    )


def _write(folder: Path, steps: Mapping[str, int], pairs: Mapping[tuple[str, ...], _Pair]) -> None:
    place = {content: number for number, content in enumerate(steps)}
    spans = [[(span.start, span.end) for span in pair.spans] for pair in pairs.values()]
    columns: tuple[NDArray[Any], ...] = (
        np.frombuffer(json.dumps([*steps]).encode(), np.uint8),
        np.array([*steps.values()], np.uint8),
        np.array([[place[one] for one in both] for both in pairs], np.int64).reshape(-1, 2),
        np.array(spans, np.float64).reshape(-1, 2, 2),
        np.array([pair.certainty for pair in pairs.values()], np.float64),
    )
    arrays = zip(_COLUMNS, zip(columns, _COLUMNS.values(), strict=True), strict=True)
    write_sealed_arrays(folder / COPIES_FILE, dict(arrays))
