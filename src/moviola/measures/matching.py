"""Greedy one-to-one matching of ranked predictions with judged moments (TVR-Ranking, section 4).

In order of rank, each prediction takes the still free judged moment of its video with the highest IoU, if
that reaches the threshold; equal IoU goes to the judged moment that stands first.
"""

from __future__ import annotations

import numpy as np

from moviola.measures.pairs import Pairs
from moviola.measures.qrels_and_run import Integers

__all__ = ["match"]

FREE = -1


def match(pairs: Pairs, rank: Integers, truths: int, *, overlap: float, strict: bool) -> Integers:
    """Which judged moment each prediction takes.

    A prediction whose best free moment stays below the threshold takes nothing, so pairs below it may be
    dropped beforehand. What is left is decided rank by rank, for all queries at once: two predictions of one
    rank belong to two queries and cannot want the same moment.

    Args:
        pairs: overlapping pairs by rank, then prediction, falling IoU and order of the judged moments.
        rank: (predictions,) int64, from 1, rising within each query.
        truths: number of judged moments.
        overlap: the threshold in [0, 1].
        strict: the IoU must be above the threshold (``>``), else at least it (``>=``).

    Returns:
        (predictions,) int64: row of the judged moment taken, or -1.
    """
    enough = np.flatnonzero(pairs.iou > overlap if strict else pairs.iou >= overlap)
    # Backwards, the best pair of a prediction is written last and stays.
    prediction, truth = pairs.prediction[enough][::-1], pairs.truth[enough][::-1]
    taken = np.full(len(rank), FREE, np.int64)
    free = np.ones(truths, np.bool_)
    bounds = np.flatnonzero(np.diff(rank[prediction], prepend=0, append=0)).tolist()
    for low, high in zip(bounds[-2::-1], bounds[:0:-1], strict=True):
        asking, wanted = prediction[low:high], truth[low:high]
        available = free[wanted]
        asking = asking[available]
        taken[asking] = wanted[available]
        free[taken[asking]] = False
    return taken
