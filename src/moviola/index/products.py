"""Inner products that are equal to the bit for any size of batch.

Each is summed separately, in one order. Those of the BLAS depend on the place in the matrix, on the number of
rows and on the number of threads, so a query in a batch would find other neighbours than alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["all_products", "paired_products"]


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
    rows, columns = np.indices((len(left), len(right))).reshape(2, -1)
    return paired_products(left, rows, right, columns).reshape(len(left), len(right))
