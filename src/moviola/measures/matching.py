"""Greedy one-to-one matching of ranked predictions with judged moments (TVR-Ranking, section 4).

In order of rank, each prediction takes the still free judged moment of its video with the highest IoU, if
that reaches the threshold; equal IoU goes to the judged moment that stands first.
"""

from __future__ import annotations

import numpy as np

from moviola.measures.collections import Integers
from moviola.measures.overlap import Pairs

__all__ = ["match"]

FREE = -1


def match(
    pairs: Pairs, query: Integers, rank: Integers, truths: int, *, overlap: float, strict: bool
) -> Integers:
    """Which judged moment each prediction takes.

    A prediction whose best free moment stays below the threshold takes nothing, so pairs below it may be
    dropped beforehand. What is left is decided rank by rank, for all queries at once: two predictions of one
    rank belong to two queries and cannot want the same moment.

    Args:
        pairs: overlapping pairs, ``truth`` in the order that decides ties.
        query: (predictions,) int64, the query of each prediction.
        rank: (predictions,) int64, from 1, rising within each query.
        truths: number of judged moments.
        overlap: the threshold in [0, 1].
        strict: the IoU must be above the threshold (``>``), else at least it (``>=``).

    Returns:
        (predictions,) int64: row of the judged moment taken, or -1.
    """
    enough = pairs.iou > overlap if strict else pairs.iou >= overlap
    prediction, truth, iou = pairs.prediction[enough], pairs.truth[enough], pairs.iou[enough]
    # Round by round: best pair first within a prediction, predictions of one rank beside each other.
    order = np.lexsort((truth, -iou, query[prediction], rank[prediction]))
    prediction, truth = prediction[order], truth[order]
    taken = np.full(len(query), FREE, np.int64)
    free = np.ones(truths, np.bool_)
    ranks = rank[prediction]
    bounds = np.flatnonzero(np.diff(ranks, prepend=0, append=0))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        available = np.flatnonzero(free[truth[low:high]]) + low
        # Written backwards, the best pair of a prediction is written last and stays.
        available = available[::-1]
        taken[prediction[available]] = truth[available]
        candidates = prediction[low:high]
        won = taken[candidates]
        free[won[won != FREE]] = False
    return taken
