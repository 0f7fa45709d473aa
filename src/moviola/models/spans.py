"""From seconds to clips and back: labels to train on, windows of a video, and the best spans of two curves.

A model sees a video as L clips of equal length and speaks of a moment as its clip of start and its clip of
end. The releases disagree on which clip the end is (:data:`LABELS`). Arrays of data preparation are NumPy,
what runs behind a model is torch; everything is vectorised over moments, windows, queries and videos.

Decoding looks only at the band of spans that are allowed, ``shortest <= end - start < longest`` in clips: a
video of L clips has L x (longest - shortest) of them, in a strided view, never an L x L map. Ties keep the
order of the map: of two equal cells the one with the smaller start, then the smaller end, comes first.

References: decoding as in XML (Lei et al., ECCV 2020); windows as in SPR, section 3.3; the rest as the
releases do it (see each function).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from moviola.errors import InvalidValue

__all__ = [
    "LABELS",
    "PRODUCT",
    "SUM",
    "ClipWindows",
    "Combination",
    "LabelConvention",
    "Spans",
    "best_spans",
    "clip_windows",
    "corpus_spans",
    "pool_clips",
    "span_band",
    "top_scores",
    "window_spans",
]

Clips = TypeVar("Clips", NDArray[np.int64], Tensor)

# ---- labels ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelConvention:
    """How seconds become clips of start and end.

    The start is the clip in which the moment starts. With ``end_inside`` the end is the last clip that the
    moment touches; without, it is one clip further, unless the video has no further one.
    """

    end_inside: bool

    def labels(
        self, starts: ArrayLike, ends: ArrayLike, clips: ArrayLike, clip_seconds: ArrayLike
    ) -> NDArray[np.int64]:
        """Clips of start and end of N moments.

        Args:
            starts: (N,) seconds from the first clip's start.
            ends: (N,) seconds, exclusive.
            clips: (N,) or one number, how many clips there are.
            clip_seconds: (N,) or one number, how long a clip is.

        Returns:
            (N, 2) int64, both in [0, clips - 1].
        """
        last = np.asarray(clips, dtype=np.int64) - 1
        start = np.floor(np.divide(starts, clip_seconds, dtype=np.float64)).astype(np.int64)
        end = np.ceil(np.divide(ends, clip_seconds, dtype=np.float64)).astype(np.int64) - self.end_inside
        return np.stack([np.clip(start, 0, last), np.clip(end, 0, last)], axis=-1)

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
    """N windows of videos in whole clips, as a model sees them.

    Attributes:
        first: (N,) int64, the first stored clip.
        stop: (N,) int64, one past the last stored clip.
        clips: (N,) int64, how many clips the model sees: ``stop - first``, or the longest that it takes.
        clip_seconds: (N,) float64, length of a clip that the model sees; longer than a stored one where a
            window was pooled.
        start: (N,) float64, seconds from the video's start.
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
        columns = (self.first, self.stop, self.clips, self.clip_seconds, self.start)
        return ClipWindows(*(column[rows] for column in columns))  # type: ignore[arg-type]

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
        starts: (N,) seconds from the video's start, >= 0.
        ends: (N,) seconds, at most the video's duration.
        clips: (N,) or one number, how many clips of the video are stored, >= 1.
        clip_seconds: length of a stored clip.
        longest: how many clips the model takes; longer windows are pooled to that many (:func:`pool_clips`).

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


# ---- decoding --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Combination:
    """How the values of two curves become the score of a span.

    Attributes:
        function: of two broadcastable tensors.
        padding: what the curves hold where there is no clip.
        floor: spans that score no more than this touch the padding and are none.
    """

    function: Callable[[Tensor, Tensor], Tensor]
    padding: float
    floor: float


PRODUCT = Combination(torch.mul, padding=0.0, floor=0.0)
"""For probabilities."""

SUM = Combination(torch.add, padding=-1e10, floor=-1e9)
"""For logits and logarithms."""


@dataclass(frozen=True)
class Spans:
    """Decoded spans, best first in the last dimension.

    Attributes:
        start: (..., K) int64, clip; -1 where there is no further span.
        end: (..., K) int64, clip, in the convention of the labels; -1 where there is no further span.
        score: (..., K) float32, falling; -inf where there is no further span.
    """

    start: Tensor
    end: Tensor
    score: Tensor


