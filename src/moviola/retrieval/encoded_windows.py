"""Windows of videos in whole clips: around proposals, as batches, and encoded once for all queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from moviola.features import EncodingCache, Integers, VideoFeatures
from moviola.retrieval.saved.clip_windows import ClipWindows, clip_windows, pool_clips

__all__ = ["EncodedWindows", "context_windows", "padded_rows", "read_windows"]

Floats = NDArray[np.float32]

# Windows are padded to a multiple of this number of clips.
_CLIPS = 8
# Maximum float32 numbers of encoded windows kept for one library or folder.
_STORED = 1 << 27


def context_windows(
    features: VideoFeatures,
    video: Integers,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    *,
    context: float,
    max_clips: int,
) -> ClipWindows:
    """Stretches of videos with ``context`` seconds on both sides (tau_C; SPR, section 3.3), in whole clips.

    Args:
        video, start, end: (N,) places of videos, and seconds in them.
        context: >= 0.
        max_clips: maximum clips of a model; a longer window is pooled.
    """
    return clip_windows(
        np.maximum(start - context, 0),
        np.minimum(end + context, features.durations[video]),
        features.counts[video],
        clip_seconds=features.clip_seconds,
        longest=max_clips,
    )


def padded_rows(arrays: Sequence[Floats], length: int = 0) -> tuple[Floats, Floats]:
    """Arrays (n_i, ...), at least one, as one (N, L, ...) padded with zeros, and its mask (N, L).

    L is ``length``, or for 0 that of the longest.
    """
    longest = length or max(map(len, arrays))
    out = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), np.float32)
    mask = np.zeros((len(arrays), longest), np.float32)
    for row, array in enumerate(arrays):
        out[row, : len(array)] = array
        mask[row, : len(array)] = 1
    return out, mask


def read_windows(
    features: VideoFeatures, video: Integers, windows: ClipWindows, length: int = 0
) -> tuple[Floats, Floats, Floats | None]:
    """Features of N windows as a model sees them: visual (N, L, d), mask (N, L) and subtitles (N, L, d).

    ``video`` (N,) are places of videos, L as in :func:`padded_rows`.
    """
    bounds = (video, windows.first, windows.stop, windows.clips)
    places = list(zip(*(column.tolist() for column in bounds), strict=True))
    seen = [pool_clips(features.read(*place), clips) for *place, clips in places]
    heard = [(features.read_subtitles(*place), clips) for *place, clips in places]
    said = [pool_clips(rows, clips) for rows, clips in heard if rows is not None]
    return *padded_rows(seen, length), padded_rows(said, length)[0] if said else None


Encode = Callable[[Floats, Floats, Floats | None], Floats]
"""Encoder of N windows: visual features, mask and subtitles to (N, L, ...)."""


@dataclass
class _Kept:
    """Encoded windows of the videos that share a cache, by video, first and last clip."""

    windows: dict[tuple[int, int, int], Floats] = field(default_factory=dict)
    numbers: int = 0

    def add(self, fresh: dict[tuple[int, int, int], Floats], most: int) -> None:
        """Add windows; all earlier ones are dropped if there would be more than ``most`` numbers."""
        count = sum(part.size for part in fresh.values())
        if fresh and self.numbers + count > most:
            self.windows, self.numbers = {}, 0
        self.windows.update({key: part.copy() for key, part in fresh.items()})  # not the batch's padding
        self.numbers += count


@dataclass
class EncodedWindows:
    """Windows encoded once for all queries: the encoders of windows do not see the query.

    A compiled graph gives a window the same numbers in a batch of any size, to the bit, but padding counts.
    So a window is padded to a length of its own: what is kept of it does not depend on who asked first.

    Attributes:
        encode: see :data:`Encode`.
        batch: windows per batch, at most.
        fixed: clips to which windows are padded, and kept so, for a model with reference padding; 0: as many
            as they have, rounded up to a multiple of 8.
        most: maximum numbers kept.
    """

    encode: Encode
    batch: int = 64
    fixed: int = 0
    most: int = _STORED
    _stored: WeakKeyDictionary[EncodingCache, _Kept] = field(default_factory=WeakKeyDictionary)

    def __call__(
        self, features: VideoFeatures, video: Integers, windows: ClipWindows
    ) -> tuple[Floats, Floats]:
        """Encodings of N windows (N, L, ...), and the mask (N, L) float32."""
        # Videos that share a cache share numbers, so these are the keys of windows.
        stored = self._stored.setdefault(features.cache, _Kept())
        known = stored.windows
        keys = list(
            zip(features.keys[video].tolist(), windows.first.tolist(), windows.stop.tolist(), strict=True)
        )
        encoded = {key: known[key] for key in keys if key in known}
        missing = {key: place for place, key in enumerate(keys) if key not in encoded}
        for length, places in self._by_length(windows, np.array([*missing.values()], np.int64)):
            for begin in range(0, len(places), self.batch):
                chunk = places[begin : begin + self.batch]
                parts = self.encode(*read_windows(features, video[chunk], windows.take(chunk), length))
                for place, part in zip(chunk.tolist(), parts, strict=True):
                    encoded[keys[place]] = part[: self.fixed or windows.clips[place]]
        stored.add({key: encoded[key] for key in missing}, self.most)
        kept, _ = padded_rows([encoded[key] for key in keys])
        there = np.arange(kept.shape[1]) < windows.clips[:, None]
        return kept, there.astype(np.float32)

    def _by_length(self, windows: ClipWindows, places: Integers) -> Iterator[tuple[int, Integers]]:
        """Some windows by the number of clips to which they are padded."""
        clips = windows.clips[places]
        lengths = np.full_like(clips, self.fixed) if self.fixed else -(-clips // _CLIPS) * _CLIPS
        for length in np.unique(lengths).tolist():
            yield length, places[lengths == length]
