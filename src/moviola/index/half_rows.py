"""Vectors in half precision in a file, of which a search reads the rows that it compares."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.index.file_rows import FileRows
from moviola.index.products import all_products, paired_products

__all__ = ["HalfRows"]

_ROWS_AT_ONCE = 1 << 9
_WIDENED_AT_ONCE = 128
# By which queries are multiplied, since widened rows are smaller by as much.
_SCALE = np.float32(2.0**112)


class HalfRows(FileRows):
    """Rows (n, dim) float16 of a file.

    Args:
        path: the file.
        offset: where in it the first row begins, in bytes.
        shape: n and dim.
    """

    def __init__(self, path: Path, offset: int, shape: tuple[int, int]) -> None:
        super().__init__(os.open(path, os.O_RDONLY), str(path), offset, shape, np.dtype(np.float16))

    def scores(
        self, rows: NDArray[np.int64], numbers: NDArray[np.int64], queries: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Inner products (p,) float32 of rows with queries, pair by pair.

        What several queries want is read once, in the order in which it lies, and some hundred rows at a
        time. Equal rows get equal products, wherever they lie and whoever else asks.

        Args:
            rows: (p,), in any order.
            numbers: (p,), the query that each is compared with.
            queries: (q, dim) float32.
        """
        order = np.argsort(rows, kind="stable")
        sorted_rows = rows[order]
        new = np.diff(sorted_rows, prepend=-1) > 0
        distinct, place = sorted_rows[new], np.cumsum(new) - 1
        scaled, found = queries * _SCALE, np.empty(len(rows), np.float32)
        for begin in range(0, len(distinct), _ROWS_AT_ONCE):
            wide = _widened(self.read(distinct[begin : begin + _ROWS_AT_ONCE]))
            pairs = slice(*np.searchsorted(place, (begin, begin + len(wide))))
            own = order[pairs]
            found[own] = paired_products(scaled, numbers[own], wide, place[pairs] - begin)
        return found

    def all_scores(self, rows: NDArray[np.int64], queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """Inner products (q, m) float32 of queries (q, dim) with each of some rows (m,), rising, none twice.

        The same numbers as :meth:`scores`.
        """
        scaled, found = queries * _SCALE, np.empty((len(queries), len(rows)), np.float32)
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(begin, begin + _ROWS_AT_ONCE)
            found[:, part] = all_products(scaled, _widened(self.read(rows[part])))
        return found


def _widened(rows: NDArray[np.float16]) -> NDArray[np.float32]:
    """Rows (m, dim) as float32, divided by :data:`_SCALE`.

    NumPy widens halves one by one. Their bits, moved to where float32 has them, are the same numbers times
    2^-112, since the exponents count from elsewhere. Nothing is rounded.
    """
    wide = np.empty(rows.shape, np.int32)
    kept = np.array(0x8FFFE000, np.uint32).view(np.int32)
    for begin in range(0, len(rows), _WIDENED_AT_ONCE):
        part = wide[begin : begin + _WIDENED_AT_ONCE]
        np.left_shift(rows[begin : begin + _WIDENED_AT_ONCE].view(np.int16), 13, out=part, dtype=np.int32)
        part &= kept
    return wide.view(np.float32)
