"""Search in a library by pictures, speech, text and names, with one ranked answer.

Scores of moments are in [0, 1]; :mod:`moviola.retrieval.calibration` defines them, and when a moment is
strong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.first_use import on_first_use

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

__getattr__ = on_first_use(
    __name__,
    {
        "asked": ("Asked",),
        "concepts": ("Concepts",),
        "facets": ("LENGTHS", "FacetCounts"),
        "filters": ("Filter",),
        "forms": ("Position",),
        "found": ("SearchResult",),
        "libraries": ("Libraries",),
        "library": ("Library",),
        "options": ("KINDS", "By", "SearchOptions"),
        "queries": (
            "KeptPicture", "LikeMoment", "LikePicture", "Marked", "MarkedMoment", "SearchQuery", "Steps",
            "Text", "WeightedSum", "Without",
        ),
        "saved": ("SavedSearches",),
        "searcher": ("Searcher",),
        "suggestions": ("Completions",),
    },
)  # fmt: skip
