"""Refinement without training for footage that is cut: moments are shots."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures
from moviola.retrieval.proposals import Proposals
from moviola.retrieval.refiners.contract import Refined
from moviola.retrieval.refiners.curve import CurveRefiner, cosines, query_vector
from moviola.retrieval.refiners.untrained import UntrainedRefiner

__all__ = ["ShotRefiner"]


@dataclass(frozen=True, slots=True)
class ShotRefiner(UntrainedRefiner):
    """Whole shots where a video has several, the curve of similarities where it has one or they are long.

    An editor has put the bounds where what is seen changes, which no curve of similarities tells as well. A
    shot's score is the mean of its ``best`` most similar clips: the others may look away from what was asked
    for. Inside a longer shot than ``longest_shot`` the curve decides.

    Attributes:
        curve: refines what is not cut.
        best: clips of a shot that count.
        longest_shot: seconds of the longest shot that is a moment as a whole.
    """

    curve: CurveRefiner = field(default_factory=CurveRefiner)
    best: int = 2
    longest_shot: float = 20.0

    def refine(
        self, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The shot or the best span of each proposal, see
        :meth:`moviola.retrieval.refiners.contract.Refiner.refine`.
        """
        opens, closes, whole = self._bounds(features, proposals)
        start, end, score = opens.copy(), closes.copy(), np.empty(len(opens))
        vector = query_vector(queries, query)
        for row in np.flatnonzero(whole).tolist():
            score[row] = self._score(
                vector, features, int(proposals.video[row]), float(opens[row]), float(closes[row])
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
        count = len(proposals.video)
        opens, closes, whole = np.zeros(count), np.full(count, np.inf), np.zeros(count, np.bool_)
        middle = (proposals.start + proposals.end) / 2
        for row, video in enumerate(proposals.video.tolist()):
            edges = features.shot_edges(video)
            if len(edges) > 2:
                shot = int(np.clip(np.searchsorted(edges, middle[row], side="right") - 1, 0, len(edges) - 2))
                opens[row], closes[row] = edges[shot : shot + 2]
                whole[row] = closes[row] - opens[row] <= self.longest_shot
        return opens, closes, whole

    def _score(
        self, vector: NDArray[np.float32], features: VideoFeatures, video: int, opens: float, closes: float
    ) -> float:
        """Mean similarity of the best clips that begin in a shot; of the one nearest to a shot without."""
        clips = features.visual.read(video)
        first = min(math.ceil(opens / features.clip_seconds), len(clips) - 1)
        stop = max(min(math.ceil(closes / features.clip_seconds), len(clips)), first + 1)
        similar = np.sort(cosines(clips[first:stop], vector))
        return float(similar[-self.best :].mean())
