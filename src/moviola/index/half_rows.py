"""Vectors in half precision in a file, of which a search reads the rows that it compares.

They are read, not mapped: where files are cached in large pages, the first look at a mapped file makes all of
it count as memory of the process.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError

__all__ = ["HalfRows"]

# Rows between two that are wanted which are read along rather than left out by another call.
_GAP = 8
_ROWS_AT_ONCE = 1 << 12
_WIDENED_AT_ONCE = 128


class HalfRows:
    """Rows (n, dim) float16 of a file.

    Args:
        path: the file.
        offset: where in it the first row begins, in bytes.
        shape: n and dim.
    """

    def __init__(self, path: Path, offset: int, shape: tuple[int, int]) -> None:
        self._path, self._offset, self.shape = path, offset, shape
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float16]:
        """Some rows (m,), rising, none twice, as (m, dim) float16.

        Raises:
            SegmentIndexError: the file is shorter than it was.
        """
        cuts = np.flatnonzero(np.diff(rows) > _GAP) + 1
        first = rows[np.concatenate([[0], cuts])]
        count = rows[np.concatenate([cuts - 1, [len(rows) - 1]])] - first + 1
        begin = np.cumsum(count) - count
        found: NDArray[np.float16] = np.empty((int(count.sum()), self.shape[1]), np.float16)
        target, size = found.data.cast("B"), 2 * self.shape[1]
        places = zip((begin * size).tolist(), (count * size).tolist(), (first * size).tolist(), strict=True)
        for at, length, source in places:
            if os.preadv(self._file, [target[at : at + length]], self._offset + source) != length:
                raise SegmentIndexError(f"{self._path}: shorter than it was; rebuild the index")
        runs = np.diff(np.concatenate([[0], cuts, [len(rows)]]))
        wanted: NDArray[np.float16] = found[rows - np.repeat(first - begin, runs)]
        return wanted

    def scores(self, rows: NDArray[np.int64], query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Inner products (m,) float32 of some rows (m,), rising, none twice, with a query (dim,).

        Equal rows get equal products, wherever they lie.
        """
        parts = [
            _products(self.read(rows[begin : begin + _ROWS_AT_ONCE]), query)
            for begin in range(0, len(rows), _ROWS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.float32)


def _products(rows: NDArray[np.float16], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Inner products of rows (m, dim) with a query.

    NumPy widens halves one by one. Their bits, moved to where float32 has them, are the same numbers times
    2^-112, since the exponents count from elsewhere; so the query is multiplied by 2^112. Nothing is rounded.
    """
    products = np.empty(len(rows), np.float32)
    scaled = query * np.float32(2.0**112)
    kept = np.array(0x8FFFE000, np.uint32).view(np.int32)
    for begin in range(0, len(rows), _WIDENED_AT_ONCE):
        wide = rows[begin : begin + _WIDENED_AT_ONCE].view(np.int16).astype(np.int32)
        wide <<= 13
        wide &= kept
        # Row by row in one order, unlike the BLAS, whose sums depend on where in a matrix a row stands.
        products[begin : begin + len(wide)] = np.einsum("nd,d->n", wide.view(np.float32), scaled)
    return products
