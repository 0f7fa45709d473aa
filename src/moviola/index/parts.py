"""Files of an index whose vectors lie in lists of codes: immutable parts, of which some are merged in time.

A part holds vectors, and codes of them and of those of earlier parts: parts are searched in groups, each by
the codes in its last file. So a merge codes vectors again (a twentieth of their bytes) that stay where they
are, and only moves those of files that have become small beside the group. Merged are :data:`FAN_OUT` groups
of like size (``benchmarks/index.md``).
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.files.array_file import map_arrays, write_arrays
from moviola.files.file_rows import FileRows, Rows
from moviola.files.parts import Groups, NewFile, PartFile, gone_of, with_gone
from moviola.index.coded_lists import CodedLists, JoinedLists, learnt_lists
from moviola.index.contract import Ids
from moviola.index.half_rows import HalfRows

__all__ = [
    "FAN_OUT", "FIRST", "GONE", "KEPT", "LARGEST", "Group", "Parts", "RowSpan", "RowsFile", "write_part",
]  # fmt: skip

FIRST = 4096
"""Vectors of the smallest groups, of which :data:`FAN_OUT` are merged."""
FAN_OUT = 4
"""Groups of one class of size that are merged. More are less work for writers and more for each search."""
LARGEST = 1 << 20
"""Vectors of a group that is merged no more, or up to half as many again: it bounds the memory of merging."""
KEPT = 16
"""A file stays where it is in a group of at most this many times its vectors."""
GONE = 3
"""Of this many vectors one may be gone; a group with more is written again without them."""

_LEARNT = ("axes", "centroids", "codebook", "table")


@dataclass(frozen=True, eq=False)
class RowsFile:
    """Vectors of a file, mapped.

    Attributes:
        ids: (n,) int64, rising.
        gone: (g,) int64, rising, places of those that were removed when it was published.
        bits: the file that says so.
    """

    path: Path
    ids: Ids
    rows: HalfRows
    gone: Ids
    bits: Path | None

    @classmethod
    def of(cls, part: PartFile) -> Self:
        arrays = _arrays(part.path, ("ids", "vectors"))
        count, dim = arrays["vectors"].values.shape
        rows = HalfRows(part.path, arrays["vectors"].offset, (count, dim))
        return cls(
            path=part.path, ids=arrays["ids"].values, rows=rows, gone=gone_of(part, count), bits=part.gone
        )

    def published(self, gone: Ids, new: NewFile) -> PartFile:
        """The file with those that are gone now, (g,) int64, which are written if they are others."""
        return with_gone(PartFile(self.path, self.bits), len(self.ids), self.gone, gone, new)


def _arrays(path: Path, names: Sequence[str]) -> dict[str, Any]:
    arrays = map_arrays(path)
    if missing := set(names) - arrays.keys():
        raise SegmentIndexError(f"{path}: damaged index file (no {min(missing)}); rebuild it")
    return arrays


@dataclass(frozen=True, eq=False)
class Group:
    """Vectors that share lists.

    Attributes:
        files: where they lie, the first of the last file after those of the others.
        lists: of all of them.
        list_of: (n,) uint32, the list of each.
        lasting: whether the files are an index's, and not temporary.
        comparable: whether codes score as those of other groups; those of format 1 of an index do not.
    """

    files: tuple[RowsFile, ...]
    lists: CodedLists
    list_of: NDArray[np.uint32]
    lasting: bool
    comparable: bool

    @classmethod
    def of(cls, parts: Sequence[PartFile], *, lasting: bool = True) -> Self:
        """Map files; raises :class:`SegmentIndexError` where one is damaged."""
        files, path = tuple(map(RowsFile.of, parts)), parts[-1].path
        arrays = _arrays(path, (*_LEARNT, "list_of", "codes"))
        learnt = {name: arrays[name].values for name in _LEARNT}
        learnt["mean"] = (
            arrays["mean"].values if "mean" in arrays else np.zeros(len(learnt["axes"]), np.float32)
        )
        lists, list_of = CodedLists(learnt, path, arrays["codes"].offset), arrays["list_of"].values
        if len(list_of) != sum(len(file.ids) for file in files):
            raise SegmentIndexError(f"{path}: damaged index file (of other vectors); rebuild it")
        return cls(files, lists, list_of, lasting, "mean" in arrays)

    @classmethod
    def temporary(cls, ids: Ids, vectors: Rows) -> Self:
        """Of vectors (n, dim), float32 or float16, under rising ids, in a temporary file."""
        folder = Path(tempfile.mkdtemp(prefix="moviola-index-"))
        try:
            write_part(folder / "part", (), ids, vectors)
            group = cls.of([PartFile(folder / "part")], lasting=False)
        except BaseException:  # a full disk above all
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(group, shutil.rmtree, folder, ignore_errors=True)
        return group

    def __len__(self) -> int:
        return len(self.list_of)


def write_part(path: Path, others: Sequence[RowsFile], ids: Ids, vectors: Rows) -> None:
    """Write a part with vectors (n, dim) under rising ids, and with codes of those of others and of its own.

    With others, the vectors are half-precision rows in a file.
    """
    every: Rows = vectors
    if others:
        assert isinstance(vectors, FileRows)
        every = FileRows.joined([*(file.rows for file in others), vectors])
    write_arrays(path, {"ids": (ids, "<i8"), **learnt_lists(every), "vectors": (vectors, "<f2")})


class RowSpan:
    """Some rows of others, which follow each other."""

    def __init__(self, rows: Rows, begin: int, end: int) -> None:
        self._rows, self._begin = rows, begin
        self.shape = end - begin, rows.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Ids) -> NDArray[Any]:
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(len(self))
            return np.asarray(self._rows[self._begin + begin : self._begin + end])
        return np.asarray(self._rows[self._begin + rows])


@dataclass(frozen=True, eq=False)
class Parts:
    """All groups of an index; a row is a vector by its place among all of them."""

    groups: tuple[Group, ...]

    @classmethod
    def of(cls, groups: Groups) -> Self:
        """Map files; raises :class:`SegmentIndexError` where one is damaged."""
        return cls(tuple(map(Group.of, groups)))

    def __len__(self) -> int:
        return int(self.begins[-1])

    @cached_property
    def files(self) -> tuple[RowsFile, ...]:
        return tuple(file for group in self.groups for file in group.files)

    @cached_property
    def begins(self) -> Ids:
        """First row of each file, and the number of all rows."""
        return np.cumsum([0, *(len(file.ids) for file in self.files)])

    @cached_property
    def group_begins(self) -> Ids:
        """First row of each group, and the number of all rows."""
        return np.cumsum([0, *map(len, self.groups)])

    @cached_property
    def rows(self) -> HalfRows:
        return HalfRows.joined([file.rows for file in self.files])

    @cached_property
    def lists(self) -> JoinedLists:
        return JoinedLists([group.lists for group in self.groups], [len(group) for group in self.groups])

    @cached_property
    def gone(self) -> Ids:
        """Rows that were removed when the files were published, (g,) int64, rising."""
        return np.concatenate(
            [file.gone + begin for file, begin in zip(self.files, self.begins, strict=False)]
        )

    def ids_of(self, rows: Ids) -> Ids:
        """Ids of rows of any shape."""
        return self._gathered(rows, self.begins, [file.ids for file in self.files])

    def lists_of(self, rows: Ids) -> Ids:
        """Numbers of the lists of rows of any shape."""
        firsts = np.array([self.lists.first(number) for number in range(len(self.groups))])
        own = self._gathered(rows, self.group_begins, [group.list_of for group in self.groups])
        lists: Ids = own + firsts[np.searchsorted(self.group_begins, rows, side="right") - 1]
        return lists

    @staticmethod
    def _gathered(rows: Ids, begins: Ids, arrays: Sequence[NDArray[Any]]) -> Ids:
        """Values of arrays that follow each other, by place."""
        if len(arrays) == 1:
            return arrays[0][rows].astype(np.int64)
        order = np.argsort(rows, axis=None)
        rising, found = rows.ravel()[order], np.empty(rows.size, np.int64)
        bounds = np.searchsorted(rising, begins).tolist()
        for number, (first, last) in enumerate(pairwise(bounds)):
            if first < last:
                found[first:last] = arrays[number][rising[first:last] - begins[number]]
        gathered = np.empty(rows.size, np.int64)
        gathered[order] = found
        return gathered.reshape(rows.shape)

    def rows_of(self, ids: Ids, gone: Ids) -> Ids:
        """Rows of some ids (m,), rising, without those that are gone (g,), rising; rising."""
        found = [np.empty(0, np.int64)]
        for file, begin in zip(self.files, self.begins.tolist(), strict=False):
            if not len(file.ids):
                continue
            first = int(np.searchsorted(ids, file.ids[0]))
            last = int(np.searchsorted(ids, file.ids[-1], side="right"))
            own = ids[first:last]
            places = np.minimum(np.searchsorted(file.ids, own), len(file.ids) - 1)
            found.append(places[file.ids[places] == own] + begin)
        rows = np.concatenate(found)
        if len(gone):
            rows = rows[~are_in(rows, gone)]
        return rows

    def gone_in(self, gone: Ids, number: int) -> Ids:
        """Those of some rows (g,), rising, that lie in a file, by their places there."""
        begin, end = self.begins[number : number + 2]
        first, last = np.searchsorted(gone, [begin, end])
        places: Ids = gone[first:last] - begin
        return places


def are_in(values: Ids, some: Ids) -> NDArray[np.bool_]:
    """Which of values (n,) are among some (m,), rising, not empty."""
    return np.asarray(some[np.minimum(np.searchsorted(some, values), len(some) - 1)] == values)
