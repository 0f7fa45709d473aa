"""How reliable scores are: what they say beside the share that is right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def reliability(
    score: Floats, right: NDArray[np.bool_], bins: int = 5
) -> list[tuple[float, float, int, float, float]]:
    """Reliability of scores (n,) in [0, 1]: by bins of equal width, their mean beside the right share.

    Returns lower and upper bound, number of answers, their mean score, the share of right ones; empty bins
    are left out.
    """
    which = np.minimum((score * bins).astype(np.int64), bins - 1)
    return [
        (n / bins, (n + 1) / bins, int(own.sum()), float(score[own].mean()), float(right[own].mean()))
        for n in range(bins)
        if (own := which == n).any()
    ]


def calibration_error(score: Floats, right: NDArray[np.bool_], bins: int = 10) -> float:
    """Expected calibration error in [0, 1]: the mean distance of scores from the share that is right.

    It is taken over answers, in bins of equal width (Naeini et al. 2015, AAAI); 0 without any.
    """
    rows = reliability(score, right, bins)
    return sum(count * abs(mean - share) for _, _, count, mean, share in rows) / max(len(score), 1)
