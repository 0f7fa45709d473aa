"""Arithmetic of spans on arrays: what two spans share, how much they overlap, which of many to keep.

Spans are pairs of arrays, start and end, of any one unit; half-open; arrays broadcast. Results have the dtype
of the input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue

__all__ = ["intersection", "overlap", "suppress"]

Numbers = NDArray[Any]


def intersection(start: Numbers, end: Numbers, other_start: Numbers, other_end: Numbers) -> Numbers:
    """Length that spans share, elementwise, >= 0."""
    shared = np.minimum(end, other_end) - np.maximum(start, other_start)
    length: Numbers = np.maximum(shared, 0, dtype=shared.dtype)
    return length


def overlap(start: Numbers, end: Numbers, other_start: Numbers, other_end: Numbers) -> Numbers:
    """Temporal intersection over union (IoU), elementwise, in [0, 1], symmetric.

    0 for spans that share no time, spans of zero length included. For spans that share time the union is
    their hull, so one subtraction gives it and values such as 15/30 come out exact.
    """
    shared = intersection(start, end, other_start, other_end)
    hull = np.maximum(end, other_end) - np.minimum(start, other_start)
    iou: Numbers = np.divide(shared, hull, out=np.zeros_like(hull), where=shared > 0)
    return iou


def suppress(
    start: Numbers,
    end: Numbers,
    score: Numbers,
    threshold: float,
    keep: int | None = None,
    *,
    video: Numbers | None = None,
) -> NDArray[np.int64]:
    """Greedy non-maximum suppression: which spans survive (TVR's ``temporal_nms``).

    By falling score, equal scores in the order given, a span is dropped when its IoU with one that was kept
    is above ``threshold`` (strictly). Spans of zero length overlap nothing. A single span always stays.

    Args:
        start: (n,).
        end: (n,).
        score: (n,).
        threshold: in [0, 1]; 1 keeps all.
        keep: at most so many survive, >= 1; all when not given.
        video: (n,) integers; spans of different videos do not overlap. All of one video when not given.

    Returns:
        (kept,) int64 positions, best first.

    Raises:
        InvalidValue: ``threshold`` or ``keep`` is out of range.
    """
    if not 0 <= threshold <= 1:
        raise InvalidValue(f"threshold {threshold}: an IoU lies between 0 and 1")
    if keep is not None and keep < 1:
        raise InvalidValue(f"keep {keep}: at least 1 span must survive")
    left = np.argsort(-np.asarray(score), kind="stable")
    best: list[int] = []
    while len(left) and (keep is None or len(best) < keep):
        first, left = left[0], left[1:]
        best.append(int(first))
        apart = overlap(start[first], end[first], start[left], end[left]) <= threshold
        left = left[apart if video is None else apart | (video[left] != video[first])]
    return np.array(best, np.int64)
