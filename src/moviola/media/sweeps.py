"""Transitions that sweep over the screen, from tiny pictures: wipes; pictures that push, cover, uncover.

While an edge moves evenly from one side to the other, what is behind it is the new picture and what is before
it the old one; each stays where it is or moves with the edge. So from its two ends all pictures between them
are known, and those of anything else, a cut, a dissolve, a pan, differ from these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["sweeps"]

# Least root mean square between both ends; share of its square by which the middle differs from both, by
# which each outer quarter differs from its end, and by which what is before and after does at most.
_FAR, _MIDDLE, _QUARTER, _QUIET = 35.0, 0.2, 0.03, 0.15
# Mean difference from what an even sweep shows, as a share of that between both ends, and how many rows or
# columns the edge may be away from where it should be.
_OFF, _UNEVEN = 0.2, 2
# Least change of the median row and column, as a share of the mean: all of the picture is replaced.
_ALL_OVER = 0.3
# Stretches that are compared at most, and pictures of each.
_MOST, _COMPARED = 24, 7

Pictures = NDArray[np.uint8]
Floats = NDArray[np.float64]


def sweeps(
    times: Floats,
    pictures: Pictures,
    squared: Floats,
    lengths: list[int],
    cuts_before: NDArray[np.int64],
    *,
    doubt: float,
) -> list[tuple[int, int]]:
    """First and last pictures of the stretches in which one picture sweeps another away.

    Args:
        times: (n,) seconds at which the pictures (n, rows, columns, 3) come on screen.
        squared: (n, n) mean squared distances of the pictures.
        lengths: numbers of steps that a sweep may have, 2 or more, and fewer than there are pictures.
        cuts_before: (n,) number of cuts up to each picture; none lies in a sweep.
        doubt: factor by which limits are wider.
    """
    ends = [candidate for length in lengths for candidate in _candidates(squared, length, cuts_before, doubt)]
    found: list[tuple[int, int]] = []
    compared = 0
    for _, first, last in sorted(ends):
        if compared == _MOST or any(first < stop and start < last for start, stop in found):
            continue
        compared += 1
        places = np.unique(np.linspace(first, last, _COMPARED + 2).round().astype(np.int64))
        if _strays(times[places], pictures[places], _OFF * doubt) <= _OFF * doubt:
            found.append((first, last))
    return found


def _candidates(
    squared: Floats, length: int, cuts_before: NDArray[np.int64], doubt: float
) -> Iterator[tuple[float, int, int]]:
    """First and last pictures between which all changes, and around which little does, the best first."""
    count = len(squared)
    first = np.arange(count - length)
    last, quarter = first + length, max(1, length // 4)
    whole = squared[first, last]
    middle = np.minimum(squared[first, first + length // 2], squared[first + length // 2, last])
    outer = np.minimum(squared[first, first + quarter], squared[last - quarter, last])
    before = squared[np.maximum(first - quarter, 0), first]
    after = squared[last, np.minimum(last + quarter, count - 1)]
    around = np.maximum(before, after)
    usable = (np.sqrt(whole) >= _FAR / doubt) & (cuts_before[last] == cuts_before[first])
    usable &= middle >= _MIDDLE / doubt * whole
    usable &= (outer >= _QUARTER / doubt * whole) & (around <= _QUIET * doubt * whole)
    for place in np.flatnonzero(usable).tolist():
        merit = float((around[place] - outer[place]) / whole[place])
        yield merit, place, place + length


def _strays(times: Floats, pictures: Pictures, most: float) -> float:
    """How far pictures between two ends are from the likeliest sweep, as a share of the ends' distance;
    infinite if more than ``most``.
    """
    shares = (times[1:-1] - times[0]) / (times[-1] - times[0])
    least = np.inf
    change = np.abs(pictures[-1].astype(np.float32) - pictures[0]).mean(axis=2)
    if min(np.median(change.mean(axis=axis)) for axis in (0, 1)) < _ALL_OVER * change.mean():
        return least  # a banner
    for axis in (1, 2):
        for backward in (False, True):
            along = np.moveaxis(pictures, axis, 1).astype(np.float32)
            least = min(least, _strays_along(shares, along[:, ::-1] if backward else along, most))
    return float(least)


def _strays_along(shares: Floats, pictures: NDArray[np.float32], most: float) -> float:
    """:func:`_strays` where the new picture comes in at the first of the rows (n, rows, columns, 3)."""
    old, new = pictures[0], pictures[-1]
    size, row = len(old), old[0].size
    scale = max(float(np.abs(old - new).mean()), 1e-6)
    off = np.zeros((2, 2))  # new and old picture, each where it is or moving with the edge
    for number in np.argsort(np.abs(shares - 0.5), kind="stable").tolist():  # the middle shows most
        picture, middle = pictures[number + 1], round(float(shares[number]) * size)
        edges = range(max(middle - _UNEVEN, 1), min(middle + _UNEVEN, size - 1) + 1)
        here = np.full((2, 2), np.inf)
        for edge in edges:
            behind, before = picture[: edge - 1], picture[edge + 1 :]
            came = [np.abs(behind - new[start : start + edge - 1]).sum() for start in (0, size - edge)]
            left = [np.abs(before - old[start : start + size - edge - 1]).sum() for start in (edge + 1, 1)]
            here = np.minimum(here, np.add.outer(came, left) / (row * (size - 2)))
        off += here / len(shares)
        if off.min() > most * scale:  # whatever the rest shows
            return np.inf
    return float(off.min()) / scale
