"""Calibration of a trained refiner's scores: logistic regression on its answers to the queries of val.

See :mod:`moviola.retrieval.calibration` for the result. It holds for libraries like val: with many more
similar distractors, or with rarer answers, scores are too high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from torch import nn

from moviola.retrieval import refiner_of
from moviola.retrieval.calibration import words_of
from moviola.retrieval.refiners import SAME_MOMENT
from moviola.study.measures import Qrels, Run, temporal_nms
from moviola.study.measures.joined import places_of
from moviola.study.models.running import TorchRunner
from moviola.study.training.data import Split
from moviola.study.training.recipe import AnswerSettings, Recipe
from moviola.study.training.validation import run_of
from moviola.temporal import overlap

__all__ = ["ANSWERS", "RIGHT", "calibration_of", "closed_language", "first_answers", "fit"]

Floats = NDArray[np.float64]

ANSWERS = 100
"""Number of answers of each query that are used.

The first few alone would teach too small a slope: one of a low score is among them only for a query that has
nothing better, or whose scores are low altogether.
"""

RIGHT = 0.5
"""An answer is right if it overlaps a moment of positive relevance at least this much (IoU)."""

_PENALTY = 1.0


def fit(
    evidence: Floats, right: NDArray[np.bool_], answerable: Floats | None = None
) -> tuple[float, float, float] | None:
    """Slope, intercept and weight of P(right) = sigmoid(slope evidence + weight answerable + intercept).

    Slope and weight are regularised a little (l2, as by a standard normal prior for evidence of deviation 1),
    so that they are finite where right and wrong are separable. ``evidence`` (n,) is that of
    :mod:`moviola.retrieval.calibration`, ``answerable`` (n,) the log odds that the query of each has an
    answer, finite. The weight is 0 without them, where they are all equal, or where it would be below 0.

    Returns:
        None where nothing can be learned: all right or all wrong, equal evidence, or evidence that does not
        rise with being right.
    """
    if not 0 < right.sum() < len(right) or evidence.std() == 0:
        return None
    if answerable is None or answerable.std() == 0:
        slope, intercept = _weights(right, evidence)
        return (slope, intercept, 0.0) if slope > 0 else None
    slope, weight, intercept = _weights(right, evidence, answerable)
    return (slope, intercept, weight) if slope > 0 <= weight else fit(evidence, right)


def _weights(right: NDArray[np.bool_], *columns: Floats) -> list[float]:
    """The weight of each column (n,), and the intercept, of the logistic regression of :func:`fit`."""
    given = np.stack(columns, axis=1)
    mean, deviation = given.mean(axis=0), given.std(axis=0)
    design = np.concatenate([(given - mean) / deviation, np.ones((len(given), 1))], axis=1)
    penalty = np.array([*[_PENALTY] * len(columns), 0.0])

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = design @ weights
        value = (np.logaddexp(0, logits) - right * logits).sum() + penalty @ weights**2 / 2
        return float(value), design.T @ (expit(logits) - right) + penalty * weights

    def curvature(weights: Floats) -> Floats:
        chance = expit(design @ weights)
        return design.T @ (design * (chance * (1 - chance))[:, None]) + np.diag(penalty)

    solution = minimize(
        loss, np.zeros(len(penalty)), jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-9}
    )
    weights = solution.x[:-1] / deviation
    return [*weights.tolist(), float(solution.x[-1] - weights @ mean)]


def first_answers(
    run: Run, qrels: Qrels, count: int = ANSWERS
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """Score (n,) of every query's first answers, thinned as search thins them, which are right (n,), and the
    place of each one's query in ``qrels.query_ids`` (n,), -1 where it is not among them.

    Unjudged answers count as wrong.
    """
    run = temporal_nms(run, SAME_MOMENT)
    rows = np.flatnonzero(run.rank <= count)
    query = places_of(run.query_ids, qrels.query_ids)[run.query[rows]]
    video = places_of(run.video_ids, qrels.video_ids)[run.video[rows]]
    right = np.zeros(len(rows), dtype=np.bool_)
    for place, row in enumerate(rows.tolist()):
        if query[place] < 0 or video[place] < 0:
            continue
        own = slice(*qrels.offsets[query[place] : query[place] + 2].tolist())
        there = (qrels.video[own] == video[place]) & (qrels.relevance[own] > 0)
        iou = overlap(run.start[row], run.end[row], qrels.start[own][there], qrels.end[own][there])
        right[place] = bool((iou >= RIGHT).any())
    return np.asarray(run.score[rows], dtype=np.float64), right, query


def closed_language(learned: Sequence[str], held_out: Sequence[str]) -> list[str]:
    """The words of some texts, sorted, if those of held-out texts are among them; else none.

    Then the language is closed, as that of generated queries is, and a model cannot know any other word. In
    the queries of people new words always turn up.
    """
    words = frozenset[str]().union(*map(words_of, learned))
    return sorted(words) if all(words_of(text) <= words for text in held_out) else []


def calibration_of(
    recipe: Recipe, model: nn.Module, val: Split, how: AnswerSettings, learned: Sequence[str]
) -> dict[str, Any] | None:
    """Calibration of a refiner's scores, for ``config.json``.

    Args:
        recipe, model: of a refiner, trained, in evaluation mode.
        how: context of the model's training.
        learned: texts of the queries that it was trained on.

    Returns:
        ``slope`` and ``intercept``, of how many ``answers``, and how many of them were ``right``;
        ``answerable``, of a model that says whether a query has an answer, where it helps; ``words`` of a
        :func:`closed_language`; None as in :func:`fit`.
    """
    moments = recipe.moments(model, val, replace(how, suppress_above=SAME_MOMENT, scored=False))
    score, right, query = first_answers(run_of(moments, val), val.pairs.qrels)
    evidence = refiner_of(recipe.architecture, TorchRunner(model), "calibrating").evidence(score)
    fitted = fit(evidence, right, None if moments.answerable is None else moments.answerable[query])
    if fitted is None:
        return None
    slope, intercept, weight = fitted
    words = closed_language(learned, val.queries.texts)
    return {
        "slope": slope, "intercept": intercept, "answers": len(score), "right": int(right.sum()),
        **({"answerable": weight} if weight else {}), **({"words": words} if words else {}),
    }  # fmt: skip
