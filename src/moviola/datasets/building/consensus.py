"""Ratings to agreed relevance, and how well raters agree (TVR-Ranking, section 3.2 and appendix B).

The rule: two raters who differ by at most 1 agree. Otherwise two more rate; of the four one highest and one
lowest are dropped, and the remaining two agree if they differ by at most 1; else the pair is discarded. The
agreed level is the mean of the agreeing two, rounded up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError

__all__ = [
    "LEVELS",
    "Agreement",
    "Consensus",
    "Rating",
    "agree",
    "agreement",
    "consensus",
    "exam_scores",
]

LEVELS = 5
"""Relevance levels 0 (irrelevant) to 4 (perfect match)."""


@dataclass(frozen=True, slots=True)
class Rating:
    """One rater's level for one query-moment pair."""

    pair_id: str
    worker: str
    relevance: int


@dataclass(frozen=True, slots=True)
class Consensus:
    """The outcome for a set of pairs.

    Attributes:
        agreed: level of each pair that raters agreed on.
        discarded: pairs on which four raters did not agree.
        open: pairs that need more ratings: one rating, or two that differ by more than 1.
        uncountable: pairs with more than four or with three ratings; the rule says nothing of them.
    """

    agreed: dict[str, int]
    discarded: tuple[str, ...]
    open: tuple[str, ...]
    uncountable: tuple[str, ...]


def agree(levels: Sequence[int]) -> int | None:
    """The agreed level of two or four ratings, or None where they do not agree.

    >>> agree([2, 3]), agree([0, 4, 3, 3]), agree([0, 4]), agree([0, 0, 2, 4])
    (3, 3, None, None)

    Raises:
        DataError: another number of ratings.
    """
    if len(levels) not in (2, 4):
        raise DataError(f"{len(levels)} ratings: the rule takes two or four")
    middle = sorted(levels)[len(levels) // 2 - 1 : len(levels) // 2 + 1]
    return -(-sum(middle) // 2) if middle[1] - middle[0] <= 1 else None


def consensus(ratings: Iterable[Rating]) -> Consensus:
    """Apply the rule to every pair. A rater may rate a pair twice; every rating counts."""
    levels: dict[str, list[int]] = defaultdict(list)
    for rating in ratings:
        levels[rating.pair_id].append(rating.relevance)
    agreed: dict[str, int] = {}
    rest: dict[str, list[str]] = {"discarded": [], "open": [], "uncountable": []}
    for pair, given in levels.items():
        level = agree(given) if len(given) in (2, 4) else None
        if level is not None:
            agreed[pair] = level
        else:
            kind = {1: "open", 2: "open", 4: "discarded"}.get(len(given), "uncountable")
            rest[kind].append(pair)
    return Consensus(agreed, *(tuple(rest[kind]) for kind in ("discarded", "open", "uncountable")))


@dataclass(frozen=True, slots=True)
class Agreement:
    """How raters agree.

    Attributes:
        kappa: Cohen's kappa of the first two ratings of each pair; NaN when chance alone explains all.
        weighted_kappa: the same with disagreement weighted by its square.
        low_high: (5, 5) int64; pairs by the lower and the higher of their first two ratings (Figure 5).
        histogram: agreed pairs by level, (5,) int64.
    """

    kappa: float
    weighted_kappa: float
    low_high: NDArray[np.int64]
    histogram: NDArray[np.int64]


def agreement(ratings: Iterable[Rating]) -> Agreement:
    """Agreement figures over the pairs that have at least two ratings."""
    first_two: dict[str, list[int]] = defaultdict(list)
    kept: list[Rating] = []
    for rating in ratings:
        kept.append(rating)
        if len(first_two[rating.pair_id]) < 2:
            first_two[rating.pair_id].append(rating.relevance)
    table = np.zeros((LEVELS, LEVELS), np.int64)
    low_high = np.zeros_like(table)
    for given in first_two.values():
        if len(given) == 2:
            table[given[0], given[1]] += 1
            low_high[min(given), max(given)] += 1
    # Which rater comes first is chance, so the table is made symmetric.
    both = table + table.T
    counts = Counter(consensus(kept).agreed.values())
    distance = np.subtract.outer(np.arange(LEVELS), np.arange(LEVELS)) ** 2
    return Agreement(
        kappa=_kappa(both, (distance > 0).astype(float)),
        weighted_kappa=_kappa(both, distance.astype(float)),
        low_high=low_high,
        histogram=np.array([counts[level] for level in range(LEVELS)], np.int64),
    )


def _kappa(table: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """1 - observed / expected disagreement."""
    total = table.sum()
    if total == 0:
        return float("nan")
    observed = (weights * table).sum() / total
    expected = (weights * np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / total**2
    return float(1 - observed / expected) if expected > 0 else float("nan")


def exam_scores(answers: Iterable[Rating]) -> dict[str, float]:
    """Qualification exam: mean distance of each rater from the median of all; lower is better.

    Args:
        answers: ratings of the same pairs by many raters.

    Returns:
        worker to mean absolute distance, best first.
    """
    by_pair: dict[str, list[Rating]] = defaultdict(list)
    for answer in answers:
        by_pair[answer.pair_id].append(answer)
    distances: dict[str, list[float]] = defaultdict(list)
    for given in by_pair.values():
        median = float(np.median([rating.relevance for rating in given]))
        for rating in given:
            distances[rating.worker].append(abs(rating.relevance - median))
    means = {worker: float(np.mean(values)) for worker, values in distances.items()}
    return dict(sorted(means.items(), key=lambda item: (item[1], item[0])))
