"""Case studies: single queries with predictions and truths side by side (TVR-Ranking, Figure 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from measure_studies import figures
from measure_studies.reports import Study
from moviola.errors import InvalidValue, NotFound
from moviola.study.measures.evaluation import Joined
from moviola.study.measures.matching import FREE
from moviola.study.measures.measure_names import Measure
from moviola.study.measures.presets import DEFAULT
from moviola.study.measures.qrels_and_run import Qrels, Run

__all__ = ["MEASURE", "Case", "CaseRow", "case_study", "cases"]

MEASURE = "nDCG@10,IoU>=0.3"
"""The measure of TVR-Ranking's Figure 7."""

Seconds = tuple[float, float]


@dataclass(frozen=True)
class CaseRow:
    """A prediction, or an answer without a prediction.

    Attributes:
        video: its id.
        rank: of the prediction, from 1; None for a missed answer.
        found: the prediction in seconds; None for a missed answer.
        true: the matched or missed answer; None for a prediction without one.
        relevance: of that answer; 0 without.
    """

    video: str
    rank: int | None
    found: Seconds | None
    true: Seconds | None
    relevance: float


@dataclass(frozen=True)
class Case:
    """A query with its first predictions in order of rank, then the missed answers."""

    query: str
    rows: tuple[CaseRow, ...]


def cases(run: Run, qrels: Qrels, queries: Sequence[str], *, measure: str = MEASURE) -> list[Case]:
    """A run's predictions for some queries, matched with the judgements as in nDCG.

    Args:
        run: of one system.
        qrels: the judgements.
        queries: ids.
        measure: gives the depth and the overlap, such as ``nDCG@10,IoU>=0.3``.

    Raises:
        NotFound: a query is not judged.
        InvalidValue: the measure has no overlap.
    """
    parsed = Measure.parse(measure)
    if parsed.overlap is None:
        raise InvalidValue(f"measure {measure!r}: matching needs an overlap, for instance {MEASURE}")
    if missing := [name for name in queries if name not in qrels.query_ids]:
        raise NotFound(f"query {missing[0]!r}: not judged; give one of {', '.join(qrels.query_ids[:5])}, …")
    joined = Joined.of(run, qrels, parsed.k, DEFAULT)
    taken = joined.taken(parsed.overlap, parsed.strict)
    return [
        Case(name, (*_found(run, qrels, joined, taken, row), *_missed(qrels, joined, taken, row)))
        for name, row in ((name, qrels.query_ids.index(name)) for name in queries)
    ]


def _found(run: Run, qrels: Qrels, joined: Joined, taken: np.ndarray, query: int) -> list[CaseRow]:
    rows = []
    for place in np.flatnonzero(joined.query == query).tolist():
        at, truth = joined.run_rows[place], int(taken[place])
        there = truth != FREE
        rows.append(CaseRow(
            run.video_ids[run.video[at]], int(joined.rank[place]), (float(run.start[at]), float(run.end[at])),
            _span(qrels, joined.truth_rows[truth]) if there else None,
            float(joined.relevance[truth]) if there else 0.0,
        ))  # fmt: skip
    return rows


def _missed(qrels: Qrels, joined: Joined, taken: np.ndarray, query: int) -> list[CaseRow]:
    missed = np.setdiff1d(np.flatnonzero(joined.truth_query == query), taken)
    return [
        CaseRow(
            qrels.video_ids[qrels.video[joined.truth_rows[truth]]],
            None,
            None,
            _span(qrels, joined.truth_rows[truth]),
            float(joined.relevance[truth]),
        )
        for truth in missed.tolist()
    ]


def _span(qrels: Qrels, row: int) -> Seconds:
    return float(qrels.start[row]), float(qrels.end[row])


def case_study(
    run: Run, qrels: Qrels, queries: Sequence[str] = (), *, measure: str = MEASURE, shown: int = 3
) -> Study:
    """:func:`cases` as a table and a figure: a panel per query, a line per prediction or missed answer.

    Args:
        run, qrels, measure: see :func:`cases`, also for errors.
        queries: ids; by default the first judged ones.
        shown: number of these.
    """
    found = cases(run, qrels, queries or qrels.query_ids[:shown], measure=measure)
    nowhere = (None, None)
    rows = [
        (case.query, row.rank, row.video, *(row.found or nowhere), *(row.true or nowhere), row.relevance)
        for case in found
        for row in case.rows
    ]
    panels = {
        f"query {case.query}": [
            (f"{row.rank or 'missed'}  {row.video}", row.found, row.true, row.relevance) for row in case.rows
        ]
        for case in found
    }
    header = "query rank video start end answer_start answer_end relevance"
    return Study.of("cases", header, rows, figures.timelines(panels, f"Found and true, by {measure}"))
