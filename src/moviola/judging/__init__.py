"""Judging moments by people: candidates pooled from several systems, rated, agreed on, and written out.

It is the task of TVR-Ranking (section 3.2 and appendix B) on a library of one's own: for each query, moments
that several systems found are shown one at a time in batches of 20, each is given a level from 0 to 4 by two
raters, by four where the two differ, and the rule of :mod:`moviola.datasets.building.consensus` says what
they agree on.

``pooling`` finds what to judge, ``task`` is the file that raters work on, ``schedule`` says who judges what
next, ``progress`` how far they are and how well they agree, ``exports`` what others can read.
"""

from __future__ import annotations

from moviola.judging.exports import EXPORTS, export_splits, export_task, import_ratings
from moviola.judging.pooling import Pool, library_runs, make_task, pool
from moviola.judging.progress import Progress, progress_of
from moviola.judging.schedule import Answer, Outcome, outcome
from moviola.judging.task import Batch, BatchMoment, JudgingTask, TaskSettings

__all__ = [
    "EXPORTS", "Answer", "Batch", "BatchMoment", "JudgingTask", "Outcome", "Pool", "Progress", "TaskSettings",
    "export_splits", "export_task", "import_ratings", "library_runs", "make_task", "outcome", "pool",
    "progress_of",
]  # fmt: skip
