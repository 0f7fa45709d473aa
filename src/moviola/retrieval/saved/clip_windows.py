"""From seconds to clips and back: labels to train on, and windows of a video, vectorised throughout.

A model sees a video as L clips of equal length and speaks of a moment as its clip of start and its clip of
end. The releases disagree on which clip the end is (:data:`LABELS`). Windows are as in SPR, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moviola.errors import InvalidValue

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LABELS", "ClipWindows", "LabelConvention", "clip_windows", "pool_clips"]

Clips = TypeVar("Clips", NDArray[np.int64], "Tensor")

# ---- labels ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelConvention:
    """Conversion of seconds into clips of start and end.

    The start is the clip in which the moment starts. With ``end_inside`` the end is the last clip that the
    moment touches; without, it is one clip further, unless the video has no further one. A moment of zero
    length touches the clip in which it lies.
    """

    end_inside: bool

    def labels(
        self, starts: ArrayLike, ends: ArrayLike, clips: ArrayLike, clip_seconds: ArrayLike
    ) -> NDArray[np.int64]:
        """Clips of start and end of N moments: (N, 2) int64 in [0, clips - 1], the end not before the start.

        Args:
            starts, ends: (N,) seconds from the first clip's start; ends are exclusive.
            clips, clip_seconds: (N,) or one number, how many clips there are, and how long a clip is.
        """
        last = np.asarray(clips, dtype=np.int64) - 1
        start = np.floor(np.divide(starts, clip_seconds, dtype=np.float64)).astype(np.int64)
        end = np.ceil(np.divide(ends, clip_seconds, dtype=np.float64)).astype(np.int64) - self.end_inside
        return np.stack([np.clip(start, 0, last), np.clip(np.maximum(start, end), 0, last)], axis=-1)

    def end_clip(self, end: Clips) -> Clips:
        """The clip at whose start the moment is over, from an ``end`` that was learned from these labels."""
        return end + int(self.end_inside)


LABELS: dict[str, LabelConvention] = {
    "tvr_ranking": LabelConvention(end_inside=False),
    "xml": LabelConvention(end_inside=False),
    "conquer": LabelConvention(end_inside=True),
    "spr": LabelConvention(end_inside=True),
}
"""The convention of each release's training labels, by name."""

# ---- windows ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClipWindows:
    """N windows of videos in whole clips, as a model sees them; (N,) each.

    Attributes:
        first, stop: int64, the first stored clip, and one past the last.
        clips: int64, how many clips the model sees: ``stop - first``, or the longest that it takes.
        clip_seconds: float64, length of a clip that the model sees; longer than a stored one where a window
            was pooled.
        start: float64, seconds from the video's start.
    """

    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    clips: NDArray[np.int64]
    clip_seconds: NDArray[np.float64]
    start: NDArray[np.float64]

    @property
    def end(self) -> NDArray[np.float64]:
        """(N,) seconds from the video's start; the last clip may reach beyond the video's end."""
        return self.start + self.clips * self.clip_seconds

    def take(self, rows: NDArray[np.int64]) -> ClipWindows:
        """Some of the windows by place (n,), in the order given."""
        return ClipWindows(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def labels(self, starts: ArrayLike, ends: ArrayLike, convention: LabelConvention) -> NDArray[np.int64]:
        """Clips of moments (N,), in seconds of their video, each cut to its window: (N, 2) int64."""
        inside = (np.clip(np.asarray(t, dtype=np.float64), self.start, self.end) for t in (starts, ends))
        start, end = (t - self.start for t in inside)
        return convention.labels(start, end, self.clips, self.clip_seconds)

    def seconds(
        self, start: ArrayLike, end: ArrayLike, convention: LabelConvention, durations: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Spans decoded in each window (N,), in seconds of their video, cut at its duration (N,)."""
        stop = convention.end_clip(np.asarray(end, dtype=np.int64))
        return (
            self.start + np.asarray(start) * self.clip_seconds,
            np.minimum(self.start + stop * self.clip_seconds, durations),
        )


def clip_windows(
    starts: ArrayLike, ends: ArrayLike, clips: ArrayLike, *, clip_seconds: float = 1.5, longest: int = 128
) -> ClipWindows:
    """Widens N windows to whole clips (SPR, section 3.3; context is already part of the window).

    Args:
        starts, ends: (N,) seconds from the video's start, >= 0 and at most its duration.
        clips: (N,) or one number, how many clips of the video are stored, >= 1.
        clip_seconds: length of a stored clip.
        longest: maximum clips of the model; longer windows are pooled to that many (:func:`pool_clips`).

    A window behind the last stored clip becomes that clip.

    Raises:
        InvalidValue: a video has no clips.
    """
    stored = np.asarray(clips, dtype=np.int64)
    if np.any(stored < 1):
        raise InvalidValue(f"window of a video with {int(stored.min())} stored clips: at least 1 is needed")
    first = np.floor(np.divide(starts, clip_seconds, dtype=np.float64)).astype(np.int64)
    first = np.clip(first, 0, stored - 1)
    stop = np.ceil(np.divide(ends, clip_seconds, dtype=np.float64)).astype(np.int64)
    stop = np.clip(stop, first + 1, stored)
    pooled = np.minimum(stop - first, longest)
    pooled_seconds: NDArray[np.float64] = (stop - first) * clip_seconds / pooled
    start: NDArray[np.float64] = np.multiply(first, clip_seconds, dtype=np.float64)
    return ClipWindows(first, stop, pooled, pooled_seconds, start)


def pool_clips(features: NDArray[np.float32], longest: int) -> NDArray[np.float32]:
    """Averages n clips (n, d) into ``longest`` of equal length; up to ``longest`` clips stay as they are.

    The edges of the cells are rounded half to even, and the last edge is n - 1, as in all the releases: the
    very last clip is left out, unless its cell would be empty. The model's clips become n / longest times as
    long.
    """
    n = len(features)
    if n <= longest:
        return features
    edges = np.minimum(np.round(np.arange(longest + 1) / longest * n).astype(np.int64), n - 1)
    # reduceat sums features[a:b], or takes features[a] alone where a cell is empty
    sums = np.add.reduceat(features[: max(edges[-1], edges[-2] + 1)], edges[:-1], axis=0)
    return np.divide(sums, np.maximum(np.diff(edges), 1)[:, None], dtype=np.float32)
