"""Coded vectors for a first look, half-precision vectors on disk for the answer.

The mean of all vectors is taken off, since queries by text lie far from all of them in one direction that
tells nothing; what is left is turned to the axes on which it varies. It is sorted into lists (k-means) and,
less the middle of its list, coded with 4 bits for two numbers (product quantisation), which faiss compares in
registers. The best by their codes are compared again, with vectors in half precision that are read from the
file.

How far a search looks checks itself. If the second half of the candidates that were compared again, in the
order of their codes, or of the lists, in the order of their middles, still gave more than one in 25 of the
answers, there may be more behind them, and twice as many are looked at.

A list is chosen by the inner product of its middle with the query, that is by the mean score of what it
holds, though vectors are sorted into it by distance: nearest by distance to a query that lies far off would
be the lists in the middle of all, whatever is asked.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from moviola.index.array_file import MAGIC, map_arrays, write_arrays
from moviola.index.coded_lists import Candidates, CodedLists, Nearest, learnt_lists
from moviola.index.contract import Ids, IndexStats
from moviola.index.flat import FlatIndex
from moviola.index.half_rows import HalfRows
from moviola.index.trained import TrainedIndex

__all__ = ["RerankedIndex"]

_ARRAYS = ("ids", "list_of", "axes", "centroids", "codebook", "table", "codes", "vectors")
# Candidates are as many as this at least, however few answers are wanted.
_LEAST_CANDIDATES = 128
# Of so many ids that are allowed, all are compared.
_COMPARED = 8192
# Of how many answers one may come from the second half of what was looked at.
_LATE = 25


class RerankedIndex(TrainedIndex):
    """Lists of 4-bit codes, and half-precision vectors on disk by which the answer is ranked.

    ``parameters``: ``probes``, lists that are looked at first, and ``candidates``, vectors compared again
    first for each answer that is wanted.
    """

    LADDERS: ClassVar = {"probes": (32, 64, 128, 256, 512, 1024), "candidates": (3, 4, 5, 6, 8, 12)}

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.parameters = {"probes": 512, "candidates": 5}
        self._main: _Main | None = None

    def stats(self) -> IndexStats:
        """What it holds, and what a search reads."""
        main = self._main
        lists, code = (len(main.lists), main.lists.code_size) if main else (0, 0)
        return IndexStats(
            len(self), len(self._recent), len(self._gone), lists, code, 2 * self.dim, dict(self.parameters)
        )

    def write(self, path: Path) -> None:
        """Learn anew from all vectors, where some came or went, and write the file."""
        if self._main is not None and (len(self._recent) or len(self._gone)):
            self.build(*self._everything(self._main))
        if self._main is None:
            self._recent.write(path)
        else:
            shutil.copyfile(self._main.path, path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a file; it is mapped, and read as far as it is searched."""
        with path.open("rb") as file:
            trained = file.read(len(MAGIC)) == MAGIC
        if trained:
            main = _Main.of(path)
            index = cls(main.rows.shape[1])
            index._main = main
        else:
            recent = FlatIndex.read(path)
            index = cls(recent.dim)
            index._recent = recent
        return index

    def _everything(self, main: _Main) -> tuple[Ids, NDArray[np.float16]]:
        """All ids, rising, and their vectors in half precision."""
        kept = np.flatnonzero(~np.isin(main.ids, self._gone))
        recent = self._recent.ids()
        ids = np.concatenate([main.ids[kept], recent])
        halves = self._recent.vectors_of(recent).astype(np.float16)
        vectors = np.concatenate([main.rows.read(kept), halves]) if len(kept) else halves
        order = np.argsort(ids)
        return ids[order], vectors[order]

    def _main_count(self) -> int:
        return 0 if self._main is None else len(self._main.ids)

    def _main_ids(self) -> Ids:
        return np.empty(0, np.int64) if self._main is None else self._main.ids

    def _forget(self) -> None:
        self._main = None

    def _train(self, ids: Ids, vectors: NDArray[Any]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="moviola-index-"))
        path = folder / "main"
        arrays = learnt_lists(vectors)
        write_arrays(path, {"ids": (ids, "<i8"), **arrays, "vectors": (vectors, "<f2")})
        self._main = _Main.of(path)
        weakref.finalize(self._main, shutil.rmtree, folder, ignore_errors=True)

    # -- searching -----------------------------------------------------------------------------------------

    def _search_main(
        self, queries: NDArray[np.float32], depth: int, only: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        main = self._main
        assert main is not None
        rows = self._rows(main, only)
        count = len(main.ids) if rows is None else len(rows)
        if count <= max(0 if rows is None else _COMPARED, 2 * depth):
            everything = np.arange(len(main.ids)) if rows is None else rows
            best = [main.best(everything, query, depth) for query in queries]
        else:
            best = self._looked_up(main, queries, depth, rows)
        return np.stack([found.scores for found in best]), main.ids[np.stack([found.rows for found in best])]

    def _rows(self, main: _Main, only: Ids | None) -> Ids | None:
        """Rows, rising, that may be found; None: all."""
        if only is not None:
            return np.searchsorted(main.ids, only)
        if not len(self._gone):
            return None
        return np.flatnonzero(~np.isin(main.ids, self._gone))

    def _looked_up(
        self, main: _Main, queries: NDArray[np.float32], depth: int, rows: Ids | None
    ) -> list[_Best]:
        """The best of each query by codes, then by vectors; as deep as it takes."""
        allowed = None
        if rows is not None:
            allowed = np.zeros(len(main.ids), np.bool_)
            allowed[rows] = True
        probes = min(self.parameters["probes"], len(main.lists))
        count = max(self.parameters["candidates"] * depth, _LEAST_CANDIDATES)
        nearest = main.lists.nearest(queries)
        first = main.lists.search(queries, nearest.part(0, probes), count, allowed)
        looks = [
            _Look(main, query[None], nearest.of(number), depth, allowed, probes, count)
            for number, query in enumerate(queries)
        ]
        return [look.settled(first.of(number)) for number, look in enumerate(looks)]


@dataclass(frozen=True)
class _Best:
    """The best of some rows: scores (k,) float32, rows (k,)."""

    scores: NDArray[np.float32]
    rows: Ids

    @classmethod
    def of(cls, rows: Ids, scores: NDArray[np.float32], depth: int) -> _Best:
        """Of rows that rise; of those with equal scores the first."""
        places = np.argsort(-scores, kind="stable")[:depth]
        return cls(scores[places], rows[places])


@dataclass(eq=False)
class _Main:
    """What was learnt, mapped.

    Attributes:
        path: the file.
        ids: (n,) int64, rising; a row is a place in it.
        list_of: (n,) uint32, the list of each row.
        lists: the rows by their codes.
        rows: vectors in half precision.
    """

    path: Path
    ids: Ids
    list_of: NDArray[np.uint32]
    lists: CodedLists
    rows: HalfRows

    @classmethod
    def of(cls, path: Path) -> _Main:
        """Map a file.

        Raises:
            SegmentIndexError: it is damaged.
        """
        arrays = map_arrays(path, _ARRAYS)
        learnt = {name: arrays[name].values for name in ("axes", "centroids", "codebook", "table")}
        codes, vectors = arrays["codes"], arrays["vectors"]
        count, dim = vectors.values.shape
        return cls(
            path,
            arrays["ids"].values,
            arrays["list_of"].values,
            CodedLists(learnt, path, codes.offset),
            HalfRows(path, vectors.offset, (count, dim)),
        )

    def best(self, rows: Ids, query: NDArray[np.float32], depth: int) -> _Best:
        """The best of some rows, which rise; of equal ones those with the smaller id."""
        return _Best.of(rows, self.rows.scores(rows, query), depth)


@dataclass
class _Look:
    """One query's search, which looks at twice as much until it has seen enough.

    Attributes:
        probes, count: how many lists and candidates are looked at so far.
        known, scores: rows that were compared, rising, and how they score.
    """

    main: _Main
    query: NDArray[np.float32]
    nearest: Nearest
    depth: int
    allowed: NDArray[np.bool_] | None
    probes: int
    count: int
    known: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    scores: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))

    def settled(self, candidates: Candidates) -> _Best:
        """The answer, where these are the candidates that were found first."""
        lists = len(self.main.lists)
        while True:
            best = self._compared(candidates.rows)
            few = len(best.rows) < self.depth
            if len(candidates.rows) == self.count and self._late(
                _places(best.rows, candidates.rows), self.count
            ):
                self.count *= 2
                candidates = self._search(0, self.probes)
            elif self.probes < lists and (few or self._late(self._turns(best.rows), self.probes)):
                more = self._search(self.probes, min(2 * self.probes, lists))
                candidates = candidates.merged(more, self.count)
                self.probes = min(2 * self.probes, lists)
            elif few:
                # faiss leaves out what scores least of all.
                return self._compared(self._everything())
            else:
                return best

    def _search(self, begin: int, end: int) -> Candidates:
        part = self.nearest.part(begin, end)
        return self.main.lists.search(self.query, part, self.count, self.allowed).of(0)

    def _compared(self, rows: Ids) -> _Best:
        """The best of some candidates and of those before; what was not compared yet is now."""
        fresh = np.setdiff1d(rows, self.known)
        scores = self.main.rows.scores(fresh, self.query[0])
        known = np.append(self.known, fresh)
        order = np.argsort(known)
        self.known, self.scores = known[order], np.append(self.scores, scores)[order]
        return _Best.of(self.known, self.scores, self.depth)

    def _late(self, turns: NDArray[np.int64], looked_at: int) -> bool:
        """Whether too many answers come from the second half of what was looked at."""
        return bool(np.count_nonzero(turns >= looked_at / 2) * _LATE > self.depth)

    def _turns(self, rows: Ids) -> NDArray[np.int64]:
        """As which one the list of each of some rows was looked at."""
        turn = np.empty(len(self.main.lists), np.int64)
        turn[self.nearest.lists[0]] = np.arange(len(turn))
        return turn[self.main.list_of[rows]]

    def _everything(self) -> Ids:
        count = len(self.main.ids)
        return np.arange(count) if self.allowed is None else np.flatnonzero(self.allowed)


def _places(rows: Ids, among: Ids) -> NDArray[np.int64]:
    """Where among others each of some rows stands; those that do not, behind them."""
    order = np.argsort(among)
    at = np.minimum(np.searchsorted(among, rows, sorter=order), len(among) - 1)
    return np.where(among[order[at]] == rows, order[at], len(among))
