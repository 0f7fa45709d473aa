"""Temporal non-maximum suppression of runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from moviola.errors import InvalidValue
from moviola.measures.qrels_and_run import Run
from moviola.temporal import suppress

__all__ = ["temporal_nms"]


def temporal_nms(run: Run, threshold: float, *, read: int = 1000, keep: int = 100) -> Run:
    """Suppression inside every video of every query, merged again by falling score.

    Args:
        threshold: a moment whose IoU with a better one of its video is above it is dropped, in [0, 1].
        read: number of first moments of a query that take part, >= 1.
        keep: maximum number of moments of a query, >= 1.

    Raises:
        InvalidValue: ``threshold``, ``read`` or ``keep`` is out of range.
    """
    if read < 1:
        raise InvalidValue(f"read {read}: give at least 1")
    survivors = [np.zeros(0, np.int64)]
    for low, high in pairwise(run.offsets.tolist()):
        rows = np.arange(low, min(low + read, high))
        # By video in the order of their first moment, which decides between equal scores.
        _, first, group = np.unique(run.video[rows], return_index=True, return_inverse=True)
        rows = rows[np.argsort(first[group], kind="stable")]
        spans = run.start[rows], run.end[rows], run.score[rows]
        survivors.append(rows[suppress(*spans, threshold, keep, video=run.video[rows])])
    rows = np.concatenate(survivors)
    offsets = np.cumsum([len(some) for some in survivors])
    columns = (run.video[rows], run.start[rows], run.end[rows], run.score[rows])
    return Run(run.query_ids, offsets, run.video_ids, *columns)
