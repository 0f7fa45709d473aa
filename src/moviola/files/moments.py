"""Moments as JSON rows: all fields, written and read in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, get_args

from moviola.errors import DataError
from moviola.files.rows import number, text
from moviola.types import BANDS, SNIPPET_KINDS, Band, CopiedMoment, Moment, Reason, ReasonKind, Span

__all__ = ["moment_row", "read_moment"]


def moment_row(moment: Moment) -> dict[str, Any]:
    """A moment's fields by name, for JSON."""
    return asdict(moment)


def read_moment(row: Mapping[str, Any], place: str, rank: int | None = None) -> Moment:
    """A moment from its row.

    Args:
        row: needs ``video_id``, ``start`` and ``end`` (seconds); other fields of a moment are optional.
        rank: from 1, replaces the row's own.

    Raises:
        DataError: a field is missing or malformed; the place and the field are named.
    """
    span = _span(row, place)
    score = row.get("score")
    return Moment(
        text(row, "video_id", place),
        span.start,
        span.end,
        number(score, "score", place, low=-math.inf) if score not in (None, "") else 0.0,
        _rank(row, place) if rank is None else rank,
        source=str(row.get("source") or "visual"),
        snippet=str(row.get("snippet") or ""),
        steps=tuple(
            read_moment(step, f"{place}: step {at}", rank)
            for at, step in enumerate(_objects(row, "steps", place), 1)
        ),
        snippet_kind=_kind(row, "snippet_kind", SNIPPET_KINDS, place) if row.get("snippet_kind") else "",
        band=_band(row, place),
        folded=tuple(_span(one, f"{place}: folded") for one in _objects(row, "folded", place)),
        why=tuple(_reason(one, place) for one in _objects(row, "why", place)),
        copies=tuple(_copy(one, place) for one in _objects(row, "copies", place)),
        by_key_frames=row.get("by_key_frames") is True,
    )


def _rank(row: Mapping[str, Any], place: str) -> int:
    rank = row.get("rank")
    if not isinstance(rank, int) or rank < 1:
        raise DataError(f"{place}: rank: a whole number from 1 is expected, not {rank!r:.40}")
    return rank


def _band(row: Mapping[str, Any], place: str) -> Band:
    """The band of a moment; of one that was chosen by hand, which has none, strong."""
    named = str(row.get("band") or "").lower()  # of a table: people write Strong
    band: Band = _kind({"band": named}, "band", [*BANDS], place) if named else "strong"
    return band


def _objects(row: Mapping[str, Any], name: str, place: str) -> Sequence[Mapping[str, Any]]:
    values = row.get(name) or []
    if not isinstance(values, list | tuple) or not all(isinstance(value, Mapping) for value in values):
        raise DataError(f"{place}: {name}: a list of objects is expected, not {values!r:.40}")
    return values


def _copy(row: Mapping[str, Any], place: str) -> CopiedMoment:
    span = _span(row, f"{place}: copies")
    return CopiedMoment(text(row, "video_id", place), span.start, span.end)


def _span(row: Mapping[str, Any], place: str) -> Span:
    start, end = (number(row.get(name), name, place) for name in ("start", "end"))
    if end <= start:
        raise DataError(f"{place}: end: {end:g} s is not after the start, {start:g} s")
    return Span(start, end)


def _reason(row: Mapping[str, Any], place: str) -> Reason:
    words = row.get("words") or ()
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise DataError(f"{place}: why: words: a list of texts is expected, not {words!r:.40}")
    kind: ReasonKind = _kind(row, "kind", get_args(ReasonKind), place)
    return Reason(kind, number(row.get("score"), "score", place), tuple(words))


def _kind(row: Mapping[str, Any], name: str, known: Sequence[str], place: str) -> Any:
    if row.get(name) not in known:
        raise DataError(f"{place}: {name}: one of {', '.join(known)} is expected, not {row.get(name)!r:.40}")
    return row[name]
