"""Pairs of predictions and judged moments that overlap, and their greedy one-to-one matching.

The cost of an evaluation is the number of such pairs, not queries x predictions x judgements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moviola.study.measures.qrels_and_run import Floats, Integers

__all__ = ["FREE", "Pairs", "join", "match", "spread"]

FREE = -1


@dataclass(frozen=True, eq=False)
class Pairs:
    """Predictions beside judged moments of the same query and video.

    Attributes:
        prediction, truth: (pairs,) int64, rows of both.
        iou: (pairs,) float64, in (0, 1].
    """

    prediction: Integers
    truth: Integers
    iou: Floats


def spread(count: Integers) -> Integers:
    """0, 1, … count - 1 for every count, one after another: (sum of counts,) int64."""
    return np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)


def join(prediction_key: Integers, truth_key: Integers) -> tuple[Integers, Integers]:
    """Rows (i, j) with ``prediction_key[i] == truth_key[j]``, ordered by i, then j. Each an (n,) int64."""
    order = np.argsort(truth_key, kind="stable")
    keys, first, count = np.unique(truth_key[order], return_index=True, return_counts=True)
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Most predictions have no partner; a table of the keys' last bits saves searching for them.
    bits = (1 << (8 * len(keys)).bit_length()) - 1
    table = np.zeros(bits + 1, np.bool_)
    table[keys & bits] = True
    maybe = np.flatnonzero(table[prediction_key & bits])
    place = np.minimum(np.searchsorted(keys, prediction_key[maybe]), len(keys) - 1)
    found = keys[place] == prediction_key[maybe]
    maybe, place = maybe[found], place[found]
    times = count[place]
    return np.repeat(maybe, times), order[np.repeat(first[place], times) + spread(times)]


def match(pairs: Pairs, rank: Integers, truths: int, *, overlap: float, strict: bool) -> Integers:
    """Which judged moment each prediction takes: (predictions,) int64, its row or ``FREE``.

    As in TVR-Ranking (section 4): in order of rank, each prediction takes the still free judged moment of its
    video with the highest IoU, if that reaches the threshold; equal IoU goes to the one that stands first.
    A prediction whose best free moment stays below takes nothing, so pairs below may be dropped beforehand.
    The other pairs are decided rank by rank, for all queries at once: two predictions of one rank belong to
    two queries and cannot want the same moment.

    Args:
        pairs: overlapping pairs by rank, then prediction, falling IoU and order of the judged moments.
        rank: (predictions,) int64, from 1, rising within each query.
        truths: number of judged moments.
        overlap: the threshold in [0, 1].
        strict: the IoU must be above the threshold (``>``), else at least it (``>=``).
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
