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


def fit(evidence: Floats, right: NDArray[np.bool_]) -> tuple[float, float] | None:
    """Slope and intercept of P(right) = sigmoid(slope evidence + intercept).

    The slope is regularised a little (l2, as by a standard normal prior on it for evidence of deviation 1),
    so that it is finite where right and wrong are separable. ``evidence`` (n,) is that of
    :mod:`moviola.retrieval.calibration`.

    Returns:
        None where nothing can be learned: all right or all wrong, equal evidence, or evidence that does not
        rise with being right.
    """
    if not 0 < right.sum() < len(right) or evidence.std() == 0:
        return None
    mean, deviation = evidence.mean(), evidence.std()
    design = np.stack([(evidence - mean) / deviation, np.ones(len(evidence))], axis=1)
    penalty = np.array([_PENALTY, 0.0])

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = design @ weights
        value = (np.logaddexp(0, logits) - right * logits).sum() + penalty @ weights**2 / 2
        return float(value), design.T @ (expit(logits) - right) + penalty * weights

    def curvature(weights: Floats) -> Floats:
        chance = expit(design @ weights)
        return design.T @ (design * (chance * (1 - chance))[:, None]) + np.diag(penalty)

    solution = minimize(
        loss, np.zeros(2), jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-9}
    )
    slope = float(solution.x[0] / deviation)
    return (slope, float(solution.x[1] - slope * mean)) if slope > 0 else None


def first_answers(run: Run, qrels: Qrels, count: int = ANSWERS) -> tuple[Floats, NDArray[np.bool_]]:
    """Score (n,) of every query's first answers, thinned as search thins them, and which are right (n,).

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
    return np.asarray(run.score[rows], dtype=np.float64), right


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
        ``slope`` and ``intercept``, of how many ``answers``, and how many of them were ``right``; ``words``
        of a :func:`closed_language`; None as in :func:`fit`.
    """
    run = recipe.run(model, val, replace(how, suppress_above=SAME_MOMENT, scored=False))
    score, right = first_answers(run, val.pairs.qrels)
    fitted = fit(refiner_of(recipe.architecture, TorchRunner(model), "calibrating").evidence(score), right)
    if fitted is None:
        return None
    words = closed_language(learned, val.queries.texts)
    return {
        "slope": fitted[0], "intercept": fitted[1], "answers": len(score), "right": int(right.sum()),
        **({"words": words} if words else {}),
    }  # fmt: skip
