"""Codes for a first scan, half-precision vectors on disk for re-ranking.

The mean of all vectors is subtracted, since text queries are far from all of them in one uninformative
direction; the rest is rotated to its principal axes. Vectors are sorted into lists (k-means) and, minus the
middle of the list, coded with 4 bits for two numbers (product quantisation), which faiss compares in
registers. The best by codes are compared again, with half-precision vectors that are read from the file.

A search checks its own depth. If the second half of the re-ranked candidates, in the order of their codes, or
of the probed lists, in the order of their middles, still holds more than one in 12 of the answers, twice as
many are examined. Codes of twice as many candidates are found at once, since a second scan costs more.

A list is chosen by the inner product of its middle with the query, that is by the mean score of its vectors,
though vectors are sorted into it by distance: nearest by distance to a far query would always be the lists in
the middle of all.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from moviola.files.array_file import MAGIC, map_arrays, write_arrays
from moviola.files.file_rows import Rows, rows_in_file
from moviola.index.coded_lists import Candidates, CodedLists, Nearest, learnt_lists
from moviola.index.contract import ROWS_AT_ONCE, Ids, IndexStats, MadeOf, parts_of
from moviola.index.flat import FlatIndex
from moviola.index.half_rows import HalfRows
from moviola.index.trained import TrainedIndex
from moviola.threads import one_faiss_thread

__all__ = ["RerankedIndex"]

_ARRAYS = ("ids", "list_of", "axes", "centroids", "codebook", "table", "codes", "vectors")
# Minimum number of candidates, even for few answers.
_LEAST_CANDIDATES = 128
# Up to this many allowed ids all are compared.
_COMPARED = 8192
# Of this many answers one may come from the second half of what was examined.
_LATE = 12
# Bits of a float32 without its sign, and bits of a sort key for the row.
_MAGNITUDE, _ROW_BITS, _ROW = np.int32(0x7FFFFFFF), 32, 0xFFFFFFFF
# Approximate limit of a matrix of queries and the items that each examines.
_CELLS_AT_ONCE = 1 << 20
# Fewer queries than this are searched on one thread: others would only wait for each other.
_FEW_QUERIES = 16


class RerankedIndex(TrainedIndex):
    """Lists of 4-bit codes, and half-precision vectors on disk by which the answer is ranked.

    ``parameters``: ``probes``, number of lists probed first, and ``candidates``, number of vectors re-ranked
    first per wanted answer.
    """

    LADDERS: ClassVar = {"probes": (8, 16, 32, 64, 128, 256), "candidates": (3, 4, 5, 6, 8, 12)}

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.parameters = {"probes": 128, "candidates": 6}
        self._main: _Main | None = None

    def stats(self) -> IndexStats:
        main = self._main
        lists, code = (len(main.lists), main.lists.code_size) if main else (0, 0)
        return self._stats(lists, code, 2 * self.dim)

    def write(self, path: Path) -> None:
        """Learn again from all vectors, if some came or went, and write the file."""
        main = self._main
        if main is not None and (len(self._recent) or len(self._gone)):
            with rows_in_file(self._everything(main), self.dim, np.float16) as (ids, vectors):
                self.build(ids, vectors)
        if self._main is None:
            self._recent.write(path)
        else:
            shutil.copyfile(self._main.path, path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a file; it is mapped, and read as needed."""
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

    def _everything(self, main: _Main) -> Iterator[tuple[Ids, NDArray[np.float16]]]:
        """All ids, rising, and their vectors in half precision, block by block."""
        kept, recent = np.flatnonzero(~np.isin(main.ids, self._gone)), self._recent.ids()
        ids = np.concatenate([main.ids[kept], recent])
        order = np.argsort(ids)
        for block in parts_of(len(ids), ROWS_AT_ONCE):
            part = order[block]
            vectors, stored = np.empty((len(part), self.dim), np.float16), part < len(kept)
            vectors[stored] = main.rows[kept[part[stored]]]
            vectors[~stored] = self._recent.vectors_of(ids[part[~stored]])
            yield ids[part], vectors

    def _main_count(self) -> int:
        return 0 if self._main is None else len(self._main.ids)

    def _main_ids(self) -> Ids:
        return np.empty(0, np.int64) if self._main is None else self._main.ids

    def _forget(self) -> None:
        self._main = None

    def _train(self, ids: Ids, vectors: Rows) -> None:
        arrays = learnt_lists(vectors)
        folder = Path(tempfile.mkdtemp(prefix="moviola-index-"))
        try:
            write_arrays(folder / "main", {"ids": (ids, "<i8"), **arrays, "vectors": (vectors, "<f2")})
            main = _Main.of(folder / "main")
        except BaseException:  # a full disk above all
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(main, shutil.rmtree, folder, ignore_errors=True)
        self._main = main

    # -- searching -----------------------------------------------------------------------------------------

    def _search_main(
        self, queries: NDArray[np.float32], depth: int, only: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        main = self._main
        assert main is not None
        chosen = None  # all
        if only is not None:
            chosen = main.chosen.of(only, None, lambda ids: _Chosen.of(main, np.searchsorted(main.ids, ids)))
        elif len(self._gone):
            chosen = _Chosen.of(main, np.flatnonzero(~np.isin(main.ids, self._gone)))
        count, few = (len(main.ids), 0) if chosen is None else (len(chosen.rows), _COMPARED)
        with one_faiss_thread(len(queries) < _FEW_QUERIES):
            if count <= max(few, 2 * depth):
                best = main.best(chosen, queries, depth)
            else:
                probes = min(self.parameters["probes"], len(main.lists))
                candidates = max(self.parameters["candidates"] * depth, _LEAST_CANDIDATES)
                best = _Lookup(main, queries, depth, chosen).best(probes, candidates)
        return best.scores, main.ids[best.rows]


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
class _Chosen:
    """Rows to search, rising, and a bit of every row, whether it is one of them."""

    rows: Ids
    bits: NDArray[np.uint8]

    @classmethod
    def of(cls, main: _Main, rows: Ids) -> Self:
        allowed = np.zeros(len(main.ids), np.bool_)
        allowed[rows] = True
        return cls(rows, np.packbits(allowed, bitorder="little"))


@dataclass(eq=False)
class _Main:
    """The learnt part, mapped.

    Attributes:
        ids: (n,) int64, rising; a row is a place in it.
        list_of: (n,) uint32, the list of each row.
        lists: the rows by their codes.
        rows: vectors in half precision.
        chosen: the rows of ids that were searched among before.
    """

    path: Path
    ids: Ids
    list_of: NDArray[np.uint32]
    lists: CodedLists
    rows: HalfRows
    chosen: MadeOf[_Chosen] = field(default_factory=MadeOf)

    @classmethod
    def of(cls, path: Path) -> _Main:
        """Map a file; raises :class:`SegmentIndexError` where it is damaged."""
        arrays = map_arrays(path, _ARRAYS)
        learnt = {name: arrays[name].values for name in ("axes", "centroids", "codebook", "table")}
        lists = CodedLists(learnt, path, arrays["codes"].offset)
        count, dim = arrays["vectors"].values.shape
        rows = HalfRows(path, arrays["vectors"].offset, (count, dim))
        return cls(path, arrays["ids"].values, arrays["list_of"].values, lists, rows)

    def best(self, chosen: _Chosen | None, queries: NDArray[np.float32], depth: int) -> _Best:
        """The best of some rows, or of all; of equal ones those with the smaller id."""
        rows = np.arange(len(self.ids)) if chosen is None else chosen.rows
        kept = _Best.empty(len(queries), depth)
        for part in _parts(len(queries), len(rows)):
            keys = _sort_keys(self.rows.all_scores(rows, queries[part]), rows)
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
class _Lookup:
    """A search that doubles its depth for queries that need it.

    All queries take the same steps as alone, and steps at the same depth are computed together.
    """

    main: _Main
    queries: NDArray[np.float32]
    depth: int
    chosen: _Chosen | None
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
            lists = self.main.list_of[kept.rows].astype(np.int64)
            turns = np.take_along_axis(self._nearest.of(look.numbers).turns(), lists, axis=1)
            wider = ~deeper & (few | self._late(turns >= look.probes / 2))
        # faiss omits the lowest scores of all.
        short = look.numbers[few & ~deeper & ~wider]
        if len(short):
            best.fill(short, self.main.best(self.chosen, self.queries[short], self.depth))
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
