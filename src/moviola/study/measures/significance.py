"""Significance of differences between systems: paired tests and intervals of values of the same queries.

Randomness is seeded: the same input gives the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moviola.errors import InvalidValue
from moviola.study.measures.evaluation import Results
from moviola.study.measures.qrels_and_run import Floats
from moviola.study.measures.trials import CHUNK, chunks, require_draws

__all__ = ["Comparison", "bootstrap_interval", "compare", "permutation_test", "t_test"]

_SLACK = 1e-12
"""Sums in another order differ in the last digits; such differences count as equal."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on one measure.

    Attributes:
        first, second: mean of each system.
        difference: ``second - first``.
        low, high: bounds of the bootstrap interval of the difference.
        permutation, t: two-sided p values of the paired permutation test and the paired t test.
        wins, losses: number of queries on which the second is better, and worse.
    """

    measure: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    permutation: float
    t: float
    wins: int
    losses: int
    queries: int


def compare(
    first: Results,
    second: Results,
    measure: str,
    *,
    trials: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare two systems, both evaluated on the same judgements with the same preset.

    Args:
        first, second: results of the baseline and of the other system.
        measure: a name in both.
        trials: permutations and bootstrap samples drawn, >= 1.
        confidence: of the interval, in (0, 1).

    Raises:
        InvalidValue: the measure is missing or has no value by query, or the queries differ.
    """
    before, after = first.by_query(measure), second.by_query(measure)
    if first.query_ids != second.query_ids:
        odd = sorted(set(first.query_ids) ^ set(second.query_ids))[:3]
        raise InvalidValue(
            f"the systems were scored on different queries ({', '.join(odd)}, …); use no preset"
        )
    gains = np.where(np.isclose(after, before, rtol=_SLACK, atol=0), 0.0, after - before)
    gains = gains[~np.isnan(gains)]  # queries that the measure does not count
    low, high = bootstrap_interval(gains, trials=trials, confidence=confidence, seed=seed)
    return Comparison(
        measure, first.measures[measure], second.measures[measure],
        float(gains.mean()) if len(gains) else 0.0, low, high,
        permutation_test(gains, trials=trials, seed=seed), t_test(gains),
        int((gains > 0).sum()), int((gains < 0).sum()), len(gains),
    )  # fmt: skip


def permutation_test(gains: Floats, *, trials: int = 10_000, seed: int = 0) -> float:
    """Two-sided paired permutation test: how often random signs give a mean as far from 0.

    Exact when all signs are no more than ``trials`` (>= 1), else (hits + 1) / (trials + 1). scipy's
    ``permutation_test`` gives the same, thirty times slower.

    Returns the p value of (queries,) differences in (0, 1]; 1 when none differs from 0.

    Raises:
        InvalidValue: ``seed`` is below 0, there is no trial, or a difference is NaN.
    """
    require_draws(trials, seed)
    gains = _counted(gains)
    gains = gains[gains != 0]
    if not len(gains):
        return 1.0
    limit = abs(gains.sum()) - _SLACK * np.abs(gains).sum()
    if len(gains) <= 60 and 2 ** len(gains) <= trials:
        patterns = np.arange(2 ** len(gains))[:, None] >> np.arange(len(gains)) & 1
        return float((np.abs((2 * patterns - 1) @ gains) >= limit).mean())
    random = np.random.default_rng(seed)
    hits = sum(
        int((np.abs((2.0 * random.integers(0, 2, (size, len(gains)), np.int8) - 1) @ gains) >= limit).sum())
        for size in chunks(trials, len(gains))
    )
    return (hits + 1) / (trials + 1)


def t_test(gains: Floats) -> float:
    """Two-sided paired t test of (queries,) differences.

    Returns the p value in [0, 1]; 1 when there are fewer than two queries or none differs.

    Raises:
        InvalidValue: a difference is NaN.
    """
    from scipy import stats

    gains = _counted(gains)
    if len(gains) < 2 or not gains.any():
        return 1.0
    if gains.std(ddof=1) <= _SLACK * np.abs(gains).max():
        return 0.0  # all differ by the same; scipy would divide by what rounding left
    return float(stats.ttest_1samp(gains, 0).pvalue)


def bootstrap_interval(
    values: Floats, *, trials: int = 10_000, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of (queries,) values; (0, 0) without queries.

    Raises:
        InvalidValue: ``confidence`` is not inside (0, 1), ``seed`` is below 0, there is no trial, or a value
            is NaN.
    """
    require_draws(trials, seed, confidence)
    values = _counted(values)
    if len(values) < 2:  # scipy takes no fewer
        return float(values.sum()), float(values.sum())
    from scipy import stats

    interval = stats.bootstrap(  # of two samples at least: scipy warns that one has no spread
        (values,), np.mean, n_resamples=max(2, trials), batch=max(1, CHUNK // len(values)),
        confidence_level=confidence, method="percentile", rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return float(interval.low), float(interval.high)


def _counted(values: Floats) -> Floats:
    """Values of queries as an array. Raises InvalidValue: NaN, as :meth:`Results.by_query` has."""
    numbers = np.asarray(values, np.float64)
    if np.isnan(numbers).any():
        raise InvalidValue(f"values {values!r:.200}: NaN is no value; leave out queries that do not count")
    return numbers
