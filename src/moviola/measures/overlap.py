"""Temporal overlap of predictions with judged moments: only pairs of one query and one video are looked at.

The number of such pairs, not queries x predictions x judgements, is what an evaluation costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moviola.measures.collections import Floats, Integers

__all__ = ["Pairs", "join", "overlap"]


def overlap(start: Floats, end: Floats, other_start: Floats, other_end: Floats) -> Floats:
    """Elementwise IoU of spans in seconds, float64 in [0, 1], symmetric; arrays broadcast.

    0 for spans that share no time, spans of zero length included. For spans that share time the union is
    their hull, so one subtraction gives it and values such as 15/30 come out exact.
    """
    shared = np.minimum(end, other_end) - np.maximum(start, other_start)
    hull = np.maximum(end, other_end) - np.minimum(start, other_start)
    iou: Floats = np.divide(shared, hull, out=np.zeros_like(hull), where=shared > 0)
    return iou


@dataclass(frozen=True, eq=False)
class Pairs:
    """Predictions beside judged moments of the same query and video, IoU > 0, ordered by prediction.

    Attributes:
        prediction: (pairs,) int64, row of the predictions.
        truth: (pairs,) int64, row of the judged moments.
        iou: (pairs,) float64, in (0, 1].
    """

    prediction: Integers
    truth: Integers
    iou: Floats


def join(prediction_key: Integers, truth_key: Integers) -> tuple[Integers, Integers]:
    """Rows (i, j) with ``prediction_key[i] == truth_key[j]``, ordered by i, then j. Each an (n,) int64."""
    order = np.argsort(truth_key, kind="stable")
    keys = truth_key[order]
    first = np.searchsorted(keys, prediction_key, side="left")
    count = np.searchsorted(keys, prediction_key, side="right") - first
    prediction = np.repeat(np.arange(len(prediction_key)), count)
    within = np.arange(len(prediction)) - np.repeat(np.cumsum(count) - count, count)
    return prediction, order[np.repeat(first, count) + within]
