"""Temporal non-maximum suppression: keep the best of moments that show the same thing."""

from __future__ import annotations

import numpy as np

from moviola.errors import InvalidValue
from moviola.measures.collections import Floats, Integers, Run
from moviola.measures.overlap import overlap

__all__ = ["suppress", "temporal_nms"]


def suppress(start: Floats, end: Floats, score: Floats, threshold: float, keep: int = 100) -> Integers:
    """Which moments of one video survive (TVR, ``temporal_nms``).

    By falling score, equal scores in the order given, a moment is dropped when its IoU with one that was kept
    is above ``threshold`` (strictly). Moments of zero length overlap nothing. A single moment always stays.

    Args:
        start: (n,) seconds.
        end: (n,) seconds.
        score: (n,).
        threshold: in [0, 1].
        keep: at most so many survive, >= 1.

    Returns:
        (kept,) int64 positions, best first.
    """
    _checked(threshold, keep)
    left = np.argsort(-np.asarray(score), kind="stable")
    kept: list[int] = []
    while len(left) and len(kept) < keep:
        best, left = left[0], left[1:]
        kept.append(int(best))
        iou = overlap(start[best], end[best], start[left], end[left])
        left = left[iou <= threshold]
    return np.array(kept, np.int64)


def temporal_nms(run: Run, threshold: float, *, read: int = 1000, keep: int = 100) -> Run:
    """Suppression inside every video of every query, merged again by falling score.

    Args:
        run: ranked moments.
        threshold: a moment whose IoU with a better one of its video is above it is dropped, in [0, 1].
        read: the first so many moments of a query take part, >= 1.
        keep: at most so many moments of a video, then of a query, survive, >= 1.
    """
    _checked(threshold, keep)
    if read < 1:
        raise InvalidValue(f"read {read}: at least 1 moment must take part")
    inside = np.flatnonzero(run.rank <= read)
    # Groups by video in the order of their first moment, which decides between equal scores.
    key = run.query[inside] * max(1, len(run.video_ids)) + run.video[inside]
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    order = np.lexsort((inside, first[group]))
    bounds = np.flatnonzero(np.diff(first[group][order], prepend=-1, append=-1))
    survivors = []
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rows = inside[order[low:high]]
        survivors.append(rows[suppress(run.start[rows], run.end[rows], run.score[rows], threshold, keep)])
    rows = np.concatenate(survivors) if survivors else np.zeros(0, np.int64)
    rows = rows[np.lexsort((-run.score[rows], run.query[rows]))]
    query = run.query[rows]
    rows = rows[np.arange(len(rows)) - np.searchsorted(query, query, side="left") < keep]
    count = np.bincount(run.query[rows], minlength=len(run.query_ids))
    offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    columns = (run.video[rows], run.start[rows], run.end[rows], run.score[rows])
    return Run(run.query_ids, offsets, run.video_ids, *columns)


def _checked(threshold: float, keep: int) -> None:
    if not 0 <= threshold <= 1:
        raise InvalidValue(f"threshold {threshold}: an IoU lies between 0 and 1")
    if keep < 1:
        raise InvalidValue(f"keep {keep}: at least 1 moment must survive")
