"""Vectors in a file that are read block by block, so that no more of them is in memory than is looked at.

They are read, not mapped: where files are cached in large pages, the first look at a mapped file makes all of
it count as memory of the process.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moviola.errors import SegmentIndexError

__all__ = ["FileRows", "Rows", "rows_in_file"]

# Rows between two that are wanted which are read along rather than left out by another call.
_GAP = 8


class Rows(Protocol):
    """Vectors (n, dim) float32 or float16 that are looked at part by part: an array, or rows in a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """n and dim."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any:
        """Some rows as an array: a slice of step 1, or those with some numbers (m,)."""


class FileRows:
    """Rows (n, dim) of a file.

    Args:
        file: its number; it is closed with the rows.
        name: what errors call it.
        offset: where in it the first row begins, in bytes.
        shape: n and dim.
        dtype: of the numbers.
    """

    def __init__(
        self, file: int, name: str, offset: int, shape: tuple[int, int], dtype: np.dtype[Any]
    ) -> None:
        self._file, self._name, self._offset = file, name, offset
        self.shape, self.dtype = shape, dtype
        weakref.finalize(self, os.close, file)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[Any]:
        """Some rows, (m, dim): a slice of step 1, or those with some numbers (m,), none twice.

        Raises:
            SegmentIndexError: the file is shorter than it was.
        """
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(len(self))
            return self._read(np.array([begin]), np.array([max(end - begin, 0)]))
        if (np.diff(rows) > 0).all():
            return self.read(rows)
        order = np.argsort(rows)
        found = np.empty((len(rows), self.shape[1]), self.dtype)
        found[order] = self.read(rows[order])
        return found

    def read(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Some rows (m,), rising, none twice, as (m, dim).

        Raises:
            SegmentIndexError: the file is shorter than it was.
        """
        begins = np.flatnonzero(np.diff(rows, prepend=-1 - _GAP) > _GAP)
        ends = np.append(begins[1:], len(rows))[: len(begins)]
        first = rows[begins]
        count = rows[ends - 1] - first + 1
        before = np.cumsum(count) - count
        wanted: NDArray[Any] = self._read(first, count)[rows - np.repeat(first - before, ends - begins)]
        return wanted

    def _read(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[Any]:
        """So many rows from each of some on, one run after the other."""
        found: NDArray[Any] = np.empty((int(count.sum()), self.shape[1]), self.dtype)
        target, size = found.reshape(-1).view(np.uint8).data, self.dtype.itemsize * self.shape[1]
        ends = np.cumsum(count)
        places = zip(
            ((ends - count) * size).tolist(), (ends * size).tolist(), (first * size).tolist(), strict=True
        )
        for begin, end, source in places:
            # Linux reads at most 2 GiB in one call.
            while begin < end:
                length = os.preadv(self._file, [target[begin:end]], self._offset + source)
                if length == 0:
                    raise SegmentIndexError(f"{self._name}: shorter than it was; rebuild the index")
                begin, source = begin + length, source + length
        return found


@contextmanager
def rows_in_file(
    parts: Iterable[tuple[NDArray[np.int64], NDArray[np.floating[Any]]]], dim: int, dtype: DTypeLike
) -> Iterator[tuple[NDArray[np.int64], FileRows]]:
    """Ids (n,) and vectors (n, dim) that come in parts, the vectors in a temporary file (in ``TMPDIR``).

    Only one part is in memory at a time. The file has no name, so nothing is left of it, come what may.
    """
    ids = [np.empty(0, np.int64)]
    with tempfile.TemporaryFile(prefix="moviola-vectors-") as file:
        for own, vectors in parts:
            ids.append(own)
            file.write(np.ascontiguousarray(vectors, dtype).data)
        file.flush()
        every = np.concatenate(ids)
        yield (
            every,
            FileRows(
                os.dup(file.fileno()), "vectors in a temporary file", 0, (len(every), dim), np.dtype(dtype)
            ),
        )
