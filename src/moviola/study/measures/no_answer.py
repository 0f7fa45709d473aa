"""Measures where a query may have no answer, one, or several (Generalized Moment Retrieval, GMR).

Examples:
    >>> import numpy as np
    >>> from moviola.study.measures.no_answer import auroc
    >>> round(auroc(np.array([0.9, 0.6, 0.4]), np.array([0.5, 0.1])), 3)
    0.833

Conventions
    A judged query has no answer when none of its moments has a relevance > 0: its list is empty, or holds
    moments of relevance 0 only, which row formats need. A query is as sure of its answer as the highest score
    in its whole list, whatever the depth; without a moment it is less sure than any score. It is refused when
    it is missing from the run, when its list holds no moment, or with ``score<=τ`` in the name when no moment
    scores above τ. All judged queries count, but for a preset that leaves missing ones out.

    G is the set of relevant moments of a query, P its first k predictions, those of other videos included.
    Matching is greedy by rank: each prediction takes the free moment of its video with the highest IoU, if
    that reaches the threshold (for the measures of IoU: if they share time).

Measures
    ``AUROC``: of a query with an answer and one without, how often the former is surer; ties count half.
    [1, 2]
    ``Rej-F1``: F1 of refusals; a query without an answer is what is to be found. ``Rej-Acc``: share of
    queries that are refused or answered rightly. [1]
    ``mR@k``: |matches| / |G|, mean over the thresholds .5, .55, … .95, of queries with an answer. ``mR+@k``:
    max(0, |matches| - 1) / (|G| - 1), of queries with several: what is found beyond one moment. [1]
    ``mIoU@k``: sum of the matches' IoU / min(|P|, |G|), 0 without a prediction, of queries with an answer.
    ``mIoU+@k``: the same without the best match, of queries with several. [1]
    ``G-mIoU@k``: of all queries; without answer and refused 1, one of both 0, else the sum of the matches'
    IoU / (|P| + |G| - |matches|). [1]
    :func:`refused_share`: specificity at a sensitivity. :func:`auroc_interval`: how far the choice of queries
    moves AUROC.

References
    [1] "Retrieving Any Relevant Moments: Benchmark and Models for Generalized Moment Retrieval", 2026, and
    its evaluation toolkit.
    [2] Hanley and McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC)
    curve", Radiology 143, 1982.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from moviola.errors import InvalidValue
from moviola.study.measures.joined import Joined
from moviola.study.measures.matching import FREE
from moviola.study.measures.measure_names import Measure
from moviola.study.measures.qrels_and_run import Flags, Floats, Integers
from moviola.study.measures.trials import chunks, require_draws

__all__ = [
    "accuracy", "auroc", "auroc_interval", "auroc_of", "generalized_iou", "matched_iou", "recall",
    "refused_share", "rejection_f1", "rejection_f1_of",
]  # fmt: skip

OVERLAPS = tuple(round(0.5 + 0.05 * i, 2) for i in range(10))


def auroc(answerable: ArrayLike, absent: ArrayLike) -> float:
    """Area under the ROC curve, in [0, 1]: how often a query with an answer is surer than one without.

    Ties count half; .5 is chance.

    Args:
        answerable: (n,) how sure the system is of queries with an answer; higher is surer, -inf for nothing.
        absent: (m,) the same of queries without one.

    Raises:
        InvalidValue: one of both is empty or holds NaN.
    """
    sure, unsure = _scores(answerable, "with an answer"), _scores(absent, "without an answer")
    (value,) = _areas(*_histograms(sure, unsure))
    return float(value)


def auroc_interval(
    answerable: ArrayLike, absent: ArrayLike, *, trials: int = 10_000, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of :func:`auroc`: its bounds.

    Queries with an answer are drawn separately from those without.

    Args:
        answerable, absent: see :func:`auroc`.
        trials: samples drawn, >= 1.
        confidence: in (0, 1).

    Raises:
        InvalidValue: as in :func:`auroc`, or ``trials``, ``confidence`` or ``seed`` is out of range.
    """
    require_draws(trials, seed, confidence)
    sure, unsure = _scores(answerable, "with an answer"), _scores(absent, "without an answer")
    levels, other_levels = _histograms(sure, unsure)
    random = np.random.default_rng(seed)
    values = []
    for size in chunks(trials, levels.shape[-1]):
        drawn = random.multinomial(len(sure), levels[0] / len(sure), size).astype(np.float64)
        other = random.multinomial(len(unsure), other_levels[0] / len(unsure), size).astype(np.float64)
        values.append(_areas(drawn, other))
    low, high = np.quantile(np.concatenate(values), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def rejection_f1(refused: ArrayLike, absent: ArrayLike) -> float:
    """F1 of refusals, in [0, 1].

    Args:
        refused: (n,) bool, the system refuses the query.
        absent: (n,) bool, nothing answers it.

    Raises:
        InvalidValue: the lengths differ, or no query is without an answer.
    """
    said, true = np.asarray(refused, np.bool_), np.asarray(absent, np.bool_)
    if said.shape != true.shape or said.ndim != 1:
        raise InvalidValue(f"refused {said.shape} and absent {true.shape}: give one value each per query")
    if not true.any():
        raise InvalidValue("Rej-F1: no judged query is without an answer; give judgements that hold some")
    return float(2 * (said & true).sum() / (said.sum() + true.sum()))


def refused_share(answerable: ArrayLike, absent: ArrayLike, *, kept: float = 0.95) -> float:
    """Share of queries without an answer that are refused at the level that keeps a share of the others.

    Args:
        answerable, absent: see :func:`auroc`.
        kept: share of the queries with an answer that must not be refused, in (0, 1].

    Returns:
        share of ``absent`` below the highest level that at least ``kept`` of ``answerable`` reach.

    Raises:
        InvalidValue: as in :func:`auroc`, or ``kept`` is out of range.
    """
    if not 0 < kept <= 1:
        raise InvalidValue(f"kept {kept}: must be above 0 and at most 1, for instance 0.95")
    sure, unsure = _scores(answerable, "with an answer"), _scores(absent, "without an answer")
    # Reduced a little, so that .95 * 20 requires 19 and not, by rounding, 20.
    needed = max(1, int(np.ceil(kept * len(sure) - 1e-9)))
    level = np.sort(sure)[len(sure) - needed]
    return float((unsure < level).mean())


def _scores(values: ArrayLike, what: str) -> Floats:
    scores = np.asarray(values, np.float64)
    if scores.ndim != 1 or not len(scores):
        raise InvalidValue(f"queries {what}: there is none; AUROC needs some with and some without an answer")
    if np.isnan(scores).any():
        raise InvalidValue(f"queries {what}: score {int(np.isnan(scores).argmax()) + 1} is NaN")
    return scores


def _histograms(sure: Floats, unsure: Floats) -> tuple[Floats, Floats]:
    """Counts of both at each level of score: (1, levels) each."""
    levels, place = np.unique(np.concatenate([sure, unsure]), return_inverse=True)
    first, second = (
        np.bincount(part, minlength=len(levels)).astype(np.float64)[None]
        for part in np.split(place, [len(sure)])
    )
    return first, second


def _areas(sure: Floats, unsure: Floats) -> Floats:
    """(trials,) areas of (trials, levels) counts each."""
    below = np.cumsum(unsure, axis=1) - unsure / 2
    areas: Floats = (sure * below).sum(axis=1) / (sure.sum(axis=1) * unsure.sum(axis=1))
    return areas


def auroc_of(joined: Joined, measure: Measure) -> float:
    """:func:`auroc` of a run."""
    counted, has = joined.counting("all"), joined.has_answer
    return auroc(joined.sureness[counted & has], joined.sureness[counted & ~has])


def rejection_f1_of(joined: Joined, measure: Measure) -> float:
    """:func:`rejection_f1` of a run."""
    counted = joined.counting("all")
    return rejection_f1(_refused(joined, measure)[counted], ~joined.has_answer[counted])


def accuracy(joined: Joined, measure: Measure) -> float:
    """Share of queries that are refused or answered rightly; 0 without queries."""
    counted = joined.counting("all")
    right = (_refused(joined, measure) != joined.has_answer)[counted]
    return float(right.mean()) if len(right) else 0.0


def recall(joined: Joined, measure: Measure, *, beyond: int = 0) -> Floats:
    """mR@k: matches of all judged moments, mean over the thresholds; mR+@k ``beyond`` the first of each."""
    whole = joined.relevant_truths - beyond
    shares = []
    for threshold in OVERLAPS:
        taken = joined.taken(threshold, False)
        hit = (taken != FREE) & (joined.rank <= measure.k)
        hit[hit] = joined.relevance[taken[hit]] > 0
        shares.append(_divided(np.maximum(0, joined.summed(joined.query[hit]) - beyond), whole))
    mean: Floats = np.mean(shares, axis=0)
    return mean


def matched_iou(joined: Joined, measure: Measure, *, beyond: int = 0) -> Floats:
    """mIoU@k: IoU of the pairs that predictions and judged moments make; mIoU+@k without the best one."""
    total, best, _ = _matched(joined, measure)
    possible = np.minimum(np.minimum(joined.answered, measure.k), joined.relevant_truths)
    return _divided(total - beyond * best, possible - beyond)


def generalized_iou(joined: Joined, measure: Measure) -> Floats:
    """G-mIoU@k: one value for refusals and for moments."""
    total, _, matches = _matched(joined, measure)
    predicted = np.minimum(joined.answered, measure.k)
    value = _divided(total, predicted + joined.relevant_truths - matches)
    return np.where(_refused(joined, measure), ~joined.has_answer, np.where(joined.has_answer, value, 0.0))


def _refused(joined: Joined, measure: Measure) -> Flags:
    """(queries,) bool: no answer, or none above the measure's level."""
    level = -np.inf if measure.level is None else measure.level
    refused: Flags = (joined.answered == 0) | (joined.sureness <= level)
    return refused


def _matched(joined: Joined, measure: Measure) -> tuple[Floats, Floats, Floats]:
    """Of each query the sum of the matches' IoU, the highest of them, and how many matches there are."""
    pairs, taken = joined.pairs, joined.taken(0.0, True)
    made = taken[pairs.prediction] == pairs.truth
    made &= (joined.rank[pairs.prediction] <= measure.k) & (joined.relevance[pairs.truth] > 0)
    query, iou = joined.query[pairs.prediction[made]], pairs.iou[made]
    best = np.zeros(joined.queries)
    np.maximum.at(best, query, iou)
    return joined.summed(query, iou), best, joined.summed(query)


def _divided(part: Floats | Integers, whole: Floats | Integers) -> Floats:
    """``part / whole``, 0 where there is no whole."""
    quotient: Floats = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return quotient
