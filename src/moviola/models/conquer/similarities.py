"""CONQUER's similarity measures: how the score of a moment follows from the model's logits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from moviola.errors import InvalidValue

__all__ = ["SIMILARITIES", "Similarity"]


@dataclass(frozen=True)
class Similarity:
    """Score of a moment from the model's logits of start, end and video.

    Attributes:
        video_head: whether the model has, and trains, a head that scores videos.
        clips: logits (Q, V, L) of starts or ends to what they add.
        videos: first-stage scores (Q, V), -inf for no candidate, and video logits (Q, V) to what a video adds
            to all its moments, (Q, V); None where it adds nothing and is as good as its best moment.
        ranks_videos: whether the model has a say in the order of its candidates as videos; else that is the
            first stage's.
        finish: the sum to the score that is given back; increasing (``exp`` where the sum is of logarithms).
    """

    video_head: bool
    clips: Callable[[Tensor], Tensor]
    videos: Callable[[Tensor, Tensor | None], Tensor] | None
    ranks_videos: bool
    finish: Callable[[Tensor], Tensor]


def _log_first_stage(first_stage: Tensor, _: Tensor | None) -> Tensor:
    lowest = first_stage.masked_fill(first_stage == -math.inf, 0).min().item()
    if not lowest >= 0:
        raise InvalidValue(
            f"first-stage score {lowest:g}: the general similarity multiplies by it, so it must not be "
            "negative; give exp(a * score) for an a > 0, or use another similarity"
        )
    return first_stage.clamp(min=0).log()


def _log_video_head(first_stage: Tensor, video: Tensor | None) -> Tensor:
    assert video is not None  # a model with this similarity has the head
    return _log_softmax(video.masked_fill(first_stage == -math.inf, -math.inf))


def _log_softmax(logits: Tensor) -> Tensor:
    return logits.log_softmax(dim=-1)


SIMILARITIES: dict[str, Similarity] = {
    "general": Similarity(False, _log_softmax, _log_first_stage, False, torch.exp),
    "exclusive": Similarity(True, _log_softmax, _log_video_head, True, torch.exp),
    "disjoint": Similarity(False, lambda logits: logits, None, True, lambda score: score),
}
"""The paper's similarity measures by name."""
