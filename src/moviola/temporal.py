"""Arithmetic of spans on arrays: intersection, overlap, suppression.

Spans are pairs of arrays, start and end, of any one unit; half-open; arrays broadcast. Results have the dtype
of the input.

Examples:
    >>> import numpy as np
    >>> from moviola.temporal import overlap
    >>> start, end = np.array([0.0, 1.0, 30.0]), np.array([10.0, 11.0, 40.0])
    >>> overlap(start, end, np.array(0.0), np.array(10.0)).round(2).tolist()
    [1.0, 0.82, 0.0]
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue

__all__ = ["fold", "intersection", "overlap", "places_in_groups", "suppress"]

Numbers = NDArray[Any]


def intersection(start: Numbers, end: Numbers, other_start: Numbers, other_end: Numbers) -> Numbers:
    """Length of the intersection, elementwise, >= 0."""
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
    """Greedy non-maximum suppression: indices of the surviving spans (TVR's ``temporal_nms``).

    By falling score, equal scores in the order given, a span is dropped when its IoU with one that was kept
    is above ``threshold`` (strictly). Spans of zero length overlap nothing. A single span always stays.

    Args:
        start, end, score: (n,).
        threshold: in [0, 1]; 1 keeps all.
        keep: maximum number of survivors, >= 1; all when not given.
        video: (n,) integers; spans of different videos do not overlap. All of one video when not given.

    Returns:
        (kept,) int64 positions, best first.

    Raises:
        InvalidValue: ``threshold`` or ``keep`` is out of range.
    """
    if not 0 <= threshold <= 1:
        raise InvalidValue(f"threshold {threshold}: give an IoU from 0 to 1")
    if keep is not None and keep < 1:
        raise InvalidValue(f"keep {keep}: give at least 1")
    order = np.argsort(-np.asarray(score), kind="stable")
    if threshold < 1:  # no overlap is larger
        where = np.zeros(len(order), np.int64) if video is None else np.asarray(video)[order]
        pairs = _close(start[order], end[order], threshold, where)
        order = order[_survivors(len(order), *pairs)]
    best: NDArray[np.int64] = order[:keep]
    return best


def fold(
    start: Numbers, end: Numbers, score: Numbers, threshold: float, *, video: Numbers
) -> NDArray[np.int64]:
    """For each span its representative: the better span that overlaps, contains or lies in it; or itself.

    By falling score, equal scores in the order given, a span is kept unless a kept one overlaps it by an IoU
    above ``threshold``, contains it, or lies in it. So no two kept spans do.

    Args:
        start, end, score: (n,), end > start.
        threshold: in [0, 1].
        video: (n,) integers; spans of different videos do not overlap.

    Returns:
        (n,) int64 positions: of a kept span its own, of another the best of its kept representatives.
    """
    order = np.argsort(-np.asarray(score), kind="stable")
    better, worse = _close(start[order], end[order], threshold, np.asarray(video)[order], nested=True)
    kept = _survivors(len(order), better, worse)
    stands = np.arange(len(order))
    by_kept = kept[better] & ~kept[worse]
    # Pairs by rising place of the worse and falling place of the better: the last assignment is the best.
    rows = np.lexsort((-better[by_kept], worse[by_kept]))
    stands[worse[by_kept][rows]] = better[by_kept][rows]
    representative = np.empty(len(order), np.int64)
    representative[order] = order[stands]
    return representative


def places_in_groups(
    values: Numbers,
    offsets: NDArray[np.int64],
    group: NDArray[np.int64],
    wanted: Numbers,
    side: Literal["left", "right"] = "left",
) -> NDArray[np.int64]:
    """:func:`numpy.searchsorted` in many groups at once.

    Args:
        values: (m,), rising within each group.
        offsets: (g + 1,); the values of group i are ``offsets[i]`` to ``offsets[i + 1]``.
        group, wanted: (n,), groups to search in, and values to search for.

    Returns:
        (n,) int64, places in the groups.
    """
    # Group and value as one integer, so that one search is enough.
    _, rank = np.unique(np.concatenate([values, wanted]), return_inverse=True)
    own = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys = own * len(rank) + rank[: len(values)]
    places: NDArray[np.int64] = np.searchsorted(keys, group * len(rank) + rank[len(values) :], side)
    return places - offsets[group]


def _survivors(count: int, better: NDArray[np.int64], worse: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(count,) bool, which spans survive, best first, where only one of each pair may."""
    # In rounds: a span is kept when all better ones that it is close to were dropped, and dropped when one of
    # them was kept. Each round decides the best open span; mostly there are two or three rounds.
    kept, dropped = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    while not (kept | dropped).all():
        blocked = np.zeros(count, np.bool_)
        blocked[worse[~dropped[better]]] = True
        kept |= ~blocked & ~dropped
        dropped[worse[kept[better]]] = True
    return kept


def _close(
    start: Numbers, end: Numbers, threshold: float, video: Numbers, *, nested: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places (m,) of earlier and later spans that overlap above a threshold, or are ``nested``."""
    _, group, sizes = np.unique(video, return_inverse=True, return_counts=True)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    order = np.lexsort((start, group))
    # In order of their starts, those that share time with a span follow it, up to the last before its end.
    own = group[order]
    last = offsets[own] + places_in_groups(start[order], offsets, own, end[order])
    counts = np.maximum(last - np.arange(len(order)) - 1, 0)
    one = np.repeat(np.arange(len(order)), counts)
    other = order[one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(counts) - counts, counts)]
    one = order[one]
    close = overlap(start[one], end[one], start[other], end[other]) > threshold
    if nested:  # the other one does not begin before the one
        close |= (end[other] <= end[one]) | (start[other] == start[one])
    pair = np.sort(np.stack([one[close], other[close]]), axis=0)
    return pair[0], pair[1]
