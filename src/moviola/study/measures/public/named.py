"""One span, in a video that is named (ExtremeWhenBench, TimeLens, MomentSeeker) or in a corpus (*-FIG)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from moviola.study.measures.public.answered import Answered, CorpusAnswered, greedy, percent, share

__all__ = ["extreme_when_bench", "fig", "moment_seeker", "timelens"]


OVERLAPS = (0.3, 0.5, 0.7)
HIT = 0.3
"""MomentSeeker: a span is right when its IoU is above this."""
TOP = 5
"""Ranks that its mAP reads."""
DEPTHS = (1, 5, 10, 100)


def extreme_when_bench(answers: Sequence[Answered]) -> dict[str, float]:
    """mIoU and R@θ of the first span, IoU >= θ, as fractions of all questions; nothing answered counts 0.

    A span that ends before it starts is turned round. ``no span``: share of questions without one.
    """
    turned = [np.sort(one.windows[:, :2], axis=1) for one in answers]
    first = np.array([Answered(one.truths, spans).first for one, spans in zip(answers, turned, strict=True)])
    found = {"mIoU": share(first)}
    found.update({f"R@{theta}": share(first >= theta) for theta in OVERLAPS})
    return found | {"no span": share([not len(one.windows) for one in answers])}


def timelens(answers: Sequence[Answered]) -> dict[str, float]:
    """mIoU and R1@θ of the first span, IoU >= θ; one that ends before it starts counts 0.

    The evaluator of TimeLens counts an answer without a span as 0 (questions that are not in its file vanish:
    leave them out of ``answers``); that of TimeLens2 leaves it out of mIoU, but not of R1.
    """
    first = np.array([one.first for one in answers])
    some = np.array([len(one.windows) > 0 for one in answers], np.bool_)
    found = {"mIoU": percent(first), "mIoU (TimeLens2)": percent(first[some])}
    return found | {f"R1@{theta}": percent(first >= theta) for theta in OVERLAPS}


def moment_seeker(answers: Sequence[Answered]) -> dict[str, float]:
    """R@1 and mAP@5.

    R@1: the first span has an IoU above .3 with any truth.

    mAP@5 (paper): of the first five, a hit has an IoU above .3 with a truth that is still free; the mean of
    the precisions at the hits, 0 without one. mAP@5 (code): the truths are their hull, and the value of a
    question is the sum over ranks p of IoU_p times the mean of IoU_1 … IoU_p, not normalised, so that it goes
    up to 5 (here 500 %).
    """
    return {
        "R@1": percent([one.first > HIT for one in answers]),
        "mAP@5 (paper)": percent([_paper_precision(one) for one in answers]),
        "mAP@5 (code)": percent([_code_precision(one) for one in answers]),
    }


def _paper_precision(one: Answered) -> float:
    iou = one.iou[:TOP]
    above = np.nextafter(HIT, 1.0)
    hits = [len(greedy(iou[: rank + 1], above)) for rank in range(len(iou))]
    precisions = [n / rank for rank, n in enumerate(hits, start=1) if n > (hits[rank - 2] if rank > 1 else 0)]
    return float(np.mean(precisions)) if precisions else 0.0


def _code_precision(one: Answered) -> float:
    if not len(one.truths):
        return 0.0
    hull = np.array([[one.truths[:, 0].min(), one.truths[:, 1].max()]])
    iou = Answered(hull, one.windows[:TOP]).iou[:, 0]
    return float((iou * np.cumsum(iou) / np.arange(1, len(iou) + 1)).sum())


def fig(answers: Sequence[CorpusAnswered]) -> dict[str, float]:
    """VideoSearch-R1's protocol: VR R@k, VCMR θ/R@1 at IoU >= θ, and how often the verdict is right.

    A video's rank is one more than how many score strictly higher; a video that was not found has none. θ/R@1
    counts a span, cut at the duration, when its video is right and the verdict is "matched"; ``any verdict``
    counts it whatever the verdict. ``verdict``: of questions with a verdict, the share where it says
    "matched" just when the right video is first. Where no question has a verdict, θ/R@1 and ``verdict`` are
    left out. The protocol gives ``verdict`` for two turns, where the second may search again; with one turn
    they are the same.
    """
    ranks = np.array([_rank(one) for one in answers])
    iou = np.array([_iou(one) for one in answers])
    said = np.array([one.matched is True for one in answers], np.bool_)
    judged = [
        one.matched == (rank == 1)
        for one, rank in zip(answers, ranks, strict=True)
        if one.matched is not None
    ]
    found = {f"VR R@{k}": percent(ranks <= k) for k in DEPTHS}
    found |= {f"{theta}/R@1 (any verdict)": percent(iou >= theta) for theta in OVERLAPS}
    if judged:
        found |= {f"{theta}/R@1": percent((iou >= theta) & said) for theta in OVERLAPS}
        found["verdict"] = percent(judged)
    return found


def _rank(one: CorpusAnswered) -> float:
    own = one.scores.get(one.video_id)
    return math.inf if own is None else 1 + sum(score > own for score in one.scores.values())


def _iou(one: CorpusAnswered) -> float:
    if one.window is None or one.judged != one.video_id:
        return 0.0
    start, end = (min(time, one.duration) for time in one.window)
    return Answered.of([one.truth], [(start, end, 0.0)]).first
