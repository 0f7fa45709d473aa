"""Evaluate a run against judgements: every measure, every query, and what was missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import compress

import numpy as np

from moviola.errors import InvalidValue
from moviola.study.measures import no_answer
from moviola.study.measures.joined import Joined, discounted
from moviola.study.measures.matching import FREE
from moviola.study.measures.measure_names import FAMILIES, Measure
from moviola.study.measures.presets import Preset, preset_of
from moviola.study.measures.qrels_and_run import Flags, Floats, Qrels, Run

__all__ = ["TOGETHER", "VALUES", "Joined", "Results", "evaluate"]


@dataclass(frozen=True, eq=False)
class Results:
    """The result of :func:`evaluate`.

    Attributes:
        measures: value by name of the measure: the mean over the queries that it counts, 0 without any; of
            :data:`TOGETHER` the one value of all queries.
        per_query: (queries,) float64 by name of the measure, beside ``query_ids``; NaN for queries that the
            measure does not count. Measures of all queries together are not here.
        query_ids: the queries that count for at least one measure, in the order of the judgements.
        missing: judged queries without an entry in the run.
        extra: queries of the run without judgements; they never count.
        without_relevant: judged queries without any moment of relevance > 0.
        counts: number of queries of each measure.
    """

    measures: dict[str, float]
    per_query: dict[str, Floats]
    query_ids: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    without_relevant: tuple[str, ...]
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        """Number of queries that count for at least one measure."""
        return len(self.query_ids)

    def by_query(self, measure: str) -> Floats:
        """(queries,) float64 beside ``query_ids``; NaN where the measure does not count the query.

        Raises:
            InvalidValue: the measure was not evaluated, or is one of all queries together.
        """
        if measure in self.per_query:
            return self.per_query[measure]
        if measure in self.measures:
            raise InvalidValue(f"measure {measure!r}: one value of all queries together, none per query")
        raise InvalidValue(f"measure {measure!r}: not evaluated; there are {', '.join(self.measures)}")


def evaluate(
    run: Run,
    qrels: Qrels,
    measures: str | Measure | Iterable[str | Measure],
    preset: str | Preset | None = None,
) -> Results:
    """Score ``run`` against ``qrels``.

    Args:
        qrels: graded moments; those of relevance > 0 are the ground truth of the measures that know no grade.
        measures: names or :class:`Measure` values.
        preset: ``"tvr_ranking"`` or ``"spr"`` to reproduce a release, queries left out included; read the
            files with the same one.

    Raises:
        InvalidValue: a measure or a preset is unknown, there is no measure, or the judgements lack queries
            with or without an answer that a measure needs (AUROC, Rej-F1).
    """
    wanted = [measures] if isinstance(measures, str | Measure) else measures
    parsed = [Measure.parse(name) if isinstance(name, str) else name for name in wanted]
    if not parsed:
        raise InvalidValue("no measure given; name at least one, for instance nDCG@20,IoU>=0.5")
    rules = preset_of(preset)
    joined = Joined.of(run, qrels, max(measure.k for measure in parsed), rules)
    counting = {str(measure): joined.counting(FAMILIES[measure.family].queries) for measure in parsed}
    listed = np.logical_or.reduce(list(counting.values()))
    values: dict[str, float] = {}
    per_query: dict[str, Floats] = {}
    for measure in parsed:
        name = str(measure)
        if measure.family in TOGETHER:
            values[name] = TOGETHER[measure.family](joined, measure)
            continue
        result = VALUES[measure.family](joined, measure)
        values[name] = _mean(result[counting[name]])
        per_query[name] = np.where(counting[name], result, np.nan)[listed]
    present, judged = set(run.query_ids), set(qrels.query_ids)
    return Results(
        measures=values,
        per_query=per_query,
        query_ids=tuple(compress(qrels.query_ids, listed)),
        counts={name: int(counted.sum()) for name, counted in counting.items()},
        missing=tuple(name for name in qrels.query_ids if name not in present),
        extra=tuple(name for name in run.query_ids if name not in judged),
        without_relevant=tuple(compress(qrels.query_ids, ~joined.has_answer)),
    )


def _mean(values: Floats) -> float:
    """The mean, exactly rounded, so that the order of queries changes nothing; 0 without queries."""
    return math.fsum(values.tolist()) / len(values) if len(values) else 0.0


def _reached(values: Floats, measure: Measure) -> Flags:
    assert measure.overlap is not None
    # Without shared time there is no answer, even at IoU >= 0.
    return (values > measure.overlap if measure.strict else values >= measure.overlap) & (values > 0)


def _graded_dcg(joined: Joined, measure: Measure) -> Floats:
    """Sum over ranks of (2^relevance - 1) / log2(rank + 1) after greedy matching."""
    assert measure.overlap is not None
    strict = measure.strict if joined.rules.strict is None else joined.rules.strict
    taken = joined.taken(measure.overlap, strict)
    hit = np.flatnonzero((taken != FREE) & (joined.rank <= measure.k))
    return joined.summed(joined.query[hit], discounted(joined.relevance[taken[hit]], joined.rank[hit]))


def _ndcg(joined: Joined, measure: Measure) -> Floats:
    """TVR-Ranking, section 4, gain 2^relevance - 1: DCG over the DCG of the k best truths in ideal order."""
    place, gain = joined.ideal
    top = place <= measure.k
    best = joined.summed(joined.truth_query[top], gain[top])
    return np.divide(_graded_dcg(joined, measure), best, out=np.zeros(joined.queries), where=best > 0)


def _dcg(joined: Joined, measure: Measure) -> Floats:
    """AxIoU paper, Eq. 15, gain IoU, discount log2(rank + 1); with an overlap the graded sum under nDCG."""
    if measure.overlap is not None:
        return _graded_dcg(joined, measure)
    inside = joined.rank <= measure.k
    return joined.summed(joined.query[inside], joined.best[inside] / np.log2(joined.rank[inside] + 1))


def _recall(joined: Joined, measure: Measure) -> Floats:
    """AxIoU paper, Eq. 1: 1 if any of the first k predictions reaches the overlap, else 0."""
    hit = _reached(joined.best, measure) & (joined.rank <= measure.k)
    return np.minimum(joined.summed(joined.query[hit]), 1)


def _average_precision(joined: Joined, measure: Measure) -> Floats:
    """AxIoU paper, Eq. 12: mean over ranks 1..k of the precision there.

    A hit at rank j counts 1/r in the precision at every rank r >= j, so it adds H(k) - H(j - 1) to the sum.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, measure.k + 1))])
    hit = _reached(joined.best, measure) & (joined.rank <= measure.k)
    return joined.summed(joined.query[hit], harmonic[-1] - harmonic[joined.rank[hit] - 1]) / measure.k


