"""Judging moments by raters: candidates pooled from several systems, rated, agreed on, and exported.

It is the task of TVR-Ranking (section 3.2 and appendix B) on one's own library: for each query, moments of
several systems are shown one at a time in batches of 20; two raters give each a level from 0 to 4, four if
the two differ, and the rule of :mod:`moviola.study.datasets.building.consensus` decides.

``pooling`` collects the moments, ``task`` is the file that raters work on, ``schedule`` assigns batches,
``progress`` measures progress and agreement, ``exports`` writes files for other programs.
"""

from moviola.study.judging.exports import EXPORTS, Imported, export_splits, export_task, import_ratings
from moviola.study.judging.pooling import Pool, library_runs, make_task, pool
from moviola.study.judging.progress import Progress, progress_of
from moviola.study.judging.schedule import Answer, Outcome, outcome
from moviola.study.judging.task import Batch, BatchMoment, JudgingTask, TaskSettings

__all__ = [
    "EXPORTS", "Answer", "Batch", "BatchMoment", "Imported", "JudgingTask", "Outcome", "Pool", "Progress",
    "TaskSettings", "export_splits", "export_task", "import_ratings", "library_runs", "make_task", "outcome",
    "pool", "progress_of",
]  # fmt: skip
