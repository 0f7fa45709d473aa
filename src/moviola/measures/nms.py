"""Temporal non-maximum suppression of runs."""

from __future__ import annotations

import numpy as np

from moviola.errors import InvalidValue
from moviola.measures.qrels_and_run import Run
from moviola.temporal import suppress

__all__ = ["temporal_nms"]


def temporal_nms(run: Run, threshold: float, *, read: int = 1000, keep: int = 100) -> Run:
    """Suppression inside every video of every query, merged again by falling score.

    Args:
        run: ranked moments.
        threshold: a moment whose IoU with a better one of its video is above it is dropped, in [0, 1].
        read: number of first moments of a query that take part, >= 1.
        keep: maximum number of moments of a video, then of a query, >= 1.
    """
    if read < 1:
        raise InvalidValue(f"read {read}: give at least 1")
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
