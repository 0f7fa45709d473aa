"""Codes for a first scan, half-precision vectors on disk for re-ranking.

The mean of all vectors is subtracted, since text queries are far from all of them in one uninformative
direction; the rest is rotated to its principal axes. Vectors are sorted into lists (k-means) and, minus the
middle of the list, coded with 4 bits for two numbers (product quantisation), which faiss compares in
registers. The best by codes are compared again, with half-precision vectors that are read from the file.

A list is chosen by the inner product of its middle with the query, that is by the mean score of its vectors,
though vectors are sorted into it by distance: nearest by distance to a far query would always be the lists in
the middle of all.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.files.array_file import MAGIC
from moviola.files.file_rows import Rows, rows_in_file
from moviola.files.parts import Groups, NewFile, PartFile, merges
from moviola.index.contract import ROWS_AT_ONCE, Ids, IndexStats, MadeOf, parts_of
from moviola.index.flat import FlatIndex
from moviola.index.lookups import Chosen, Lookup, best_of
from moviola.index.parts import (
    FAN_OUT,
    FIRST,
    GONE,
    KEPT,
    LARGEST,
    Group,
    Parts,
    RowsFile,
    RowSpan,
    write_part,
)
from moviola.index.trained import TrainedIndex
from moviola.threads import one_faiss_thread

__all__ = ["RerankedIndex"]

# Minimum number of candidates, even for few answers.
_LEAST_CANDIDATES = 128
# Of what a delta holds, the multiple of its vectors that may be removals.
_REMOVALS = 16
# Up to this many allowed ids all are compared.
_COMPARED = 8192
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
        self._main: Parts | None = None
        # Rows, not ids: one that was removed may have come again.
        self._gone = np.empty(0, np.int64)
        self._there: tuple[Ids, Chosen] | None = None
        self._written: RerankedIndex | None = None
        self._changes, self._chosen = object(), MadeOf[Chosen]()

    def stats(self) -> IndexStats:
        lists, code = (len(self._main.lists), self._main.lists.code_size) if self._main else (0, 0)
        return self._stats(lists, code, 2 * self.dim)

    # -- content -------------------------------------------------------------------------------------------

    def ids(self) -> Ids:
        return np.concatenate([np.empty(0, np.int64), *self.id_parts()])

    def id_parts(self) -> Iterator[Ids]:
        if self._main is not None:
            for number, file in enumerate(self._main.files):
                yield np.delete(file.ids, self._main.gone_in(self._gone, number))
        yield self._recent.ids()

    def has(self, ids: Ids) -> NDArray[np.bool_]:
        there = self._recent.has(ids)
        if self._main is not None:
            rows = self._main.rows_of(np.sort(ids), self._gone)
            there |= np.isin(ids, self._main.ids_of(rows))
        return there

    def _state(self) -> object:
        return self._changes

    def vectors_of(self, ids: Ids) -> NDArray[np.floating[Any]] | None:
        """Vectors of ids that are not in lists; None if some are. Rounded to half precision if lists are
        there, as those that are in them.
        """
        if not self._recent.has(ids).all():
            return None
        return self._recent.vectors_of(ids).astype(np.float32 if self._main is None else np.float16)

    def few(self, changes: int) -> bool:
        """Some thousand vectors; what is removed costs searches nothing."""
        return len(self._recent) <= FIRST and changes <= _REMOVALS * FIRST

    def extend(self, ids: Ids, vectors: Rows) -> None:
        """As in the base; many vectors are sorted into lists at once, in a temporary file."""
        if self._main is None or len(ids) < FIRST:
            super().extend(ids, vectors)
            return
        ids = self._checked_all(ids, vectors)
        if self.has(ids).any():
            raise InvalidValue(f"segment id {ids[self.has(ids)][0]}: present already; remove it first")
        order = np.argsort(ids)
        in_order = bool((np.diff(order) == 1).all())
        groups = _groups(ids[order], vectors if in_order else vectors[order])
        self._main = Parts((*self._main.groups, *groups))
        self._sorted, self.added = None, np.union1d(self.added, ids)
        self._changes = object()

    def _add(self, ids: Ids, vectors: NDArray[np.float32]) -> None:
        rounded = vectors if self._main is None else vectors.astype(np.float16).astype(np.float32)
        super()._add(ids, rounded)
        self._changes = object()

    def _remove(self, ids: Ids) -> None:
        recent = self._recent.has(ids)
        self._recent.remove(ids[recent])
        if self._main is not None:
            self._gone = np.union1d(self._gone, self._main.rows_of(ids[~recent], self._gone))
        self._changes = object()

    def _main_count(self) -> int:
        return 0 if self._main is None else len(self._main)

    def _main_ids(self) -> Ids:
        files = () if self._main is None else self._main.files
        return np.concatenate([self._gone[:0], *(file.ids for file in files)])

    def _forget(self) -> None:
        self._main, self._changes = None, object()

    def _train(self, ids: Ids, vectors: Rows) -> None:
        self._main, self._changes = Parts(_groups(ids, vectors)), object()

    # -- files ---------------------------------------------------------------------------------------------

    def write(self, path: Path) -> None:
        """Write all vectors to one file, sorted into lists again if some came or went."""
        main = self._main
        if main is None:
            self._recent.write(path)
        elif len(self) < self.LEAST:
            few = FlatIndex(self.dim)
            for ids, vectors in self._live_rows(range(len(main.files)), recent=True):
                few.add(ids, vectors.astype(np.float32))
            few.write(path)
        elif len(main.files) == 1 and not len(self._recent) + len(self._gone):
            shutil.copyfile(main.files[0].path, path)
        else:
            self._write_live(path, (), range(len(main.files)), recent=True)

    def write_groups(self, new: NewFile, *, whole: bool) -> Groups:
        """Write later vectors as a group, and merge groups (:func:`moviola.files.parts.merges`)."""
        main = self._main
        if main is None or len(self) < self.LEAST:
            groups: Groups = ((PartFile(new(self.write)),),)
        else:
            bundles = self._bundles(main, whole or not all(group.comparable for group in main.groups))
            groups = tuple(self._published(main, bundle, new, whole) for bundle in bundles)
        self._written = self.read_groups(groups)
        return groups

    def published(self) -> None:
        """Search the files that were written from now on."""
        written, self._written = self._written, None
        if written is not None:
            self._main, self._recent, self._gone = written._main, written._recent, written._gone
            self._sorted, self._changes = None, object()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a file; it is mapped, and read as needed."""
        return cls.read_groups(((PartFile(path),),))

    @classmethod
    def read_groups(cls, groups: Groups) -> Self:
        first = groups[0][0].path
        with first.open("rb") as file:
            learnt = file.read(len(MAGIC)) == MAGIC
        if learnt:
            main = Parts.of(groups)
            index = cls(main.rows.shape[1])
            index._main, index._gone = main, main.gone
        else:
            recent = FlatIndex.read(first)
            index = cls(recent.dim)
            index._recent = recent
        return index

    def _bundles(self, main: Parts, whole: bool) -> list[_Bundle]:
        """Bundles that are to be one group each: groups that stay, groups that are merged, later vectors."""
        recent, live = len(self._recent), self._live(main)
        numbers = [number for number, own in enumerate(live) if own]
        if whole and (recent or len(self._gone) or any(group.lasting for group in main.groups)):
            return [_Bundle(numbers, recent=True, again=True)]
        sizes = [live[number] for number in numbers]
        bundles = [
            _Bundle([numbers[at] for at in places if at < len(numbers)], len(numbers) in places)
            for places in merges([*sizes, recent] if recent else sizes, FIRST, FAN_OUT, LARGEST)
        ]
        for bundle in bundles:
            every = sum(len(main.groups[number]) for number in bundle.groups)
            bundle.again = GONE * (every - sum(live[number] for number in bundle.groups)) > every

        def size(bundle: _Bundle) -> int:
            return sum(live[number] for number in bundle.groups) + bundle.recent * recent

        bundles.sort(key=size)
        # Too few to learn from.
        while len(bundles) > 1 and bundles[0].changes and size(bundles[0]) < self.LEAST:
            bundles[1].join(bundles.pop(0))
        return bundles

    def _live(self, main: Parts) -> list[int]:
        """Vectors of each group that are there."""
        bounds = np.searchsorted(self._gone, main.group_begins)
        return [len(group) - int(gone) for group, gone in zip(main.groups, np.diff(bounds), strict=True)]

    def _published(self, main: Parts, bundle: _Bundle, new: NewFile, whole: bool) -> tuple[PartFile, ...]:
        """The files of one group, after all that is not yet in files was written."""
        first = np.cumsum([0, *(len(group.files) for group in main.groups)])
        own = [at for number in bundle.groups for at in range(*first[number : number + 2])]
        gone = {at: main.gone_in(self._gone, at) for at in own}
        if not bundle.changes:
            group = main.groups[bundle.groups[0]]
            if group.lasting:
                return tuple(main.files[at].published(gone[at], new) for at in own)
            if not any(map(len, gone.values())):
                source = group.files[0].path
                return (PartFile(new(lambda draft: _copy(source, draft))),)
        live = {at: len(main.files[at].ids) - len(gone[at]) for at in own}
        total = sum(live.values()) + bundle.recent * len(self._recent)
        lasting = {id(file) for group in main.groups if group.lasting for file in group.files}
        kept = [
            at for at in own
            if id(main.files[at]) in lasting and live[at] * KEPT >= total and not whole
            and GONE * len(gone[at]) <= len(main.files[at].ids)
        ]  # fmt: skip
        others = [at for at in own if at not in kept]
        stay = tuple(main.files[at] for at in kept)
        path = new(lambda draft: self._write_live(draft, stay, others, recent=bundle.recent))
        return (*(file.published(gone[at], new) for at, file in zip(kept, stay, strict=True)), PartFile(path))

    def _write_live(
        self, path: Path, others: Sequence[RowsFile], files: Iterable[int], *, recent: bool
    ) -> None:
        """Write a part: vectors of some files that are there, later ones, and codes of others too."""
        with rows_in_file(self._live_rows(files, recent), self.dim, np.float16) as (ids, vectors):
            write_part(path, others, ids, vectors)

    def _live_rows(self, files: Iterable[int], recent: bool) -> Iterator[tuple[Ids, NDArray[np.float16]]]:
        """Ids, rising, and vectors in half precision, block by block."""
        main = self._main
        assert main is not None
        numbers = [np.arange(*main.begins[at : at + 2]) for at in files]
        rows = np.concatenate([np.empty(0, np.int64), *numbers])
        rows = np.setdiff1d(rows, self._gone, assume_unique=True)
        ids = np.concatenate([main.ids_of(rows), self._recent.ids() if recent else self._gone[:0]])
        order = np.argsort(ids)
        for block in parts_of(len(ids), ROWS_AT_ONCE):
            part = order[block]
            vectors, stored = np.empty((len(part), self.dim), np.float16), part < len(rows)
            vectors[stored] = main.rows[rows[part[stored]]]
            vectors[~stored] = self._recent.vectors_of(ids[part[~stored]])
            yield ids[part], vectors

    # -- searching -----------------------------------------------------------------------------------------

    def _search_main(
        self, queries: NDArray[np.float32], depth: int, only: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        main = self._main
        assert main is not None
        chosen = None  # all
        if only is not None:
            chosen = self._chosen.of(
                only, self._changes, lambda ids: Chosen.of(main, main.rows_of(ids, self._gone))
            )
        elif len(self._gone):
            chosen = self._all_there(main)
        count, few = (len(main), 0) if chosen is None else (len(chosen.rows), _COMPARED)
        with one_faiss_thread(len(queries) < _FEW_QUERIES):
            if count <= max(few, 2 * depth):
                best = best_of(main, chosen, queries, depth)
            else:
                probes = min(self.parameters["probes"], len(main.lists))
                candidates = max(self.parameters["candidates"] * depth, _LEAST_CANDIDATES)
                best = Lookup(main, queries, depth, chosen).best(probes, candidates)
        return best.scores, main.ids_of(best.rows)

    def _all_there(self, main: Parts) -> Chosen:
        """The rows that are not gone."""
        if self._there is None or self._there[0] is not self._gone:
            rows = np.delete(np.arange(len(main)), self._gone)
            self._there = self._gone, Chosen.of(main, rows)
        return self._there[1]


@dataclass
class _Bundle:
    """Groups, by number, and later vectors if ``recent``, that become one; one group stays as it is unless it
    is written ``again``.
    """

    groups: list[int]
    recent: bool = False
    again: bool = False

    @property
    def changes(self) -> bool:
        return self.recent or self.again or len(self.groups) > 1

    def join(self, other: _Bundle) -> None:
        self.groups = sorted({*self.groups, *other.groups})
        self.recent = self.recent or other.recent


def _groups(ids: Ids, vectors: Rows) -> tuple[Group, ...]:
    """Vectors (n, dim) under rising ids as groups in temporary files: one, or several of like size."""
    bounds = np.linspace(0, len(ids), max(1, round(len(ids) / LARGEST)) + 1).astype(int).tolist()
    if len(bounds) == 2:
        return (Group.temporary(ids, vectors),)
    return tuple(
        Group.temporary(ids[begin:end], RowSpan(vectors, begin, end)) for begin, end in pairwise(bounds)
    )


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
