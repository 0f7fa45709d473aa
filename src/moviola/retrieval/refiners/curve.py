"""Refinement without training: the curve of query-clip similarities around a proposal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures
from moviola.retrieval.proposals import Proposals
from moviola.retrieval.refiners.contract import CONTEXT, Refined
from moviola.retrieval.refiners.untrained import UntrainedRefiner
from moviola.retrieval.segments import normalised

__all__ = ["CurveRefiner", "cosines", "query_vector", "smoothed"]

Spans = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class CurveRefiner(UntrainedRefiner):
    """The span that holds most of the similarity above a threshold.

    With s the smoothed similarity of each clip to the query, low its ``floor`` quantile in the window and
    peak its maximum inside the proposal, the threshold is low + ``level`` (peak - low). The span is the run
    of clips with the largest sum of (s - threshold): dips that later clips make up for are bridged.

    The score is the proposal's own similarity and the span's mean similarity, weighted by ``coarse_share``:
    a whole span that fits says more than one segment that does.

    Attributes:
        context: seconds on both sides of a proposal that are looked at (tau_C).
        level, floor: in [0, 1], see above.
        before, after: seconds by which spans are widened, for what a moment holds besides its telling clips.
        coarse_share: in [0, 1].
    """

    context: float = CONTEXT
    level: float = 0.5
    floor: float = 0.2
    before: float = 0.0
    after: float = 0.0
    coarse_share: float = 0.5

    @property
    def longest_shot(self) -> None:
        """None: the curve alone decides."""

    def refine(
        self, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The best span of each proposal; see :meth:`moviola.retrieval.refiners.contract.Refiner.refine`."""
        nowhere = np.zeros(len(proposals.video))
        return self.refine_inside((nowhere, nowhere + np.inf), queries, query, features, proposals)

    def refine_inside(
        self, bounds: Spans, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The same for moments that lie inside of ``bounds``: start and end in seconds, (N,) each."""
        vector = query_vector(queries, query)
        opens, closes = bounds
        reach = (
            np.maximum(proposals.start - self.context, opens),
            np.minimum(proposals.end + self.context, closes),
        )
        columns = (proposals.start, proposals.end, *reach)
        rows = zip(proposals.video.tolist(), *(column.tolist() for column in columns), strict=True)
        spans = [
            self._span(vector, features, video, (start, end), (first, last))
            for video, start, end, first, last in rows
        ]
        first, last, own = (np.array(column) for column in zip(*spans, strict=True))
        seconds = features.clip_seconds
        start, end = features.clip_spans(
            proposals.video,
            np.maximum(first * seconds - self.before, opens),
            np.minimum((last + 1) * seconds + self.after, closes),
        )
        return Refined(start, end, self.coarse_share * proposals.score + (1 - self.coarse_share) * own)

    def _span(
        self,
        vector: NDArray[np.float32],
        features: VideoFeatures,
        video: int,
        proposal: tuple[float, float],
        reach: tuple[float, float],
    ) -> tuple[int, int, float]:
        """First and last clip of the best span within reach, inclusive, and its mean similarity."""
        clips, seconds = features.visual.read(video), features.clip_seconds
        begin = max(0, math.floor(reach[0] / seconds))
        stop = min(len(clips), math.ceil(reach[1] / seconds))
        begin = min(begin, stop - 1)
        curve = smoothed(cosines(clips[begin:stop], vector))
        inside = _inside(proposal[0] / seconds - begin, proposal[1] / seconds - begin, len(curve))
        first, last = self._best_run(curve, inside)
        return begin + first, begin + last, float(curve[first : last + 1].mean())

    def _best_run(self, curve: NDArray[np.float32], inside: slice) -> tuple[int, int]:
        """First and last clip, inclusive, of the run with the largest sum above the threshold."""
        low = float(np.quantile(curve, self.floor))
        peak = float(curve[inside].max())
        gains = np.concatenate(([0.0], np.cumsum(curve - (low + self.level * (peak - low)))))
        # The best end for each start: a running maximum from the right.
        best_end = np.maximum.accumulate(gains[::-1])[::-1]
        first = int(np.argmax(best_end[1:] - gains[:-1]))
        last = first + int(np.argmax(gains[first + 1 :]))
        return first, last


def _inside(start: float, end: float, count: int) -> slice:
    """The clips of a proposal among ``count``; its bounds are counted in clips."""
    first = int(np.clip(round(start), 0, count - 1))
    last = int(np.clip(np.ceil(end), first + 1, count))
    return slice(first, last)


def query_vector(queries: QueryFeatures, query: int) -> NDArray[np.float32]:
    """A query's vector (d,), L2-normalised."""
    vector: NDArray[np.float32] = normalised(queries.vectors[query : query + 1])[0]
    return vector


def cosines(clips: NDArray[np.floating[Any]], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) float32 of clips (n, d) with a vector (d,) of length 1; 0 for a clip of zeros."""
    rows = np.asarray(clips, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1)
    cosines: NDArray[np.float32] = rows @ vector / np.maximum(lengths, np.finfo(np.float32).tiny)
    return cosines


def smoothed(curve: NDArray[np.float32]) -> NDArray[np.float32]:
    """A binomial filter of width 3; the ends stand for what lies beyond them."""
    around = np.pad(curve, 1, mode="edge")
    smooth: NDArray[np.float32] = 0.25 * around[:-2] + 0.5 * around[1:-1] + 0.25 * around[2:]
    return smooth
