"""Refinement without training: the curve of query-clip similarities around a proposal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.features import Integers, QueryFeatures, VideoFeatures, clips_by_video
from moviola.retrieval.proposals import Proposals
from moviola.retrieval.refiners.contract import CONTEXT, Refined, UntrainedRefiner
from moviola.retrieval.segments import normalised

__all__ = ["CurveRefiner", "clip_cosines", "clip_rows", "cosines", "query_vector", "smoothed"]

Spans = tuple[NDArray[np.float64], NDArray[np.float64]]

# Similarities of equal frames differ by the rounding of their products.
_EQUAL = 1e-6


@dataclass(frozen=True, slots=True)
class CurveRefiner(UntrainedRefiner):
    """The span that holds most of the similarity above a threshold.

    With s the smoothed similarity of each clip to the query, low its ``floor`` quantile in the window and
    peak its maximum inside the proposal, the threshold is low + ``level`` (peak - low). The span is the run
    of clips with the largest sum of (s - threshold): dips that later clips make up for are bridged. Where no
    clip is above low, as in a still picture, no run is better than another, and the span is the proposal. One
    of less than half a clip, at the end, begins a clip before that.

    The score is the proposal's own similarity and the span's mean similarity, weighted by ``coarse_share``: a
    whole matching span is better evidence than one segment.

    Attributes:
        context: seconds on both sides of a proposal that are read (tau_C).
        level, floor: in [0, 1], see above.
        before, after: seconds by which spans are widened, for the less similar clips of a moment.
        coarse_share: in [0, 1].
    """

    longest_shot = None
    """The curve alone decides."""

    context: float = CONTEXT
    level: float = 0.5
    floor: float = 0.2
    before: float = 0.0
    after: float = 0.0
    coarse_share: float = 0.5

    def refine(
        self, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The best span of each proposal; see :meth:`moviola.retrieval.Refiner.refine`."""
        nowhere = np.zeros(len(proposals.video))
        return self.refine_inside((nowhere, nowhere + np.inf), queries, query, features, proposals)

    def refine_inside(
        self, bounds: Spans, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The same for moments inside ``bounds``: start and end in seconds, (N,) each."""
        opens, closes = bounds
        # The first clip that the window reaches into, and the one after the last; at least one.
        behind = features.clips_from(np.minimum(proposals.end + self.context, closes))
        stop = np.minimum(features.counts[proposals.video], behind)
        begin = np.maximum(features.clips_at(np.maximum(proposals.start - self.context, opens)), 0)
        begin = np.minimum(begin, stop - 1)
        curves = _smoothed_curves(query_vector(queries, query), features, proposals.video, begin, stop)
        seconds, counts = features.clip_seconds, stop - begin
        own_first = np.clip(np.rint(proposals.start / seconds - begin), 0, counts - 1).astype(np.int64)
        own_stop = np.clip(features.clips_from(proposals.end) - begin, own_first + 1, counts)
        first, last = self._best_runs(curves, counts, (own_first, own_stop))
        clip = np.arange(curves.shape[1])
        run = (clip >= first[:, None]) & (clip <= last[:, None])
        own = np.where(run, curves, 0).sum(axis=1, dtype=np.float64) / (last - first + 1)
        start, end = features.clip_spans(
            proposals.video,
            np.maximum((begin + first) * seconds - self.before, opens),
            np.minimum((begin + last + 1) * seconds + self.after, closes),
        )
        # The end cuts the last clip, down to what nobody can look at: such a span has a whole clip before it.
        sliver = end - start < seconds / 2
        start = np.where(sliver, np.minimum(start, np.maximum(end - seconds, opens)), start)
        return Refined(start, end, self.coarse_share * proposals.score + (1 - self.coarse_share) * own)

    def _best_runs(
        self, curves: NDArray[np.float32], counts: Integers, inside: tuple[Integers, Integers]
    ) -> tuple[Integers, Integers]:
        """First and last clip (N,), inclusive, of the run with the largest sum above each threshold.

        Of curves (N, L) ``counts`` (N,) clips are there; ``inside`` are first clips and those behind, (N,).
        """
        clip = np.arange(curves.shape[1])
        low = _quantiles(curves, counts, self.floor).astype(np.float64)
        proposed = (clip >= inside[0][:, None]) & (clip < inside[1][:, None])
        peak = np.where(proposed, curves, -np.inf).max(axis=1).astype(np.float64)
        threshold = (low + self.level * (peak - low)).astype(np.float32)
        gains = np.zeros((len(curves), curves.shape[1] + 1))
        gains[:, 1:] = np.cumsum(curves - threshold[:, None], axis=1)
        gains[np.arange(gains.shape[1]) > counts[:, None]] = -np.inf
        # The best end for each start: a running maximum from the right.
        best_end = np.maximum.accumulate(gains[:, :0:-1], axis=1)[:, ::-1]
        there = clip < counts[:, None]
        begins = np.where(there, gains[:, :-1], 0.0)
        first = np.argmax(np.where(there, best_end - begins, -np.inf), axis=1)
        last = np.argmax(np.where(clip >= first[:, None], gains[:, 1:], -np.inf), axis=1)
        still = curves.max(axis=1) - low < _EQUAL  # behind the last clip it is repeated
        return np.where(still, inside[0], first), np.where(still, inside[1] - 1, last)


def _smoothed_curves(
    vector: NDArray[np.float32], features: VideoFeatures, video: Integers, begin: Integers, stop: Integers
) -> NDArray[np.float32]:
    """(N, L) smoothed similarities of clips ``begin`` to ``stop`` (N,); behind them the last one again."""
    counts = stop - begin
    place = np.minimum(np.arange(int(counts.max())), counts[:, None] - 1)
    where = np.broadcast_to(video[:, None], place.shape)
    curves = clip_cosines(vector, features, where.ravel(), (begin[:, None] + place).ravel())
    return smoothed(curves.reshape(place.shape))


def _quantiles(curves: NDArray[np.float32], counts: Integers, share: float) -> NDArray[np.float32]:
    """The quantile (N,) of the first ``counts`` (N,) values of each curve (N, L), as numpy's default does."""
    clip = np.arange(curves.shape[1])
    rising = np.sort(np.where(clip < counts[:, None], curves, np.float32(np.inf)), axis=1)
    at = (counts - 1).astype(np.float32) * np.float32(share)
    below = np.floor(at).astype(np.int64)
    rows = np.arange(len(curves))
    low, high = rising[rows, below], rising[rows, np.minimum(below + 1, counts - 1)]
    part = at - below.astype(np.float32)
    step = high - low
    return np.asarray(np.where(part < 0.5, low + step * part, high - step * (1 - part)))


def clip_cosines(
    vector: NDArray[np.float32], features: VideoFeatures, video: Integers, clip: Integers
) -> NDArray[np.float32]:
    """(n,) float32, cosines of clips of videos by place, (n,) each, with a vector (d,) of length 1."""
    parts, place = clips_by_video(video, clip)
    rows = np.concatenate([features.visual.read(one)[clips] for one, clips in parts])
    return cosines(rows, vector)[place]


def clip_rows(features: VideoFeatures, video: Integers, clip: Integers) -> NDArray[np.float32]:
    """(n, d) float32, features of clips of videos by place, (n,) each."""
    parts, place = clips_by_video(video, clip)
    rows = np.concatenate([features.visual.read(one)[clips] for one, clips in parts])
    return np.asarray(rows[place], dtype=np.float32)


def query_vector(queries: QueryFeatures, query: int) -> NDArray[np.float32]:
    """A query's vector (d,), L2-normalised."""
    return np.asarray(normalised(queries.vectors[query : query + 1])[0])


def cosines(clips: NDArray[np.floating[Any]], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) float32 of clips (n, d) with a vector (d,) of length 1; 0 for a clip of zeros."""
    rows = np.asarray(clips, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1)
    return np.asarray(rows @ vector / np.maximum(lengths, np.finfo(np.float32).tiny))


def smoothed(curve: NDArray[np.float32]) -> NDArray[np.float32]:
    """A binomial filter of width 3 over curves (..., L); the ends stand for what lies beyond them."""
    around = np.pad(curve, [(0, 0)] * (curve.ndim - 1) + [(1, 1)], mode="edge")
    return np.asarray(0.25 * around[..., :-2] + 0.5 * around[..., 1:-1] + 0.25 * around[..., 2:])
