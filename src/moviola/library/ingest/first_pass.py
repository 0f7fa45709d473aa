"""A first pass over films: key frames alone, so that all of a folder is found long before all is encoded.

Each moment of a film has the features of the key frame that is nearest in time. They lie apart from others
(:mod:`moviola.library.disk.unfinished`), and go once the film is in. Shots, stills, words and sounds wait for
the second pass, which is the same as without a first one.

A short film is encoded about as soon as it can be described in this way, and one with few key frames is not
described by them: both come with the second pass alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from moviola.errors import MediaError
from moviola.library.ingest.decode_ahead import side_by_side
from moviola.library.ingest.film_parts import BATCH
from moviola.library.ingest.frame_features import require_no_link
from moviola.library.ingest.plan import FoundFile
from moviola.media import MediaInfo, key_frames, of_one_size, probe, said_by_name
from moviola.threads import compute_threads
from moviola.types import FrameSize

__all__ = ["Glimpse", "glimpses", "newest_first"]

APART = 8.0
"""Seconds from one key frame to the next one that is decoded, at least: of a film in which each picture is
one, few are."""

SHORTEST = 60.0
"""Seconds of the shortest film that has a first pass."""

RAREST = 60.0
"""Seconds for which a key frame may stand, in the mean."""

_DAY, _EPOCH = 86_400 * 10**9, date(1970, 1, 1).toordinal()  # nanoseconds, and the day from which they count


@dataclass(frozen=True, slots=True)
class Glimpse:
    """Key frames of a film: the seconds (k,) float64, rising, from which they are shown, and their features
    (k, d) float32. ``seconds`` is about how long the film is.
    """

    file: FoundFile
    info: MediaInfo
    seconds: float
    times: NDArray[np.float64]
    rows: NDArray[np.float32]

    def moments(self, rate: float) -> NDArray[np.float32]:
        """Features (n, d) float32 of moments ``k / rate`` seconds from the start, each those of the nearest
        key frame.
        """
        at = np.arange(max(1, math.ceil(self.seconds * rate))) / rate
        return self.rows[np.searchsorted((self.times[1:] + self.times[:-1]) / 2, at, side="right")]


@dataclass(frozen=True, slots=True)
class _Batch:
    info: MediaInfo
    times: Sequence[float]
    images: Sequence[NDArray[np.uint8]]


def newest_first(files: Iterable[FoundFile]) -> list[FoundFile]:
    """Files by the second that their names say, the newest one first. A name that says a day alone, and the
    last change, which is often that of a copy, count by the day: such files come after those of that day
    whose second is known. Equals come by path.
    """

    def second(file: FoundFile) -> tuple[int, str]:
        if said := said_by_name(file.path):
            return date.fromisoformat(said[:10]).toordinal() - _EPOCH, said[11:19]
        return file.mtime_ns // _DAY, ""

    return sorted(sorted(files, key=lambda file: file.path), key=second, reverse=True)


def glimpses(
    files: Sequence[FoundFile],
    size: FrameSize,
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    on_frames: Callable[[FoundFile, float], None],
    *,
    own: bool = True,
) -> Iterator[Glimpse | None]:
    """Decode and encode key frames of files, several at once; results come in the order of the files. None
    is one that has no first pass, also one that cannot be read: the second pass says why.

    The arguments are those of :func:`.frame_features.encode_videos`.
    """
    batches: defaultdict[int, list[_Batch]] = defaultdict(list)
    rows: defaultdict[int, list[NDArray[np.float32]]] = defaultdict(list)
    ready: dict[int, Glimpse | None] = {}
    following = 0
    with closing(side_by_side((_batches(file, size, own) for file in files), compute_threads())) as steps:
        for number, batch in steps:
            if batch is not None:
                rows[number] += map(encode, batch.images)
                batches[number].append(batch)
                on_frames(files[number], batch.times[-1])
                continue
            ready[number] = _glimpse(files[number], batches.pop(number, []), rows.pop(number, []))
            while following in ready:
                yield ready.pop(following)
                following += 1


def _glimpse(
    file: FoundFile, batches: Sequence[_Batch], rows: Sequence[NDArray[np.float32]]
) -> Glimpse | None:
    times = np.array([time for batch in batches for time in batch.times], np.float64)
    if not len(times):
        return None
    # A header may be wrong; key frames were looked for up to the end.
    last = float(times[-1])
    seconds = max(last, min(batches[0].info.about, last + RAREST))
    if seconds > RAREST * len(times):
        return None
    return Glimpse(file, batches[0].info, seconds, times, np.concatenate(rows))


def _batches(file: FoundFile, size: FrameSize, own: bool) -> Iterator[_Batch]:
    """The key frames of a film that is long enough."""
    try:
        if own:
            require_no_link(file)
        info = probe(file.path)
        frames = key_frames(file.path, size, APART) if info.about >= SHORTEST else iter(())
        while batch := list(islice(frames, BATCH)):
            yield _Batch(info, [time for time, _ in batch], of_one_size([image for _, image in batch]))
    except (MediaError, OSError):
        return
