"""How an index with lists of codes is searched: how deep, and what is compared.

A search checks its own depth. If the second half of the re-ranked candidates, in the order of their codes, or
of the probed lists, in the order of their middles, still holds more than one in 12 of the answers, twice as
many are examined. Codes of twice as many candidates are found at once, since a second scan costs more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from moviola.index.coded_lists import Candidates, Nearest
from moviola.index.contract import Ids, parts_of
from moviola.index.parts import Parts

__all__ = ["Chosen", "Lookup", "best_of"]

# Of this many answers one may come from the second half of what was examined.
_LATE = 12
# Bits of a float32 without its sign, and bits of a sort key for the row.
_MAGNITUDE, _ROW_BITS, _ROW = np.int32(0x7FFFFFFF), 32, 0xFFFFFFFF
# Approximate limit of a matrix of queries and the items that each examines.
_CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class _Best:
    """The best rows of each query: scores (q, k) float32, falling, and rows (q, k) int64."""

    scores: NDArray[np.float32]
    rows: Ids

    @classmethod
    def empty(cls, queries: int, depth: int) -> _Best:
        return cls(np.empty((queries, depth), np.float32), np.empty((queries, depth), np.int64))

    @classmethod
    def of(cls, keys: Ids) -> _Best:
        """From sort keys (q, k), rising."""
        scores = ~(keys >> _ROW_BITS).astype(np.int32)
        scores ^= (scores >> 31) & _MAGNITUDE
        return cls(scores.view(np.float32), keys & _ROW)

    def fill(self, numbers: Ids | slice, other: _Best) -> None:
        self.scores[numbers], self.rows[numbers] = other.scores, other.rows


def _sort_keys(scores: NDArray[np.float32], rows: Ids) -> Ids:
    """Numbers int64 that rise as scores fall and, for equal ones, as rows rise; rows are below 2^32.

    The bits of floats of one sign sort like their values.
    """
    bits = (scores + np.float32(0)).view(np.int32)
    bits ^= (bits >> 31) & _MAGNITUDE
    return (~bits).astype(np.int64) << _ROW_BITS | rows


@dataclass(frozen=True, eq=False)
class Chosen:
    """Rows to search, rising, and a bit of every row of each group, whether it is one of them."""

    rows: Ids
    bits: tuple[NDArray[np.uint8], ...]

    @classmethod
    def of(cls, main: Parts, rows: Ids) -> Self:
        bits = []
        for begin, end in pairwise(main.group_begins.tolist()):
            allowed = np.zeros(end - begin, np.bool_)
            allowed[rows[slice(*np.searchsorted(rows, [begin, end]))] - begin] = True
            bits.append(np.packbits(allowed, bitorder="little"))
        return cls(rows, tuple(bits))


def best_of(main: Parts, chosen: Chosen | None, queries: NDArray[np.float32], depth: int) -> _Best:
    """The best of some rows, or of all; of equal ones those that come first."""
    rows = np.arange(len(main)) if chosen is None else chosen.rows
    kept = _Best.empty(len(queries), depth)
    for part in _parts(len(queries), len(rows)):
        keys = _sort_keys(main.rows.all_scores(rows, queries[part]), rows)
        kept.fill(part, _Best.of(np.sort(keys, axis=1)[:, :depth]))
    return kept


_NOTHING = _sort_keys(np.array([-np.inf], np.float32), np.array([0]))[0]
"""The sort key of no row, which comes last."""


def _parts(queries: int, width: int) -> list[slice]:
    """Queries in parts for which a matrix of ``width`` columns takes no more than some ten megabytes."""
    return parts_of(queries, max(1, _CELLS_AT_ONCE // width))


@dataclass
class _Look:
    """Queries with the same search depth.

    Attributes:
        numbers: (g,), which queries.
        probes: number of lists.
        candidates: (g, n), the best by their codes.
        count: number of these to compare, at most n.
        keys: (g, m), sort keys of the first m candidates, compared before.
    """

    numbers: Ids
    probes: int
    candidates: Candidates
    count: int
    keys: Ids

    @classmethod
    def fresh(cls, numbers: Ids, probes: int, candidates: Candidates, count: int) -> _Look:
        return cls(numbers, probes, candidates, count, np.empty((len(numbers), 0), np.int64))

    def of(self, chosen: NDArray[np.bool_]) -> _Look:
        """Some of the queries, (g,) bool."""
        at = np.flatnonzero(chosen)
        return replace(self, numbers=self.numbers[at], candidates=self.candidates.of(at), keys=self.keys[at])


@dataclass(frozen=True)
class Lookup:
    """A search that doubles its depth for queries that need it.

    All queries take the same steps as alone, and steps at the same depth are computed together.
    """

    main: Parts
    queries: NDArray[np.float32]
    depth: int
    chosen: Chosen | None
    """The rows to be searched; None: all."""

    @cached_property
    def _nearest(self) -> Nearest:
        return self.main.lists.nearest(self.queries)

    def best(self, probes: int, count: int) -> _Best:
        """The answers, with initial numbers of lists and candidates."""
        best = _Best.empty(len(self.queries), self.depth)
        for part in _parts(len(self.queries), 2 * count):
            looks = [self._look(np.arange(len(self.queries))[part], probes, count)]
            while looks:
                looks += self._further(looks.pop(), best)
        return best

    def _look(self, numbers: Ids, probes: int, count: int) -> _Look:
        return _Look.fresh(numbers, probes, self._search(numbers, 0, probes, 2 * count), count)

    def _further(self, look: _Look, best: _Best) -> list[_Look]:
        """Compare the candidates, keep the best, and search deeper where necessary."""
        keys = self._compared(look)
        answers = np.sort(keys, axis=1)[:, : self.depth]
        kept = _Best.of(answers)
        best.fill(look.numbers, kept)
        few = np.isneginf(kept.scores[:, -1])
        full = look.candidates.rows[:, look.count - 1] >= 0
        deeper = full & self._late(keys[:, -(-look.count // 2) :] <= answers[:, -1:])
        wider = np.zeros_like(few)
        if look.probes < len(self.main.lists):
            lists = self.main.lists_of(kept.rows)
            turns = np.take_along_axis(self._nearest.of(look.numbers).turns(), lists, axis=1)
            wider = ~deeper & (few | self._late(turns >= look.probes / 2))
        # faiss omits the lowest scores of all.
        short = look.numbers[few & ~deeper & ~wider]
        if len(short):
            best.fill(short, best_of(self.main, self.chosen, self.queries[short], self.depth))
        looks: list[_Look] = []
        if deeper.any():
            looks += self._deeper(replace(look, keys=keys).of(deeper))
        if wider.any():
            # As many candidates from twice as many lists.
            own, probes = look.of(wider), min(2 * look.probes, len(self.main.lists))
            more = self._search(own.numbers, own.probes, probes, len(own.candidates.rows.T))
            looks.append(_Look.fresh(own.numbers, probes, own.candidates.merged(more), own.count))
        return looks

    def _compared(self, look: _Look) -> Ids:
        """Sort keys (g, count) of the candidates; :data:`_NOTHING` where there is none."""
        rows = look.candidates.rows[:, look.keys.shape[1] : look.count]
        queries, places = np.nonzero(rows >= 0)
        own = rows[queries, places]
        keys = np.full(rows.shape, _NOTHING)
        scores = self.main.rows.scores(own, look.numbers[queries], self.queries)
        keys[queries, places] = _sort_keys(scores, own)
        return np.concatenate([look.keys, keys], axis=1)

    def _late(self, late: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether too many answers come from the second half of what was examined (g, n)."""
        return np.asarray(np.count_nonzero(late, axis=1) * _LATE > self.depth)

    def _deeper(self, look: _Look) -> Iterator[_Look]:
        """Twice as many candidates from the same lists."""
        count = 2 * look.count
        if count <= len(look.candidates.rows.T):
            yield replace(look, count=count)
            return
        for part in _parts(len(look.numbers), 2 * count):
            yield self._look(look.numbers[part], look.probes, count)

    def _search(self, numbers: Ids, begin: int, end: int, count: int) -> Candidates:
        bits = None if self.chosen is None else self.chosen.bits
        return self.main.lists.search(self._nearest.of(numbers).part(begin, end), count, bits)
