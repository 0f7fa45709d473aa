"""What a trained refiner's scores mean: logistic regression on its answers to the queries of val.

See :mod:`moviola.models.calibration` for what comes out. It holds for libraries like val: where there is much
more that could be mistaken for an answer, or where answers are rarer, a score promises too much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from moviola.measures import Qrels, Run, overlap, temporal_nms
from moviola.models.calibration import LEAST

if TYPE_CHECKING:
    from moviola.training.recipes import Recipe, Split, Trained

__all__ = ["ANSWERS", "EVIDENCE", "RIGHT", "SAME", "calibration_of", "first_answers", "fit", "reliability"]

Floats = NDArray[np.float64]

ANSWERS = 100
"""How many answers of each query are looked at.

The first few alone would teach too small a slope: one of a low score is among them only for a query that has
nothing better, or whose scores are low altogether.
"""

RIGHT = 0.5
"""An answer is right if it overlaps a moment of positive relevance at least this much (IoU)."""

SAME = 0.5
"""Of two answers in one video that overlap more than this (IoU), search shows the better (moviola.refine)."""

_PENALTY = 1.0


def _logarithm(score: Floats) -> Floats:
    return np.log(np.maximum(score, LEAST))


EVIDENCE: dict[str, Callable[[Floats], Floats]] = {
    "reel": np.asarray,
    "spr-clip": _logarithm,
    "reloclnet": _logarithm,
}
"""From a refiner's scores to what :mod:`moviola.refine` gives search as raw scores, by architecture."""


def fit(raw: Floats, right: NDArray[np.bool_]) -> tuple[float, float] | None:
    """Slope and intercept of P(right) = sigmoid(slope raw + intercept), by Newton's method.

    The slope is drawn to 0 a little (l2, as by a standard normal prior on it where raw scores have deviation
    1), so that it is finite where right and wrong are apart.

    Args:
        raw: (n,) scores.
        right: (n,) bool.

    Returns:
        None where nothing can be learned: all right or all wrong, equal scores, or scores that do not rise
        with being right.
    """
    if not 0 < right.sum() < len(right) or raw.std() == 0:
        return None
    mean, deviation = raw.mean(), raw.std()
    design = np.stack([(raw - mean) / deviation, np.ones(len(raw))], axis=1)
    penalty = np.array([_PENALTY, 0.0])

    def loss(weights: Floats) -> float:
        logits = design @ weights
        return float((np.logaddexp(0, logits) - right * logits).sum() + penalty @ weights**2 / 2)

    weights = np.zeros(2)
    for _ in range(100):
        chance = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (chance - right) + penalty * weights
        curvature = design.T @ (design * (chance * (1 - chance))[:, None]) + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-9:
            step = step / 2
        weights = weights - step
        if np.abs(step).max() <= 1e-9:
            break
    slope = float(weights[0] / deviation)
    return (slope, float(weights[1] - slope * mean)) if slope > 0 else None


def first_answers(
    run: Run, qrels: Qrels, architecture: str, count: int = ANSWERS
) -> tuple[Floats, NDArray[np.bool_]]:
    """Raw score (n,) of every query's first answers, thinned as search thins them, and which are right (n,).

    What was not judged counts as wrong.
    """
    run = temporal_nms(run, SAME)
    rows = np.flatnonzero(run.rank <= count)
    query_of = {name: row for row, name in enumerate(qrels.query_ids)}
    video_of = {name: row for row, name in enumerate(qrels.video_ids)}
    query = np.array([query_of.get(name, -1) for name in run.query_ids], dtype=np.int64)[run.query[rows]]
    video = np.array([video_of.get(name, -1) for name in run.video_ids], dtype=np.int64)[run.video[rows]]
    right = np.zeros(len(rows), dtype=np.bool_)
    for place, row in enumerate(rows.tolist()):
        if query[place] < 0 or video[place] < 0:
            continue
        own = slice(*qrels.offsets[query[place] : query[place] + 2].tolist())
        there = (qrels.video[own] == video[place]) & (qrels.relevance[own] > 0)
        iou = overlap(run.start[row], run.end[row], qrels.start[own][there], qrels.end[own][there])
        right[place] = bool((iou >= RIGHT).any())
    return EVIDENCE[architecture](run.score[rows]), right


def calibration_of(how: Recipe, trained: Trained, val: Split) -> dict[str, Any] | None:
    """What ``config.json`` is to keep of a refiner's scores.

    Args:
        how: the recipe of a refiner.
        trained: the final model.
        val: with proposals.

    Returns:
        ``slope`` and ``intercept``, of how many ``answers``, and how many of them were ``right``; None as in
        :func:`fit`.
    """
    sampling = trained.settings.sampling
    options = {} if sampling is None else {"context": sampling.context}
    run = cast("Any", how).run(trained.model, val, **options)
    raw, right = first_answers(run, val.pairs.qrels, how.architecture)
    found = fit(raw, right)
    if found is None:
        return None
    return {"slope": found[0], "intercept": found[1], "answers": len(raw), "right": int(right.sum())}


def reliability(
    score: Floats, right: NDArray[np.bool_], bins: int = 5
) -> list[tuple[float, float, int, float, float]]:
    """Whether scores are honest: by bins of equal width, their mean beside the share that is right.

    Args:
        score: (n,) in [0, 1].
        right: (n,) bool.
        bins: how many.

    Returns:
        From, to, how many answers, their mean score, the share of right ones; bins without answers are left
        out.
    """
    which = np.minimum((score * bins).astype(np.int64), bins - 1)
    return [
        (n / bins, (n + 1) / bins, int(own.sum()), float(score[own].mean()), float(right[own].mean()))
        for n in range(bins)
        if (own := which == n).any()
    ]