def top_scores(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of the last dimension, falling, and their places; of equal scores the first comes first.

    Args:
        scores: (..., N) float32 without NaN.
        k: how many; all N where N < k.

    Returns:
        (..., k) float32 and (..., k) int64.
    """
    # One integer orders by score, then by place: a float32's bits as an ordered integer, then the place.
    bits = (scores.float() + 0.0).contiguous().view(torch.int32).long()
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    keys = (ordered << 32) - torch.arange(scores.shape[-1], device=scores.device)
    places = keys.topk(min(k, scores.shape[-1]), dim=-1).indices
    return scores.gather(-1, places), places


def span_band(
    start: Tensor, end: Tensor, *, shortest: int, longest: int, combine: Combination = PRODUCT
) -> Tensor:
    """Scores of all allowed spans: (..., L) and (..., L) to (..., L, longest - shortest).

    Cell (m, w) is the span from clip m to clip n = m + shortest + w; where n is no clip, the curve of ends is
    continued with ``combine.padding``.

    Args:
        start: (..., L) float32, probability (or logit) that the moment starts with the clip.
        end: (..., L) float32, the same for its end.
        shortest: smallest ``end - start`` in clips that is allowed.
        longest: the first ``end - start`` that is no longer allowed.
        combine: :data:`PRODUCT` for probabilities, 0 at padding; :data:`SUM` for logits, -1e10 at padding.

    Raises:
        InvalidValue: ``shortest`` is negative or not below ``longest``.
    """
    if not 0 <= shortest < longest:
        raise InvalidValue(f"spans of {shortest} <= end - start < {longest} clips: no such span exists")
    ends = F.pad(end, (0, longest - 1), value=combine.padding)[..., shortest:]
    return combine.function(start[..., None], ends.unfold(-1, longest - shortest, 1))


def best_spans(
    start: Tensor, end: Tensor, *, shortest: int, longest: int, combine: Combination = PRODUCT
) -> Spans:
    """The best span of every pair of curves.

    Args are those of :func:`span_band`. Returns :class:`Spans` (...), without dimension K.
    """
    band = span_band(start, end, shortest=shortest, longest=longest, combine=combine)
    cell = band.flatten(-2).argmax(dim=-1, keepdim=True)  # the first among equals
    score, cell = band.flatten(-2).gather(-1, cell).squeeze(-1), cell.squeeze(-1)
    return _spans(score, cell // band.shape[-1], cell % band.shape[-1] + shortest, combine)


def window_spans(start: Tensor, end: Tensor, mask: Tensor, *, shortest: int, longest: int) -> Spans:
    """The best span of each window, from logits; a window too short for any is returned whole.

    Args:
        start: (N, L) float32, logits of the start, hugely negative where padded.
        end: (N, L) float32, likewise.
        mask: (N, L) float32, 1 for a clip; each window has one.
        shortest: smallest ``end - start`` in clips that is allowed.
        longest: the first ``end - start`` that is no longer allowed.

    Returns:
        :class:`Spans` (N,); the score is log p(start) + log p(end), which does not underflow.
    """
    start, end = start.log_softmax(dim=-1), end.log_softmax(dim=-1)
    found = best_spans(start, end, shortest=shortest, longest=longest, combine=SUM)
    last = mask.sum(dim=-1).long() - 1
    whole = last < shortest
    whole_score = start[:, 0] + end.gather(1, last[:, None]).squeeze(1)
    return Spans(
        found.start.masked_fill(whole, 0),
        torch.where(whole, last, found.end),
        torch.where(whole, whole_score, found.score),
    )


def corpus_spans(
    video_score: Tensor,
    start: Tensor,
    end: Tensor,
    *,
    shortest: int,
    longest: int,
    k: int,
    combine: Combination = PRODUCT,
) -> tuple[Tensor, Spans]:
    """The k best spans of each query over its T candidate videos.

    A span scores the combination of its video's score, its start and its end; the video score of XML and
    ReLoCLNet is exp(alpha s).

    Args:
        video_score: (Q, T) float32.
        start: (Q, T, L) float32, see :func:`span_band`.
        end: (Q, T, L) float32.
        shortest: smallest ``end - start`` in clips that is allowed.
        longest: the first ``end - start`` that is no longer allowed.
        k: how many spans per query.
        combine: see :func:`span_band`.

    Returns:
        (Q, K) int64, the place in T of each span's video, -1 where there is no further span; and
        :class:`Spans` (Q, K), K = k unless there are fewer cells.
    """
    band = span_band(start, end, shortest=shortest, longest=longest, combine=combine)
    length, width = band.shape[-2:]
    scores = combine.function(video_score[..., None, None], band)
    score, cell = top_scores(scores.flatten(-3), k)
    spans = _spans(score, cell // width % length, cell % width + shortest, combine)
    return (cell // (length * width)).masked_fill(spans.start < 0, -1), spans


def _spans(score: Tensor, start: Tensor, extent: Tensor, combine: Combination) -> Spans:
    none = score <= combine.floor
    return Spans(
        start.masked_fill(none, -1),
        (start + extent).masked_fill(none, -1),
        score.masked_fill(none, -torch.inf),
    )
