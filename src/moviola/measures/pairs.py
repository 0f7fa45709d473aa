"""Temporal overlap of predictions with judged moments of the same query and video.

The cost of an evaluation is the number of such pairs, not queries x predictions x judgements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moviola.measures.qrels_and_run import Floats, Integers

__all__ = ["Pairs", "join", "spread"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Predictions beside judged moments of the same query and video, IoU > 0.

    Attributes:
        prediction: (pairs,) int64, row of the predictions.
        truth: (pairs,) int64, row of the judged moments.
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
