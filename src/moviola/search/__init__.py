"""Search in a library by pictures, speech, text and names, with one ranked answer.

Scores of moments are in [0, 1]; :mod:`moviola.retrieval.calibration` defines them, and when a moment is
strong.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moviola.search.asked import Asked
    from moviola.search.concepts import Concepts
    from moviola.search.facets import LENGTHS, FacetCounts
    from moviola.search.filters import Filter
    from moviola.search.forms import Position
    from moviola.search.found import SearchResult
    from moviola.search.libraries import Libraries
    from moviola.search.library import Library
    from moviola.search.options import KINDS, By, SearchOptions
    from moviola.search.queries import (
        KeptPicture,
        LikeMoment,
        LikePicture,
        Marked,
        MarkedMoment,
        SearchQuery,
        Steps,
        Text,
        WeightedSum,
        Without,
    )
    from moviola.search.saved import SavedSearches
    from moviola.search.searcher import Searcher
    from moviola.search.suggestions import Completions

__all__ = [
    "KINDS", "LENGTHS", "Asked", "By", "Completions", "Concepts", "FacetCounts", "Filter", "KeptPicture",
    "Libraries", "Library", "LikeMoment", "LikePicture", "Marked", "MarkedMoment", "Position",
    "SavedSearches", "SearchOptions", "SearchQuery", "SearchResult", "Searcher", "Steps", "Text",
    "WeightedSum", "Without",
]  # fmt: skip

_MODULES = (
    "queries",
    "forms",
    "filters",
    "options",
    "asked",
    "found",
    "facets",
    "suggestions",
    "searcher",
    "concepts",
    "saved",
    "library",
    "libraries",
)


def __getattr__(name: str) -> Any:
    """A public name on first use: help of commands, which knows fields of a question, needs no library."""
    if name in __all__:
        for module in _MODULES:
            if name in (found := import_module(f"moviola.search.{module}")).__all__:
                return getattr(found, name)
    raise AttributeError(f"module 'moviola.search' has no attribute {name!r}")
