"""Queries as JSON, stored with answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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
)  # fmt: skip

__all__ = ["query_from_json", "query_to_json"]

Row = dict[str, Any]


def query_to_json(query: SearchQuery) -> Row:
    """The JSON form of a query: an object with one key, its kind."""
    name = next(name for name, (kind, _, _) in _KINDS.items() if isinstance(query, kind))
    return {name: _KINDS[name][1](query)}


def query_from_json(row: Mapping[str, Any]) -> SearchQuery:
    """The query of :func:`query_to_json`'s JSON.

    Raises:
        KeyError, TypeError, ValueError: another form.
        InvalidValue: an invalid part.
    """
    ((name, said),) = row.items()
    return _KINDS[name][2](said)


def _steps(query: Steps) -> Any:
    gaps = [None if math.isinf(gap) else gap for gap in query.gaps]
    return [[query_to_json(step) for step in query.steps], gaps]


def _read_steps(said: Any) -> Steps:
    gaps = tuple(math.inf if gap is None else gap for gap in said[1])
    return Steps(tuple(query_from_json(step) for step in said[0]), gaps)  # type: ignore[misc]


def _marked(query: Marked) -> Any:
    inner = None if query.query is None else query_to_json(query.query)
    right, wrong = (
        [[one.video_id, one.start, one.end] for one in marked] for marked in (query.right, query.wrong)
    )
    return [inner, right, wrong, query.concept]


def _read_marked(said: Any) -> Marked:
    inner, *marked, concept = said
    right, wrong = (tuple(MarkedMoment(*columns) for columns in own) for own in marked)
    return Marked(None if inner is None else query_from_json(inner), right, wrong, concept)


_KINDS: dict[str, tuple[type[SearchQuery], Callable[[Any], Any], Callable[[Any], SearchQuery]]] = {
    "text": (Text, lambda query: query.text, Text),
    "moment": (LikeMoment, lambda query: [query.video_id, query.time], lambda said: LikeMoment(*said)),
    "picture": (LikePicture, lambda query: str(query.path), lambda said: LikePicture(Path(said))),
    "sum": (
        WeightedSum,
        lambda query: [[query_to_json(term), weight] for term, weight in query.terms],
        lambda said: WeightedSum.of([(query_from_json(term), weight) for term, weight in said]),
    ),
    "steps": (Steps, _steps, _read_steps),
    "without": (
        Without,
        lambda query: [query_to_json(query.query), [query_to_json(one) for one in query.excluded]],
        lambda said: Without.of(query_from_json(said[0]), tuple(map(query_from_json, said[1]))),
    ),
    "marked": (Marked, _marked, _read_marked),
}
