"""The videos that filters choose, kept for further queries in the same state of a library."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from moviola.library import View
from moviola.retrieval import Scope
from moviola.search.filters import Filter

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
            return None
        counts = self.view.features.counts
        return self._of(
            "scope", (rows, filter.where), lambda: self._scope(rows, filter),
            lambda scope: _OF_VIDEO * len(scope.videos) + _OF_CLIP * int(counts[scope.videos].sum()),
        )  # fmt: skip

    def _scope(self, rows: frozenset[int] | None, filter: Filter) -> Scope:
        features = self.view.features
        places = np.arange(len(features.keys))
        if rows is not None:
            places = np.flatnonzero(np.isin(features.keys, np.fromiter(rows, np.int64, len(rows))))
        return Scope(places, *filter.stretches(features.durations[places]))

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
