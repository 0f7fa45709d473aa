"""Figures of answers whose moments were judged: promised against right, by band, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from labels import NO_ANSWER, LabelledQuery
from numpy.typing import NDArray

from moviola.types import POSSIBLE, STRONG, Moment
from reliability import calibration_error

__all__ = ["Judged", "figures", "judged"]

# Scores below this promise nothing that anybody would look at.
_LEAST = 0.05
_DRAWS = 1000


@dataclass(frozen=True)
class Judged:
    """The moments of all answers to some queries, but for unclear ones.

    Attributes:
        query: (n,) int64, place of the query of each.
        score: (n,) float64.
        right: (n,) bool.
        answerable, absent: places of queries that something answers, or that nothing does.
    """

    query: NDArray[np.int64]
    score: NDArray[np.float64]
    right: NDArray[np.bool_]
    answerable: NDArray[np.int64]
    absent: NDArray[np.int64]


def judged(queries: Sequence[LabelledQuery], answers: Sequence[Sequence[Moment]]) -> Judged:
    """Answers to labelled queries, moment by moment."""
    rows = [
        (place, moment.score, right)
        for place, (query, answer) in enumerate(zip(queries, answers, strict=True))
        for moment in answer
        if (right := query.judged(moment)) is not None
    ]
    return Judged(
        np.array([place for place, _, _ in rows], np.int64),
        np.array([score for _, score, _ in rows], np.float64),
        np.array([right for _, _, right in rows], bool),
        np.array([place for place, one in enumerate(queries) if one.right], np.int64),
        np.array([place for place, one in enumerate(queries) if one.kind in NO_ANSWER], np.int64),
    )


def figures(found: Judged) -> dict[str, Any]:
    """What the scores promise beside what is right, in all moments and by band.

    Shares have a 95 % interval, by drawing queries; None where there is nothing to take a share of.
    """
    counted = found.score >= _LEAST
    strong, possible = found.score >= STRONG, found.score >= POSSIBLE
    return {
        "queries": len(found.answerable) + len(found.absent),
        "moments": len(found.score),
        "promised": round(float(found.score.sum()), 1),
        "right": int(found.right.sum()),
        "reciprocal rank": round(_reciprocal_rank(found), 3),
        "calibration error": round(calibration_error(found.score[counted], found.right[counted]), 4),
        "strong": int(strong.sum()),
        "strong right": _share(found, lambda all: _right(all, STRONG)),
        "answerable with a strong right": _share(found, lambda all: _reached(all, STRONG)),
        "absent with a strong": _share(found, lambda all: _reached(all, STRONG, absent=True)),
        "possible": int((possible & ~strong).sum()),
        "strong or possible right": _share(found, lambda all: _right(all, POSSIBLE)),
        "answerable with a possible right": _share(found, lambda all: _reached(all, POSSIBLE)),
        "absent with a possible": _share(found, lambda all: _reached(all, POSSIBLE, absent=True)),
        "weak": int((~possible).sum()),
        "weak right": int((found.right & ~possible).sum()),
    }


def _reciprocal_rank(found: Judged) -> float:
    """Of the first right moment of each answerable query, in the mean; 0 where there is none."""
    ranks = []
    for query in found.answerable:
        places = np.flatnonzero(found.right[found.query == query])
        ranks.append(1 / (1 + places[0]) if len(places) else 0.0)
    return float(np.mean(ranks)) if ranks else 0.0


# Of Judged and how often each query was drawn (q,): parts and wholes, whose sums make a share.
_Drawn = tuple[Judged, NDArray[np.float64]]


def _right(drawn: _Drawn, least: float) -> tuple[float, float]:
    found, weight = drawn
    own = found.score >= least
    counts = weight[found.query[own]]
    return float(counts[found.right[own]].sum()), float(counts.sum())


def _reached(drawn: _Drawn, least: float, *, absent: bool = False) -> tuple[float, float]:
    found, weight = drawn
    own = (found.score >= least) & (found.right | absent)
    queries = found.absent if absent else found.answerable
    reached = np.intersect1d(queries, found.query[own])
    return float(weight[reached].sum()), float(weight[queries].sum())


def _share(found: Judged, parts: Callable[[_Drawn], tuple[float, float]]) -> list[float] | None:
    """A share, and the bounds of its interval."""
    count = 1 + max(
        (int(own.max()) for own in (found.query, found.answerable, found.absent) if len(own)), default=0
    )
    part, whole = parts((found, np.ones(count)))
    if not whole:
        return None
    generator = np.random.default_rng(0)
    drawn = []
    for _ in range(_DRAWS):
        weight = np.bincount(generator.integers(count, size=count), minlength=count).astype(np.float64)
        own, of = parts((found, weight))
        drawn.append(own / of if of else np.nan)
    low, high = np.nanquantile(drawn, (0.025, 0.975)).tolist()
    return [round(value, 3) for value in (part / whole, low, high)]
