"""Refinement without training for footage that is cut: moments are shots."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moviola.features import Integers, QueryFeatures, VideoFeatures
from moviola.retrieval.proposals import Proposals
from moviola.retrieval.refiners.contract import Refined, UntrainedRefiner
from moviola.retrieval.refiners.curve import CurveRefiner, clip_cosines, query_vector
from moviola.temporal import places_in_groups

__all__ = ["ShotRefiner"]


@dataclass(frozen=True, slots=True)
class ShotRefiner(UntrainedRefiner):
    """Whole shots where a video has several; the curve of similarities where it has one or they are long.

    An editor has cut where the content changes, which no curve of similarities shows as well. A shot's score
    is the mean of its ``best`` most similar clips, since the others may show something else. Inside a shot
    longer than ``longest_shot`` the curve decides.

    Attributes:
        curve: refines uncut footage.
        best: number of clips that count per shot.
        longest_shot: seconds of the longest shot that is one moment.
    """

    curve: CurveRefiner = field(default_factory=CurveRefiner)
    best: int = 2
    longest_shot: float = 20.0

    def refine(
        self, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The shot or the best span of each proposal; see :meth:`moviola.retrieval.Refiner.refine`."""
        opens, closes, whole = self._bounds(features, proposals)
        start, end, score = opens.copy(), closes.copy(), np.empty(len(opens))
        if whole.any():
            score[whole] = self._scores(
                query_vector(queries, query), features, proposals.video[whole], opens[whole], closes[whole]
            )
        rest = np.flatnonzero(~whole)
        if len(rest):
            part = Proposals.of_columns(
                np.zeros(len(rest), np.int64), proposals.video[rest], proposals.start[rest],
                proposals.end[rest], proposals.score[rest], queries=1,
            )  # fmt: skip
            bounds = opens[rest], closes[rest]
            refined = self.curve.refine_inside(bounds, queries, query, features, part)
            start[rest], end[rest], score[rest] = refined.start, refined.end, refined.score
        return Refined(start, end, score)

    def _bounds(
        self, features: VideoFeatures, proposals: Proposals
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Start and end (N,) of the shot in the middle of each proposal; whether it is a moment as a whole.

        A video that is not cut has no bounds.
        """
        videos, own = np.unique(proposals.video, return_inverse=True)
        offsets, edges = features.shot_edges_of(videos)
        middle = (proposals.start + proposals.end) / 2
        shots = np.diff(offsets)[own] - 1
        shot = np.clip(places_in_groups(edges, offsets, own, middle, "right") - 1, 0, shots - 1)
        opens, closes = edges[offsets[own] + shot], edges[offsets[own] + shot + 1]
        cut = shots > 1
        whole = cut & (closes - opens <= self.longest_shot)
        return np.where(cut, opens, 0.0), np.where(cut, closes, np.inf), whole

    def _scores(
        self,
        vector: NDArray[np.float32],
        features: VideoFeatures,
        video: Integers,
        opens: NDArray[np.float64],
        closes: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Mean similarity (n,) of the best clips that begin in each shot; where none does, of the nearest."""
        last = features.counts[video]
        first = np.minimum(features.clips_from(opens), last - 1)
        stop = np.minimum(features.clips_from(closes), last)
        counts = np.maximum(stop, first + 1) - first
        shot = np.repeat(np.arange(len(video)), counts)
        begin = np.cumsum(counts) - counts
        clip = first[shot] + np.arange(len(shot)) - begin[shot]
        similar = clip_cosines(vector, features, video[shot], clip)
        # The best of each shot come last in it.
        rising = similar[np.lexsort((similar, shot))]
        best = np.arange(len(shot)) >= (begin + np.maximum(counts - self.best, 0))[shot]
        totals = np.bincount(shot[best], rising[best], minlength=len(video))
        return np.asarray(totals / np.minimum(counts, self.best))
