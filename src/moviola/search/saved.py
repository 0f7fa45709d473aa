"""What a saved search asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.errors import InvalidValue
from moviola.search.filters import Filter
from moviola.search.options import SearchOptions
from moviola.search.queries import SearchQuery, compose

if TYPE_CHECKING:
    from moviola.library.kept.values import SavedSearch

__all__ = ["asked_by"]


def asked_by(saved: SavedSearch) -> tuple[SearchQuery, SearchOptions]:
    """The query of a saved search, and its options.

    Raises:
        InvalidValue: it can never run: a part of the query or of the filter cannot be read.
    """
    query = compose(saved.text, then=saved.then, gap=saved.gap, excluded=saved.without)
    known = Filter.__dataclass_fields__
    if unknown := saved.filter.keys() - known.keys():
        raise InvalidValue(f"filter {min(unknown)!r} does not exist; choose {', '.join(known)}")
    return query, SearchOptions(filter=Filter.parse(**saved.filter), by=saved.by)
