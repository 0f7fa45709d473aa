"""Searching a library: what is seen, said, written and named, joined into one ranked answer.

Scores of moments are in [0, 1]; what they mean, and when a moment is strong, stands in
:mod:`moviola.retrieval.calibration`.
"""

from __future__ import annotations

from moviola.search.filters import Filter, Position
from moviola.search.found import SearchResult
from moviola.search.library import Library
from moviola.search.options import KINDS, By, SearchOptions
from moviola.search.queries import (
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    SearchQuery,
    Steps,
    Text,
    WeightedSum,
    Without,
    compose,
)
from moviola.search.searcher import Searcher

__all__ = [
    "KINDS", "By", "Filter", "Library", "LikeMoment", "LikePicture", "Marked", "MarkedMoment", "Position",
    "SearchOptions", "SearchQuery", "SearchResult", "Searcher", "Steps", "Text", "WeightedSum", "Without",
    "compose",
]  # fmt: skip
