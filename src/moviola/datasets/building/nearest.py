"""Nearest captions of many queries: blocked matrix products, memory bounded (TVR-Ranking, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue

__all__ = ["nearest"]

# Rows of each side that are multiplied at once: 2048 x 8192 float32 are 64 MB.
_QUERY_BLOCK, _CAPTION_BLOCK = 2048, 8192


def nearest(
    queries: NDArray[np.float32],
    captions: NDArray[np.float32],
    top: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ``top`` captions of each query by cosine.

    Args:
        queries: (q, d) float32, L2-normalised.
        captions: (c, d) float32, L2-normalised.
        top: how many, >= 1; fewer come back where there are fewer captions.
        progress: called with queries done and queries in all.

    Returns:
        positions (q, t) int64 and similarities (q, t) float32 in [-1, 1], falling along each row; of equal
        ones the earlier caption comes first.

    Raises:
        InvalidValue: dimensions differ, or ``top`` is below 1.
    """
    if queries.ndim != 2 or captions.ndim != 2 or queries.shape[1] != captions.shape[1]:
        raise InvalidValue(f"queries {queries.shape} and captions {captions.shape}: give (q, d) and (c, d)")
    if top < 1:
        raise InvalidValue(f"top={top}: ask for at least one caption")
    depth = min(top, len(captions))
    positions = np.empty((len(queries), depth), np.int64)
    similarities = np.empty((len(queries), depth), np.float32)
    for first in range(0, len(queries), _QUERY_BLOCK):
        block = slice(first, first + _QUERY_BLOCK)
        positions[block], similarities[block] = _block(queries[block], captions, depth)
        if progress:
            progress(min(first + _QUERY_BLOCK, len(queries)), len(queries))
    return positions, similarities


def _block(
    queries: NDArray[np.float32], captions: NDArray[np.float32], depth: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The best of each caption block join the best so far.

    From the second block on only cosines above a query's ``depth``-th best are looked at: few, and fewer with
    every block, so that nearly all time goes into the products.
    """
    best = np.empty((len(queries), 0), np.float32)
    where = np.empty((len(queries), 0), np.int64)
    for first in range(0, len(captions), _CAPTION_BLOCK):
        cosines = queries @ captions[first : first + _CAPTION_BLOCK].T
        if best.shape[1] < depth:
            keep = _largest(cosines, depth)
            more = np.take_along_axis(cosines, keep, axis=1)
        else:
            keep, more = _above(cosines, best.min(axis=1))
        best = np.concatenate([best, more], axis=1)
        where = np.concatenate([where, keep + first], axis=1)
        keep = _largest(best, depth)
        best, where = np.take_along_axis(best, keep, axis=1), np.take_along_axis(where, keep, axis=1)
    order = np.lexsort((where, -best), axis=1)
    return np.take_along_axis(where, order, axis=1), np.take_along_axis(best, order, axis=1)


def _above(
    values: NDArray[np.float32], floor: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Places and values above each row's floor, (rows, most in a row); filled with -inf."""
    row, column = np.nonzero(values > floor[:, None])
    counts = np.bincount(row, minlength=len(values))
    slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = np.zeros((len(values), int(counts.max(initial=0))), np.int64)
    found = np.full(places.shape, -np.inf, np.float32)
    places[row, slot] = column
    found[row, slot] = values[row, column]
    return places, found


def _largest(values: NDArray[np.float32], depth: int) -> NDArray[np.int64]:
    """(rows, depth) places of the largest values of each row, in no order."""
    if values.shape[1] <= depth:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape).copy()
    return np.argpartition(-values, depth - 1, axis=1)[:, :depth].astype(np.int64)
