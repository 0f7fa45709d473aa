"""The videos that filters choose, kept for further queries in the same state of a library."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from moviola.library import View
from moviola.retrieval import Scope
from moviola.search.filters import Filter
from moviola.search.found import Candidate
from moviola.types import Span

__all__ = ["Chosen"]

# Bytes of all sets that are kept together, about; the last one is kept whatever its size. And those of each
# video in a set, and of each clip of the videos in which pictures are searched.
_KEPT, _OF_VIDEO, _OF_CLIP = 1 << 28, 100, 16

Value = TypeVar("Value")


@dataclass(frozen=True)
class Chosen:
    """What filters choose in one view. Safe for threads.

    Attributes:
        view: of the library.
        tagged: gives ids of videos by tag. What depends on these is found again for each query.
    """

    view: View
    tagged: Callable[[], Mapping[str, Collection[str]]]
    _kept: OrderedDict[Hashable, tuple[Any, int]] = field(init=False, default_factory=OrderedDict)
    _lock: Lock = field(init=False, default_factory=Lock)

    def rows(self, filter: Filter) -> frozenset[int] | None:
        """Row numbers of the videos to search; None for all. Errors as in :meth:`Filter.passing`."""
        if filter.of_tags:
            return self._found(filter)
        return self._of("rows", filter, lambda: self._found(filter), lambda rows: _OF_VIDEO * len(rows or ()))

    def _found(self, filter: Filter) -> frozenset[int] | None:
        passing = filter.passing(self.view.columns, self.tagged)
        return None if passing is None else frozenset(self.view.videos.rows[passing].tolist())

    def scope(self, rows: frozenset[int] | None, filter: Filter) -> Scope | None:
        """The stretches of videos to search by pictures; None for everything."""
        if rows is None and filter.where == (None, None):
            return None  # videos are chosen by their places, so that ``rows`` are some then
        counts = self.view.features.counts
        return self._of(
            "scope", (rows, filter.where, filter.near), lambda: self._scope(rows, filter),
            lambda scope: _OF_VIDEO * len(scope.videos) + _OF_CLIP * int(counts[scope.videos].sum()),
        )  # fmt: skip

    def _scope(self, rows: frozenset[int] | None, filter: Filter) -> Scope:
        features = self.view.features
        places = np.arange(len(features.keys))
        if rows is not None:
            places = np.flatnonzero(np.isin(features.keys, np.fromiter(rows, np.int64, len(rows))))
        moving = self._moving(filter)
        if not moving:
            return Scope(places, *filter.stretches(features.durations[places]))
        parts = [(at, *part) for at in places.tolist() for part in self.parts(filter, int(features.keys[at]))]
        columns = np.array(parts, np.float64).reshape(-1, 3).T
        return Scope(columns[0].astype(np.int64), columns[1], columns[2])

    def parts(self, filter: Filter, row: int) -> list[tuple[float, float]]:
        """The seconds of a video, by row number, in which moments may be, in order."""
        low, high = filter.stretch(self.view.videos[row].duration)
        own = self._moving(filter).get(row, [(0.0, math.inf)])
        both = ((max(low, start), min(high, end)) for start, end in own)
        return [(start, end) for start, end in both if start < end]

    def there(self, filter: Filter, found: Iterable[Candidate]) -> list[Candidate]:
        """Those of some moments whose middle is in such a part of their video; of a film that moves, also the
        longest piece of a moment that reaches into one.
        """
        moving = self._moving(filter)
        if filter.where == (None, None) and not moving:
            return list(found)
        parts, there = cache(partial(self.parts, filter)), []
        for one in found:
            middle = (one.span.start + one.span.end) / 2
            if any(start <= middle < end for start, end in parts(one.row)):
                there.append(one)
            elif one.row in moving and (span := _longest_inside(one.span, parts(one.row))):
                there.append(replace(one, span=span))
        return there

    def _moving(self, filter: Filter) -> Mapping[int, list[tuple[float, float]]]:
        """:meth:`Filter.moving` by row number."""
        if filter.near is None:
            return {}
        rows = self.view.videos.rows
        return self._of(
            "moving", filter.near,
            lambda: {int(rows[at]): own for at, own in filter.moving(self.view.columns).items()},
            lambda moving: _OF_VIDEO * sum(map(len, moving.values())),
        )  # fmt: skip

    def _of(self, what: str, key: Hashable, make: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """A value that is kept, or made now."""
        with self._lock:
            if (what, key) in self._kept:
                self._kept.move_to_end((what, key))
                return self._kept[what, key][0]  # type: ignore[no-any-return]
        value = make()
        with self._lock:
            self._kept[what, key] = value, size(value)
            while len(self._kept) > 2 and sum(own for _, own in self._kept.values()) > _KEPT:
                self._kept.popitem(last=False)
        return value


def _longest_inside(span: Span, parts: Iterable[tuple[float, float]]) -> Span | None:
    """The longest piece of a span that is in one of some parts; None if it reaches into none."""
    pieces = ((max(span.start, start), min(span.end, end)) for start, end in parts)
    start, end = max(pieces, key=lambda piece: piece[1] - piece[0], default=(0.0, 0.0))
    return Span(start, end) if start < end else None
