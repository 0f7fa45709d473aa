"""One span somewhere in a corpus, and a verdict on it: Charades-FIG, DiDeMo-FIG, ActivityNet-FIG."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from moviola.measures.public.answered import Answered, CorpusAnswered, percent

__all__ = ["fig"]

OVERLAPS = (0.3, 0.5, 0.7)
DEPTHS = (1, 5, 10, 100)


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
