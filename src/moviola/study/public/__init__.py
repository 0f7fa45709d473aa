"""Public benchmarks from end to end: read the annotations, index the videos, answer, evaluate.

Users fetch the data themselves; nothing here downloads. :data:`BENCHMARKS` has a line per benchmark, and
:mod:`moviola.study.measures.public` its measures.

Examples:
    >>> from moviola.study.public import BENCHMARKS
    >>> sorted(BENCHMARKS)[:3]
    ['activitynet_fig', 'charades_fig', 'didemo_fig']
"""

from moviola.study.public.benchmarks import BENCHMARKS, Answers, PublicBenchmark, answer_questions
from moviola.study.public.run import PublicReport, require_sources, run_public

__all__ = [
    "BENCHMARKS", "Answers", "PublicBenchmark", "PublicReport", "answer_questions", "require_sources",
    "run_public",
]  # fmt: skip
