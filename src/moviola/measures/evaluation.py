"""Evaluate a run against judgements: every measure, every query, and what was missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from moviola.errors import InvalidValue
from moviola.measures.collections import Columns, Flags, Floats, Integers, Qrels, Run
from moviola.measures.matching import FREE, match
from moviola.measures.names import Measure
from moviola.measures.pairs import Pairs, join, spread
from moviola.measures.presets import Preset, preset_of
from moviola.temporal import overlap

__all__ = ["Joined", "Results", "evaluate"]


@dataclass(frozen=True, eq=False)
class Results:
    """What :func:`evaluate` found.

    Attributes:
        measures: mean over the counted queries by name of the measure; 0 when no query counts.
        per_query: (queries,) float64 by name of the measure, beside ``query_ids``.
        query_ids: the queries that count, in the order of the judgements.
        missing: judged queries without an entry in the run, whether they count or not.
        extra: queries of the run that nobody judged; they never count.
        without_relevant: judged queries without any moment of relevance > 0.
    """

    measures: dict[str, float]
    per_query: dict[str, Floats]
    query_ids: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    without_relevant: tuple[str, ...]

    @property
    def queries(self) -> int:
        """Number of queries that count."""
        return len(self.query_ids)


def evaluate(
    run: Run,
    qrels: Qrels,
    measures: str | Measure | Iterable[str | Measure],
    preset: str | Preset | None = None,
) -> Results:
    """Score ``run`` against ``qrels``.

    Args:
        run: ranked moments.
        qrels: graded moments; those of relevance > 0 are the ground truth of the measures that know no grade.
        measures: names or :class:`Measure` values.
        preset: ``"tvr_ranking"`` or ``"spr"`` to reproduce a release, queries left out included; read the
            files with the same one.

    Raises:
        InvalidValue: a measure or a preset is unknown, or there is no measure.
    """
    wanted = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    parsed = [Measure.parse(name) if isinstance(name, str) else name for name in wanted]
    if not parsed:
        raise InvalidValue("no measure given; name at least one, for instance nDCG@20,IoU>=0.5")
    rules = preset_of(preset)
    joined = Joined.of(run, qrels, max(measure.k for measure in parsed), rules)
    counted = joined.counted
    per_query = {str(measure): VALUES[measure.family](joined, measure)[counted] for measure in parsed}
    present, judged = set(run.query_ids), set(qrels.query_ids)
    return Results(
        measures={name: _mean(values) for name, values in per_query.items()},
        per_query=per_query,
        query_ids=tuple(np.asarray(qrels.query_ids, object)[counted]),
        missing=tuple(name for name in qrels.query_ids if name not in present),
        extra=tuple(name for name in run.query_ids if name not in judged),
        without_relevant=tuple(np.asarray(qrels.query_ids, object)[~joined.relevant_queries]),
    )


def _mean(values: Floats) -> float:
    """The mean, exactly rounded, so that the order of queries changes nothing; 0 without queries."""
    return math.fsum(values.tolist()) / len(values) if len(values) else 0.0


@dataclass(frozen=True, eq=False)
class Joined:
    """A run beside judgements, ready to be measured. Rows of predictions and of truths are ordered by query.

    Attributes:
        queries: number of judged queries.
        run_rows: (predictions,) int64, row of the run that each prediction is.
        query: (predictions,) int64, judged query of each prediction.
        rank: (predictions,) int64, from 1 to the depth read.
        truth_rows: (truths,) int64, row of the judgements that each truth is.
        truth_query: (truths,) int64; within a query the truths stand by falling relevance, stably.
        relevance: (truths,) float64.
        pairs: overlapping predictions and truths, as :func:`match` takes them.
        relevant_queries: (queries,) bool.
        counted: (queries,) bool, those that enter the mean.
        rules: the preset.
        matches: what :meth:`taken` has worked out already, by threshold.
        gains: the same for :meth:`gained`.
    """

    queries: int
    run_rows: Integers
    query: Integers
    rank: Integers
    truth_rows: Integers
    truth_query: Integers
    relevance: Floats
    pairs: Pairs
    relevant_queries: Flags
    counted: Flags
    rules: Preset
    matches: dict[tuple[float, bool], Integers] = field(default_factory=dict)
    gains: dict[tuple[float, bool], tuple[Integers, Integers, Floats]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, qrels: Qrels, depth: int, rules: Preset) -> Joined:
        """Align the vocabularies of both and pair what overlaps within the first ``depth`` ranks."""
        queries = len(qrels.query_ids)
        to_judged = _translate(run.query_ids, qrels.query_ids)
        to_video = _translate(run.video_ids, qrels.video_ids)
        present = np.zeros(queries, np.bool_)
        present[to_judged[to_judged >= 0]] = True
        relevant = np.bincount(qrels.query, weights=qrels.relevance > 0, minlength=queries) > 0

        # The first rows of every judged query, in the order of the judgements.
        judged = np.flatnonzero(to_judged >= 0)
        judged = judged[np.argsort(to_judged[judged], kind="stable")]
        count = np.minimum(run.offsets[judged + 1] - run.offsets[judged], depth)
        query = np.repeat(to_judged[judged], count)
        rank = spread(count) + 1
        read = np.repeat(run.offsets[judged], count) + rank - 1

        truths = np.lexsort((-qrels.relevance, qrels.query))
        if not rules.keep_zeros:
            truths = truths[qrels.relevance[truths] > 0]
        truth_query = qrels.query[truths]

        videos = max(1, len(qrels.video_ids))
        video = to_video[run.video[read]]
        known = np.flatnonzero(video >= 0)
        near, truth = join(query[known] * videos + video[known], truth_query * videos + qrels.video[truths])
        prediction = known[near]
        iou = overlap(*_spans(run, read[prediction]), *_spans(qrels, truths[truth]))
        some = np.flatnonzero(iou > 0)
        prediction, truth, iou = prediction[some], truth[some], iou[some]
        order = np.lexsort((truth, -iou, prediction, rank[prediction]))
        return cls(
            queries=queries,
            run_rows=read,
            query=query,
            rank=rank,
            truth_rows=truths,
            truth_query=truth_query,
            relevance=qrels.relevance[truths],
            pairs=Pairs(prediction[order], truth[order], iou[order]),
            relevant_queries=relevant,
            counted=(relevant | rules.count_irrelevant) & (present | rules.count_missing),
            rules=rules,
        )

    @cached_property
    def best(self) -> Floats:
        """(predictions,) float64: the highest IoU with any relevant truth, 0 where there is none."""
        best = np.zeros(len(self.query))
        relevant = self.relevance[self.pairs.truth] > 0
        np.maximum.at(best, self.pairs.prediction[relevant], self.pairs.iou[relevant])
        return best

    def taken(self, overlap: float, strict: bool) -> Integers:
        """(predictions,) int64: the truth that each prediction takes at a threshold, or ``FREE``."""
        key = (overlap, strict)
        if key not in self.matches:
            truths = len(self.relevance)
            self.matches[key] = match(self.pairs, self.rank, truths, overlap=overlap, strict=strict)
        return self.matches[key]

    def gained(self, overlap: float, strict: bool) -> tuple[Integers, Integers, Floats]:
        """Query, rank and discounted gain (2^relevance - 1) / log2(rank + 1) of all that took a truth."""
        key = (overlap, strict)
        if key not in self.gains:
            taken = self.taken(overlap, strict)
            hit = np.flatnonzero(taken != FREE)
            gain = _discounted(self.relevance[taken[hit]], self.rank[hit])
            self.gains[key] = (self.query[hit], self.rank[hit], gain)
        return self.gains[key]

    @cached_property
    def ideal(self) -> tuple[Integers, Floats]:
        """Place of each truth in the ideal ranking of its query, from 1, and its discounted gain there."""
        place = spread(np.bincount(self.truth_query, minlength=self.queries)) + 1
        return place, _discounted(self.relevance, place)

    def summed(self, values: Floats, chosen: Flags) -> Floats:
        """(queries,) float64: the sum of ``values``, one per prediction, over the chosen predictions."""
        sums = np.bincount(self.query[chosen], weights=values[chosen], minlength=self.queries)
        return sums.astype(np.float64, copy=False)


def _discounted(relevance: Floats, rank: Integers) -> Floats:
    gain: Floats = (np.exp2(relevance) - 1) / np.log2(rank + 1)
    return gain


def _translate(names: tuple[str, ...], into: tuple[str, ...]) -> Integers:
    """(names,) int64: position of each name in ``into``, or -1."""
    place = {name: i for i, name in enumerate(into)}
    return np.fromiter((place.get(name, -1) for name in names), np.int64, len(names))


def _spans(moments: Columns, rows: Integers) -> tuple[Floats, Floats]:
    return moments.start[rows], moments.end[rows]


def _reached(values: Floats, measure: Measure) -> Flags:
    assert measure.overlap is not None
    # Without shared time there is no answer, even at IoU >= 0.
    return (values > measure.overlap if measure.strict else values >= measure.overlap) & (values > 0)


def _graded_dcg(joined: Joined, measure: Measure) -> Floats:
    """Sum over ranks of (2^relevance - 1) / log2(rank + 1) after greedy matching."""
    assert measure.overlap is not None
    strict = measure.strict if joined.rules.strict is None else joined.rules.strict
    query, rank, gain = joined.gained(measure.overlap, strict)
    inside = rank <= measure.k
    sums = np.bincount(query[inside], weights=gain[inside], minlength=joined.queries)
    return sums.astype(np.float64, copy=False)


def _ndcg(joined: Joined, measure: Measure) -> Floats:
    """TVR-Ranking, section 4, gain 2^relevance - 1: DCG over the DCG of the k best truths in ideal order."""
    place, gain = joined.ideal
    top = place <= measure.k
    best = np.bincount(joined.truth_query[top], weights=gain[top], minlength=joined.queries)
    return np.divide(_graded_dcg(joined, measure), best, out=np.zeros(joined.queries), where=best > 0)


def _dcg(joined: Joined, measure: Measure) -> Floats:
    """AxIoU paper, Eq. 15, gain IoU and discount log2(rank + 1); with an overlap the graded sum under
    nDCG."""
    if measure.overlap is not None:
        return _graded_dcg(joined, measure)
    return joined.summed(joined.best / np.log2(joined.rank + 1), joined.rank <= measure.k)


def _recall(joined: Joined, measure: Measure) -> Floats:
    """AxIoU paper, Eq. 1: 1 if any of the first k predictions reaches the overlap, else 0."""
    hit = _reached(joined.best, measure) & (joined.rank <= measure.k)
    return (np.bincount(joined.query[hit], minlength=joined.queries) > 0).astype(np.float64)


def _average_precision(joined: Joined, measure: Measure) -> Floats:
    """AxIoU paper, Eq. 12: mean over ranks 1..k of the precision there.

    A hit at rank j counts 1/r in the precision at every rank r >= j, so it adds H(k) - H(j - 1) to the sum.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, measure.k + 1))])
    hit = _reached(joined.best, measure) & (joined.rank <= measure.k)
    rank = np.minimum(joined.rank, measure.k)
    return joined.summed(harmonic[measure.k] - harmonic[rank - 1], hit) / measure.k


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
    sums = np.bincount(query, weights=so_far * (next_rank - rank), minlength=joined.queries)
    return sums.astype(np.float64, copy=False) / measure.k


VALUES: Mapping[str, Callable[[Joined, Measure], Floats]] = {
    "nDCG": _ndcg,
    "DCG": _dcg,
    "R": _recall,
    "AP": _average_precision,
    "AxIoU": _axiou,
}
