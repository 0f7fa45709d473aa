"""Search in a library by pictures, speech, text and names, with one ranked answer.

Scores of moments are in [0, 1]; :mod:`moviola.retrieval.calibration` defines them, and when a moment is
strong.
"""

from moviola.search.facets import LENGTHS, FacetCounts
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
from moviola.search.suggestions import Completions

__all__ = [
    "KINDS", "LENGTHS", "By", "Completions", "FacetCounts", "Filter", "Library", "LikeMoment", "LikePicture",
    "Marked", "MarkedMoment", "Position", "SearchOptions", "SearchQuery", "SearchResult", "Searcher", "Steps",
    "Text", "WeightedSum", "Without", "compose",
]  # fmt: skip