def _axiou(joined: Joined, measure: Measure) -> Floats:
    """AxIoU paper, Eq. 5: mean over ranks 1..k of the best IoU so far; a short list carries its maximum on.

    Only ranks that raise the maximum matter: a rise by d at rank j adds d to the ranks j..k.
    """
    inside = joined.rank <= measure.k
    query, rank, best = joined.query[inside], joined.rank[inside], joined.best[inside]
    if not len(query):
        return np.zeros(joined.queries)
    # One running maximum for all queries: order numbers of the values, lifted above those of the query
    # before.
    values, order = np.unique(best, return_inverse=True)
    lift = query * len(values)
    so_far = values[np.maximum.accumulate(order + lift) - lift]
    next_rank = np.append(rank[1:], measure.k + 1)
    next_rank[np.append(query[1:] != query[:-1], True)] = measure.k + 1
    return joined.summed(query, so_far * (next_rank - rank)) / measure.k


VALUES: Mapping[str, Callable[[Joined, Measure], Floats]] = {
    "nDCG": _ndcg,
    "DCG": _dcg,
    "R": _recall,
    "AP": _average_precision,
    "AxIoU": _axiou,
    "mR": no_answer.recall,
    "mR+": partial(no_answer.recall, beyond=1),
    "mIoU": no_answer.matched_iou,
    "mIoU+": partial(no_answer.matched_iou, beyond=1),
    "G-mIoU": no_answer.generalized_iou,
}
"""By family: one value per judged query."""

TOGETHER: Mapping[str, Callable[[Joined, Measure], float]] = {
    "AUROC": no_answer.auroc_of,
    "Rej-F1": no_answer.rejection_f1_of,
    "Rej-Acc": no_answer.accuracy,
}
"""By family: one value of all queries together."""
