"""Score curve of one video: how well each part of it matches a query.

Parts are clips, the time between two encoded frames. Pictures are scored by their cosine with the query,
smoothed as by :class:`moviola.retrieval.CurveRefiner`, on the scale of the encoder's background
(:mod:`moviola.retrieval.background`), as in a search without a trained refiner. A trained refiner scores
whole moments only; beside one, the curve shows where a match is, not how likely it is. Speech adds to it as
in a search (:mod:`moviola.search.fusion`).
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from moviola.library import VideoRow
from moviola.retrieval.refiners.curve import cosines, query_vector, smoothed
from moviola.search.evidence import EvidenceGatherer
from moviola.search.found import Candidate
from moviola.search.fusion import MOST
from moviola.search.queries import Marked, Plain, SearchQuery, Simple, Steps, Without
from moviola.types import Span

__all__ = ["score_curve"]

Floats = NDArray[np.float64]


def score_curve(gatherer: EvidenceGatherer, query: SearchQuery, video: VideoRow) -> tuple[Floats, Floats]:
    """Score curve of a query in a video.

    Args:
        gatherer: prepared with the query.
        query: in a sequence, each clip has the score of the step that it matches best; an
            exclusion divides the odds of a clip as it divides those of a moment
            (:mod:`moviola.search.answers`).

    Returns:
        (n,) float64 seconds, the middle of each clip, and (n,) float64 scores in [0, 1].
    """
    features = gatherer.view.features
    seconds, place = features.clip_seconds, features.place_of(video.row)
    count = math.ceil(video.duration / seconds) if place is None else int(features.counts[place])
    starts = np.arange(count) * seconds
    times = (starts + np.maximum(np.minimum(starts + seconds, video.duration), starts)) / 2
    return times, _Curve(gatherer, video, times, seconds).scores(query)


class _Curve:
    def __init__(self, gatherer: EvidenceGatherer, video: VideoRow, times: Floats, seconds: float) -> None:
        self._gatherer, self._video = gatherer, video
        self._times, self._seconds = times, seconds

    def scores(self, query: SearchQuery) -> Floats:
        """(n,) in [0, 1]."""
        if isinstance(query, Steps):
            return reduce(np.maximum, map(self.scores, query.steps))
        if isinstance(query, Without):
            score = np.minimum(self.scores(query.query), MOST)
            for one in query.excluded:
                odds = score / (1 - score) * self._factor(one)
                score = odds / (1 + odds)
            return score
        if isinstance(query, Marked):
            return self._marked(query)
        assert isinstance(query, Plain)
        said, cosines = self._said(query), self._cosines(query)
        return said if cosines is None else 1 - (1 - self._gatherer.scale(query).scores(cosines)) * (1 - said)

    def _marked(self, query: Marked) -> Floats:
        before = None if query.query is None else self.scores(query.query)
        bounds = (np.arange(len(self._times) + 1) * self._seconds).tolist()
        clips = [Candidate(self._video.row, Span(*own), 0.0, "visual") for own in pairwise(bounds)]
        vectors, shown = self._gatherer.likeness(clips)
        if not len(shown):
            return np.zeros(len(clips)) if before is None else before
        return self._gatherer.marks(query).scores(vectors, before)

    def _cosines(self, query: Simple) -> Floats | None:
        """Smoothed cosines (n,) of the clips; None where pictures are not searched."""
        retrieval = self._gatherer.stages(query)
        place = None if retrieval is None else retrieval.features.place_of(self._video.row)
        if retrieval is None or place is None:
            return None
        vector = query_vector(retrieval.cosines.in_space(self._gatherer.features(query)), 0)
        return smoothed(cosines(retrieval.features.visual.read(place), vector)).astype(np.float64)

    def _said(self, query: Simple) -> Floats:
        """(n,) in [0, 1]: the best match of speech or text during each clip."""
        best = np.zeros(len(self._times))
        half = self._seconds / 2
        for one in self._gatherer.said(query, frozenset({self._video.row})):
            during = (self._times + half > one.span.start) & (self._times - half < one.span.end)
            best[during] = np.maximum(best[during], one.score)
        return best

    def _factor(self, excluded: Simple) -> Floats:
        """Factor for the odds of each clip, (n,) in [0, 1]."""
        if isinstance(excluded, Marked):
            return (1 - self._marked(excluded)) ** 2
        factor = (1 - self._said(excluded)) ** 2
        retrieval, found = self._gatherer.stages(excluded), self._cosines(excluded)
        if retrieval is not None and found is not None:
            features = retrieval.cosines.in_space(self._gatherer.features(excluded))
            above = retrieval.cosines.encoder_chance(features.vectors[0]).standing(found)
            factor = factor * np.exp(-np.maximum(above - np.clip(np.median(above), 0, 1), 0))
        return factor
