"""How well each part of one video matches a query: its whole score curve.

Parts are clips, the time between two frames that are encoded. What is shown in a clip is scored by its
cosine with the query, smoothed as the refiner without training smooths it
(:class:`moviola.retrieval.refiners.curve.CurveRefiner`), and set against chance
(:class:`moviola.retrieval.calibration.Chance`), as the scores of a search without a trained refiner are.
With a trained refiner scores of moments are probabilities, which nothing knows of single clips: the curve
then shows where, not how sure. What is said during a clip adds to it as in a search
(:mod:`moviola.search.fusion`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from moviola.library import VideoRow
from moviola.retrieval import Chance
from moviola.retrieval.refiners.curve import cosines, query_vector, smoothed
from moviola.search.finder import Finder
from moviola.search.queries import (
    LikeMoment,
    LikePicture,
    SearchQuery,
    Simple,
    Steps,
    Text,
    WeightedSum,
    Without,
)

__all__ = ["score_curve"]

Floats = NDArray[np.float64]

# The odds of a score are taken of at most this.
_MOST = 1 - 1e-12


def score_curve(finder: Finder, query: SearchQuery, video: VideoRow) -> tuple[Floats, Floats]:
    """The curve of a query in a video.

    Args:
        finder: of the library's present state.
        query: what to look for. Of a sequence, each clip has the score of the step that it matches best; what
            is excluded divides the odds of a clip as it divides those of a moment
            (:mod:`moviola.search.finder`).
        video: of the library.

    Returns:
        (n,) float64 seconds, the middle of each clip, and (n,) float64 scores in [0, 1].
    """
    seconds = finder.view.features.clip_seconds
    place = finder.view.features.place_of(video.row)
    count = math.ceil(video.duration / seconds) if place is None else int(finder.view.features.counts[place])
    starts = np.arange(count) * seconds
    times = (starts + np.maximum(np.minimum(starts + seconds, video.duration), starts)) / 2
    return times, _Curve(finder, video, times, seconds).scores(query)


class _Curve:
    """The curves of queries in one video."""

    def __init__(self, finder: Finder, video: VideoRow, times: Floats, seconds: float) -> None:
        self._finder, self._video = finder, video
        self._times, self._seconds = times, seconds

    def scores(self, query: SearchQuery) -> Floats:
        """(n,) in [0, 1]."""
        if isinstance(query, Steps):
            scores: Floats = np.maximum.reduce([self.scores(step) for step in query.steps])
            return scores
        if isinstance(query, Without):
            score = np.minimum(self.scores(query.query), _MOST)
            for one in query.excluded:
                odds = score / (1 - score) * self._factor(one)
                score = odds / (1 + odds)
            return score
        assert isinstance(query, Text | LikeMoment | LikePicture | WeightedSum)
        said = self._said(query)
        standing = self._standing(query)
        if standing is None:
            return said
        evidence, chance = standing
        return 1 - (1 - chance.scores(evidence)) * (1 - said)

    def _standing(self, query: Simple) -> tuple[Floats, Chance] | None:
        """Smoothed cosines (n,) of the clips, and what chance gives; None where no pictures are looked at."""
        finder, retrieval = self._finder, self._finder.stages(query)
        place = None if retrieval is None else retrieval.features.place_of(self._video.row)
        if retrieval is None or place is None:
            return None
        features = finder.features(query)
        vector = query_vector(features, 0)
        curve = smoothed(cosines(retrieval.features.visual.read(place), vector))
        return np.asarray(curve, np.float64), retrieval.encoder_chance(features.vectors[0])

    def _said(self, query: Simple) -> Floats:
        """(n,) in [0, 1]: the best of what is said or written during each clip."""
        best = np.zeros(len(self._times))
        half = self._seconds / 2
        for one in self._finder.said(query, {self._video.row}):
            during = (self._times + half > one.span.start) & (self._times - half < one.span.end)
            best[during] = np.maximum(best[during], one.score)
        return best

    def _factor(self, excluded: Simple) -> Floats:
        """By what the odds of each clip are multiplied, (n,) in [0, 1]."""
        factor = (1 - self._said(excluded)) ** 2
        standing = self._standing(excluded)
        if standing is not None:
            evidence, chance = standing
            above = chance.standing(evidence)
            factor = factor * np.exp(-np.maximum(above - np.clip(np.median(above), 0, 1), 0))
        return factor
