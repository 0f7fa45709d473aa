"""A run aligned with judgements, once for every measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from moviola.study.measures.matching import Pairs, join, match, spread
from moviola.study.measures.measure_names import Counting
from moviola.study.measures.presets import Preset
from moviola.study.measures.qrels_and_run import Flags, Floats, Integers, Qrels, Run
from moviola.temporal import overlap

__all__ = ["Joined", "discounted", "places_of"]


@dataclass(frozen=True, eq=False)
class Joined:
    """A run aligned with judgements. Rows of predictions and of truths are ordered by query.

    Attributes:
        queries: number of judged queries.
        run_rows, truth_rows: (n,) int64, row of the run, or of the judgements, that each of them is.
        query, truth_query: (n,) int64, judged query of each prediction and truth.
        rank: (predictions,) int64, from 1 to the depth read.
        relevance: (truths,) float64; within a query falling, stably.
        pairs: overlapping predictions and truths, as :func:`match` takes them.
        relevant_truths: (queries,) int64, judged moments of relevance > 0.
        answered: (queries,) int64, moments of the whole run, beyond the depth too.
        sureness: (queries,) float64, the highest score in the whole run; -inf where it holds no moment.
        present: (queries,) bool, those with an entry in the run, or that count without one.
        rules: the preset.
        matches: results of :meth:`taken`, by threshold.
    """

    queries: int
    run_rows: Integers
    query: Integers
    rank: Integers
    truth_rows: Integers
    truth_query: Integers
    relevance: Floats
    pairs: Pairs
    relevant_truths: Integers
    answered: Integers
    sureness: Floats
    present: Flags
    rules: Preset
    matches: dict[tuple[float, bool], Integers] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, qrels: Qrels, depth: int, rules: Preset) -> Joined:
        """Align the vocabularies of both and pair what overlaps within the first ``depth`` ranks."""
        queries = len(qrels.query_ids)
        to_judged = places_of(run.query_ids, qrels.query_ids)
        to_video = places_of(run.video_ids, qrels.video_ids)
        present = np.zeros(queries, np.bool_)
        present[to_judged[to_judged >= 0]] = True
        relevant = np.bincount(qrels.query[qrels.relevance > 0], minlength=queries)
        row_query = to_judged[run.query]
        judged_rows = row_query >= 0
        sureness = np.full(queries, -np.inf)
        np.maximum.at(sureness, row_query[judged_rows], run.score[judged_rows])

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
        rows, judgements = read[prediction], truths[truth]
        iou = overlap(run.start[rows], run.end[rows], qrels.start[judgements], qrels.end[judgements])
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
            relevant_truths=relevant,
            answered=np.bincount(row_query[judged_rows], minlength=queries),
            sureness=sureness,
            present=present | rules.count_missing,
            rules=rules,
        )

    @cached_property
    def has_answer(self) -> Flags:
        """(queries,) bool: whether a judged moment is relevant."""
        return self.relevant_truths > 0

    def counting(self, queries: Counting) -> Flags:
        """(queries,) bool: those that a family of measures counts."""
        if queries == "all":
            return self.present
        if queries == "several":
            return self.present & (self.relevant_truths > 1)
        return self.present & (self.has_answer | self.rules.count_irrelevant)

    @cached_property
    def best(self) -> Floats:
        """(predictions,) float64: the highest IoU with any relevant truth, 0 where there is none."""
        best = np.zeros(len(self.query))
        relevant = self.relevance[self.pairs.truth] > 0
        np.maximum.at(best, self.pairs.prediction[relevant], self.pairs.iou[relevant])
        return best

    def taken(self, overlap: float, strict: bool) -> Integers:
        """(predictions,) int64: the truth that each prediction takes at a threshold, or ``FREE``."""
        if (overlap, strict) not in self.matches:
            taken = match(self.pairs, self.rank, len(self.relevance), overlap=overlap, strict=strict)
            self.matches[overlap, strict] = taken
        return self.matches[overlap, strict]

    @cached_property
    def ideal(self) -> tuple[Integers, Floats]:
        """Place of each truth in the ideal ranking of its query, from 1, and its discounted gain there."""
        place = spread(np.bincount(self.truth_query, minlength=self.queries)) + 1
        return place, discounted(self.relevance, place)

    def summed(self, query: Integers, values: Floats | None = None) -> Floats:
        """(queries,) float64: the sum of ``values``, or their number, by the ``query`` of each."""
        return np.bincount(query, weights=values, minlength=self.queries).astype(np.float64, copy=False)


def discounted(relevance: Floats, rank: Integers) -> Floats:
    """(n,) float64: gain 2^relevance - 1 over log2(rank + 1)."""
    gain: Floats = (np.exp2(relevance) - 1) / np.log2(rank + 1)
    return gain


def places_of(names: Sequence[str], known: Sequence[str]) -> Integers:
    """(names,) int64: place of each name among the known ones; -1 where it is not known."""
    place = {name: i for i, name in enumerate(known)}
    return np.fromiter((place.get(name, -1) for name in names), np.int64, len(names))
