"""Public benchmarks from end to end: read the annotations, index the videos, answer, evaluate.

The data are fetched by whoever may have them; nothing here downloads. What a benchmark asks for is a line of
:data:`BENCHMARKS`, what its measures are stands in :mod:`moviola.measures.public`.
"""

from __future__ import annotations

from moviola.public.benchmark_answers import Answers, answer_questions
from moviola.public.benchmarks import BENCHMARKS, PublicBenchmark, measure_answers
from moviola.public.run import PublicReport, run_public

__all__ = [
    "BENCHMARKS", "Answers", "PublicBenchmark", "PublicReport", "answer_questions", "measure_answers",
    "run_public",
]  # fmt: skip
