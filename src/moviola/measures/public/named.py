"""One video that is named, and spans in it: ExtremeWhenBench, TimeLens-Bench, MomentSeeker."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moviola.measures.public.answered import Answered, greedy, percent, share

__all__ = ["extreme_when_bench", "moment_seeker", "timelens"]

OVERLAPS = (0.3, 0.5, 0.7)
HIT = 0.3
"""MomentSeeker: a span is right when its IoU is above this."""
TOP = 5
"""Ranks that its mAP reads."""


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
