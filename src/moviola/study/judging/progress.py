"""Progress of a task, and agreement of its raters."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from math import isnan

import numpy as np

from moviola.study.datasets.building.consensus import LEVELS, Agreement, agreement, exam
from moviola.study.judging.task import JudgingTask

__all__ = ["Progress", "QueryProgress", "RaterProgress", "number_or_none", "progress_of"]


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """State of one query's due moments; ``answers`` counts those with an agreed level of 1 or above."""

    query_id: str
    query: str
    moments: int
    agreed: int
    discarded: int
    set_aside: int
    open: int
    answers: int


@dataclass(frozen=True, slots=True)
class RaterProgress:
    """State of one rater: moments judged and skipped; and agreement with the others.

    As in a qualification exam (:class:`~moviola.study.datasets.building.consensus.Examined`); ``distance``
    and ``kappa`` are None without shared moments, ``kappa`` also where chance alone explains all.
    """

    name: str
    judged: int
    passed: int
    distance: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Progress:
    """A whole task: its queries, its raters, and the figures of their agreement over the moments so far."""

    queries: tuple[QueryProgress, ...]
    raters: tuple[RaterProgress, ...]
    agreement: Agreement

    def count(self, field: str) -> int:
        """Sum of a field of :class:`QueryProgress`: ``count("agreed")``."""
        return sum(int(getattr(query, field)) for query in self.queries)


def progress_of(task: JudgingTask) -> Progress:
    """The present progress of a task."""
    with task.snapshot():
        answers, names = task.answers(), task.raters()
    outcome = task.outcome(answers)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    texts = {pair.query_id: pair.query for pair in task.pairs}
    for pair in task.due(outcome):
        counts[pair.query_id][outcome.standing[pair.pair_id]] += 1
        counts[pair.query_id]["answers"] += outcome.agreed.get(pair.pair_id, 0) > 0
    queries = tuple(
        QueryProgress(
            query_id, text, sum(here[kind] for kind in ("agreed", "discarded", "set aside", "open")),
            here["agreed"], here["discarded"], here["set aside"], here["open"], here["answers"],
        )
        for query_id, text in texts.items()
        if (here := counts[query_id])
    )  # fmt: skip
    judged = Counter(answer.rater for answer in answers if answer.level is not None)
    passed = Counter(answer.rater for answer in answers if answer.level is None)
    count = Counter(rating.pair_id for rating in outcome.ratings)
    shared = [rating for rating in outcome.ratings if count[rating.pair_id] > 1]  # judged by several
    examined = exam(shared).raters if shared else {}
    raters = tuple(
        RaterProgress(name, judged[name], passed[name], found.distance, number_or_none(found.kappa))
        if (found := examined.get(name))
        else RaterProgress(name, judged[name], passed[name], None, None)
        for name in names
    )
    # The task's own outcome: one rater's level may stand alone, which the rule for two does not know.
    histogram = np.bincount(np.array([*outcome.agreed.values()], np.int64), minlength=LEVELS)
    return Progress(queries, raters, replace(agreement(outcome.ratings), histogram=histogram))


def number_or_none(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return None if isnan(value) else value
