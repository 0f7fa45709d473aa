"""Measures of public benchmarks as each counts them; where paper and code disagree both, by name.

Conventions
    Times are seconds. IoU is overlap over hull, 0 for a window that ends before it starts. What a name calls
    ``(paper)`` is what the paper says, ``(code)`` what the released evaluator does; a name without is both.
    Values are percent, not rounded; those of ExtremeWhenBench are fractions, as it prints them. A mean over
    no query is 0; of QV-M2, whose measures are by groups of queries, it is None. The order of an answer's
    windows is its ranking. Greedy matching: in order of rank, each window takes the free true window with the
    highest IoU, if that reaches the threshold; forced matching takes it whatever the IoU.

Measures
    :func:`extreme_when_bench`, :func:`timelens`: one span in the video that is named. [1, 5]
    :func:`moment_seeker`: five spans, several true ones. [2]
    :func:`qv_m2`: several true ones, by how many there are. [3]
    :func:`soccer_gmr`: several, one or none. [4]
    :func:`fig`: one span in a corpus, and whether the answer says that it found it. [6, 7]

References
    [1] ExtremeWhenBench, github.com/naver-ai/ExtremeWhenbench, 2026.
    [2] "MomentSeeker: A Task-Oriented Benchmark for Long-Video Moment Retrieval", 2025,
    github.com/yhy-2000/MomentSeeker.
    [3] QV-M2 and FlashMMR, "When One Moment Isn't Enough: Multi-Moment Retrieval", 2025,
    github.com/Zhuo-Cao/QV-M2.
    [4] "Retrieving Any Relevant Moments: Benchmark and Models for Generalized Moment Retrieval", 2026,
    github.com/dymm9977/generalized-moment-retrieval.
    [5] TimeLens and TimeLens2, github.com/TencentARC/TimeLens and github.com/MCG-NJU/TimeLens2.
    [6] VERIFIED, "A Video Corpus Moment Retrieval Benchmark for Fine-Grained Video Understanding", 2024,
    github.com/hlchen23/VERIFIED.
    [7] VideoSearch-R1, github.com/mlvlab/VideoSearch-R1, whose protocol is used on [6].
"""

from moviola.study.measures.public.answered import Answered, CorpusAnswered
from moviola.study.measures.public.named import extreme_when_bench, fig, moment_seeker, timelens
from moviola.study.measures.public.several import qv_m2, soccer_gmr

__all__ = [
    "Answered", "CorpusAnswered", "extreme_when_bench", "fig", "moment_seeker", "qv_m2", "soccer_gmr",
    "timelens",
]  # fmt: skip
