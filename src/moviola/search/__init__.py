"""Searching a library: visual evidence fused with what is said.

Scores of moments are in [0, 1]; what they mean stands in :mod:`moviola.retrieval.calibration`. With a
calibrated refiner, as ``moviola train`` leaves it, a score is the probability that the moment is right, i.e.
that it overlaps one of positive relevance at IoU >= 0.5, as measured on the val queries of its training: of
moments that score 0.8, about 80 % are right in a library that is like val in size and kind. Without a
calibration a score says how unusual a moment is, not how likely it is right, and right ones may well score
below one half.
"""

from __future__ import annotations

from moviola.search.filters import Filter, Position
from moviola.search.found import SearchResult
from moviola.search.library import Library
from moviola.search.queries import (
    LikeMoment,
    LikePicture,
    SearchQuery,
    Steps,
    Text,
    WeightedSum,
    Without,
    compose,
)
from moviola.search.searcher import KINDS, Evidence, Searcher

__all__ = [
    "KINDS", "Evidence", "Filter", "Library", "LikeMoment", "LikePicture", "Position", "SearchQuery",
    "SearchResult", "Searcher", "Steps", "Text", "WeightedSum", "Without", "compose",
]  # fmt: skip
