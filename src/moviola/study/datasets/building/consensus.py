"""Agreed relevance from ratings, and agreement of raters (TVR-Ranking, section 3.2 and appendix B).

The rule: two raters who differ by at most 1 agree. If not, two more rate; of the four one highest and one
lowest are dropped, and the remaining two agree if they differ by at most 1; else the pair is discarded. The
agreed level is the mean of the agreeing two, rounded up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError

__all__ = [
    "LEVELS", "Agreement", "Consensus", "Exam", "Examined", "Rating", "agree", "agreement", "consensus",
    "exam", "repeated",
]  # fmt: skip

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
        uncountable: pairs with three or more than four ratings, which the rule does not cover.
    """

    agreed: dict[str, int]
    discarded: tuple[str, ...]
    open: tuple[str, ...]
    uncountable: tuple[str, ...]


def agree(levels: Sequence[int]) -> int | None:
    """The agreed level of two or four ratings; None without agreement, :class:`DataError` for another number.

    >>> agree([2, 3]), agree([0, 4, 3, 3]), agree([0, 4]), agree([0, 0, 2, 4])
    (3, 3, None, None)
    """
    if len(levels) not in (2, 4):
        raise DataError(f"{len(levels)} ratings: the rule takes two or four")
    middle = sorted(levels)[len(levels) // 2 - 1 : len(levels) // 2 + 1]
    return -(-sum(middle) // 2) if middle[1] - middle[0] <= 1 else None


def consensus(ratings: Iterable[Rating]) -> Consensus:
    """Apply the rule to every pair.

    Every rating counts, also a second one by the same rater, see :func:`repeated`: raters of TVR-Ranking's
    release were given pairs again, and its levels follow from all of their ratings.
    """
    agreed: dict[str, int] = {}
    rest: dict[str, list[str]] = {"discarded": [], "open": [], "uncountable": []}
    for pair, given in _by_pair(ratings).items():
        level = agree(given) if len(given) in (2, 4) else None
        if level is not None:
            agreed[pair] = level
        else:
            kind = {1: "open", 2: "open", 4: "discarded"}.get(len(given), "uncountable")
            rest[kind].append(pair)
    return Consensus(agreed, *(tuple(pairs) for pairs in rest.values()))


def repeated(ratings: Iterable[Rating]) -> list[tuple[str, str]]:
    """Pair and worker of every rating of a pair that its worker had rated before."""
    seen: set[tuple[str, str]] = set()
    again = []
    for rating in ratings:
        key = rating.pair_id, rating.worker
        if key in seen:
            again.append(key)
        seen.add(key)
    return again


def _by_pair(ratings: Iterable[Rating]) -> dict[str, list[int]]:
    levels: dict[str, list[int]] = defaultdict(list)
    for rating in ratings:
        levels[rating.pair_id].append(rating.relevance)
    return levels


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters.

    Attributes:
        kappa: Cohen's kappa of the first two ratings of each pair; NaN when chance alone explains all.
        weighted_kappa: the same with disagreement weighted by its square.
        low_high: (5, 5) int64; pairs by the lowest and the highest of all their ratings (Figure 5a).
        histogram: agreed pairs by level, (5,) int64 (Figure 5b).
    """

    kappa: float
    weighted_kappa: float
    low_high: NDArray[np.int64]
    histogram: NDArray[np.int64]


def agreement(ratings: Iterable[Rating]) -> Agreement:
    """Agreement figures over the pairs that have at least two ratings."""
    kept = list(ratings)
    table = np.zeros((LEVELS, LEVELS), np.int64)
    low_high = np.zeros_like(table)
    for given in _by_pair(kept).values():
        if len(given) >= 2:
            table[given[0], given[1]] += 1
            low_high[min(given), max(given)] += 1
    # Which rater comes first is chance, so the table is made symmetric.
    both = table + table.T
    agreed = np.array([*consensus(kept).agreed.values()], np.int64)
    histogram = np.bincount(agreed, minlength=LEVELS)
    return Agreement(_kappa(both, _UNLIKE), _kappa(both, _DISTANCE**2), low_high, histogram)


_DISTANCE = np.abs(np.subtract.outer(np.arange(LEVELS), np.arange(LEVELS))).astype(np.float64)
_UNLIKE = (_DISTANCE > 0).astype(np.float64)


def _kappa(table: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """1 - observed / expected disagreement."""
    total = table.sum()
    if total == 0:
        return float("nan")
    observed = (weights * table).sum() / total
    expected = (weights * np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / total**2
    return float(1 - observed / expected) if expected > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class Examined:
    """A rater's results in the exam.

    Attributes:
        distance: mean distance from the median level of all raters; lower is better.
        out_of_consensus: share of ratings more than 1 away from that median.
        kappa: mean Cohen's kappa with each other rater over shared pairs; NaN where chance explains all.
    """

    distance: float
    out_of_consensus: float
    kappa: float


@dataclass(frozen=True, slots=True)
class Exam:
    """A qualification exam (appendix B.2).

    Attributes:
        raters: by worker, the one nearest to the median first.
        out_of_consensus: mean over the raters (the paper: 11.83 % at first).
        kappa: mean of Cohen's over all pairs of raters, as we read the paper's "average" (.49 in the end);
            NaN without a pair of raters that chance does not explain.
    """

    raters: dict[str, Examined]
    out_of_consensus: float
    kappa: float


def exam(answers: Iterable[Rating]) -> Exam:
    """Compare raters with the median of all, and with each other.

    ``answers`` rate the same pairs; of several ratings of a pair by one rater the last counts.

    Raises:
        DataError: there is no rating.
    """
    levels: dict[str, dict[str, int]] = defaultdict(dict)
    for answer in answers:
        levels[answer.worker][answer.pair_id] = answer.relevance
    if not levels:
        raise DataError("an exam without ratings: give pair_id, worker and relevance of at least one")
    counted = (Rating(pair, who, level) for who, given in levels.items() for pair, level in given.items())
    median = {pair: float(np.median(given)) for pair, given in _by_pair(counted).items()}
    away = {
        worker: np.array([abs(level - median[pair]) for pair, level in given.items()])
        for worker, given in levels.items()
    }
    kappas = {pair: _kappa_of(*(levels[worker] for worker in pair)) for pair in combinations(levels, 2)}
    raters = {
        worker: Examined(
            float(distance.mean()),
            float((distance > 1).mean()),
            _mean(kappa for pair, kappa in kappas.items() if worker in pair),
        )
        for worker, distance in away.items()
    }
    return Exam(
        dict(sorted(raters.items(), key=lambda item: (item[1].distance, item[0]))),
        _mean(rater.out_of_consensus for rater in raters.values()),
        _mean(kappas.values()),
    )


def _kappa_of(one: dict[str, int], other: dict[str, int]) -> float:
    """Cohen's kappa of two raters' levels by pair."""
    table = np.zeros((LEVELS, LEVELS), np.int64)
    for pair in one.keys() & other.keys():
        table[one[pair], other[pair]] += 1
    return _kappa(table, _UNLIKE)


def _mean(values: Iterable[float]) -> float:
    """Mean of the defined values; NaN without any."""
    there = [value for value in values if not np.isnan(value)]
    return float(np.mean(there)) if there else float("nan")
