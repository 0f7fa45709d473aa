"""Half-precision vectors in a file, of which a search reads only the rows that it compares.

Inner products are equal to the bit for any size of batch: each is summed separately, in one order. Those of
the BLAS depend on the place in the matrix, on the number of rows and on the number of threads, so a query in
a batch would find other neighbours than alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.files.file_rows import FileRows
from moviola.files.halves import SCALE, shifted

__all__ = ["HalfRows", "all_products"]

# Number of rows that stay in the processor's cache from reading to comparing.
_ROWS_AT_ONCE = 1 << 8


class HalfRows(FileRows):
    """Rows (n, dim) float16 of a file, which begin at ``offset`` bytes."""

    def __init__(self, path: Path, offset: int, shape: tuple[int, int]) -> None:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        super().__init__(file, str(path), offset, shape, np.dtype(np.float16))

    def scores(
        self, rows: NDArray[np.int64], numbers: NDArray[np.int64], queries: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Inner products (p,) float32 of rows (p,), in any order, with queries (q, dim) by numbers (p,).

        Rows are read once for all queries, in the order of the file, some hundred at a time. Equal rows get
        equal products, at any place and in any batch.
        """
        order = np.argsort(rows)
        sorted_rows, sorted_numbers = rows[order], numbers[order]
        new = np.diff(sorted_rows, prepend=-1) > 0
        distinct, place = sorted_rows[new], np.cumsum(new) - 1
        bounds = np.searchsorted(place, np.arange(0, len(distinct) + _ROWS_AT_ONCE, _ROWS_AT_ONCE)).tolist()
        scaled, sorted_scores = queries * SCALE, np.empty(len(rows), np.float32)
        for (part, block), begin, end in zip(
            self.blocks(distinct, _ROWS_AT_ONCE), bounds[:-1], bounds[1:], strict=False
        ):
            pairs = slice(begin, end)
            sorted_scores[pairs] = paired_products(
                scaled, sorted_numbers[pairs], shifted(block), place[pairs] - part.start
            )
        in_order = np.empty_like(sorted_scores)
        in_order[order] = sorted_scores
        return in_order

    def all_scores(self, rows: NDArray[np.int64], queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """Inner products (q, m) float32 of queries (q, dim) with each of some rows (m,), rising, none twice.

        The same numbers as :meth:`scores`.
        """
        scaled, products = queries * SCALE, np.empty((len(queries), len(rows)), np.float32)
        for part, block in self.blocks(rows, _ROWS_AT_ONCE):
            products[:, part] = all_products(scaled, shifted(block))
        return products


def paired_products(
    left: NDArray[np.float32],
    left_rows: NDArray[np.int64],
    right: NDArray[np.float32],
    right_rows: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Inner products (p,) float32 of rows (p,) int64 of two matrices (n, dim) and (m, dim) without gaps."""
    # faiss's annotations do not name this function.
    from faiss import pairwise_indexed_inner_product, swig_ptr  # type: ignore[attr-defined]

    products = np.empty(len(left_rows), np.float32)
    arrays = (left, left_rows, right, right_rows, products)
    pairwise_indexed_inner_product(left.shape[1], len(products), *(swig_ptr(array) for array in arrays))
    return products


def all_products(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """Inner products (n, m) float32 of each row of one matrix (n, dim) with each of another (m, dim)."""
    rows = np.repeat(np.arange(len(left)), len(right))
    columns = np.tile(np.arange(len(right)), len(left))
    return paired_products(left, rows, right, columns).reshape(len(left), len(right))
