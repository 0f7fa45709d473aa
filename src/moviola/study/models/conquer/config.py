"""The settings of CONQUER, and its similarity measures: how a moment's score follows from the logits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.models.checks import require_known, require_odd, require_positive

__all__ = ["SIMILARITIES", "ConquerConfig", "Similarity"]


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


@dataclass(frozen=True)
class ConquerConfig:
    """Sizes, loss weights and decoding; the defaults are the paper's and the release's.

    Attributes:
        visual_size: size of a clip's visual features (ResNet and SlowFast, each L2-normalised, in a row).
        subtitle_size, query_size: of a clip's subtitle features (0: pictures alone), and of a token's.
        feed_forward_size: inner size of each Transformer layer.
        layers: Transformer layers in each place where the paper has one.
        max_clips, max_tokens: most clips of a video and tokens of a query.
        clusters: NetVLAD clusters that pool the query for the fusion of the streams.
        clip_score_size: channels between the two convolutions of the start and end heads.
        video_score_size: inner size of the video head, which only some similarities have.
        kernel: clips that the first of these convolutions sees; odd.
        similarity: a key of :data:`~moviola.study.models.conquer.config.SIMILARITIES`.
        span_weight, video_weight: of the losses of start and end, and of the video head.
        candidates: videos that the first stage hands over for a query.
        top_videos: videos of these whose moments are ranked, chosen by the similarity's video score.
        top_moments: moments that are returned for a query.
        shortest_span, longest_span: ``shortest_span <= end - start < longest_span`` in clips, ``end`` being
            the last clip of the moment.
        nms: temporal IoU above which the worse of two moments of a video is dropped; None keeps all.
        moments_before_nms: moments that go into that suppression.
        reference_padding: treat padding as the release does.
        mask_silent: leave clips without a subtitle out of the stream of subtitles; the release does not.
        initial_std: standard deviation of initial weights.
    """

    visual_size: int = 4352
    subtitle_size: int = 768
    query_size: int = 768
    hidden_size: int = 768
    heads: int = 12
    feed_forward_size: int = 3072
    layers: int = 1
    max_clips: int = 100
    max_tokens: int = 30
    clusters: int = 32
    clip_score_size: int = 128
    video_score_size: int = 128
    kernel: int = 5
    dropout: float = 0.1
    similarity: str = "general"
    span_weight: float = 0.01
    video_weight: float = 0.05
    clip_seconds: float = 1.5
    candidates: int = 100
    top_videos: int = 100
    top_moments: int = 40
    shortest_span: int = 0
    longest_span: int = 24
    nms: float | None = None
    moments_before_nms: int = 200
    reference_padding: bool = False
    mask_silent: bool = True
    initial_std: float = 0.02

    def __post_init__(self) -> None:
        require_known("similarity", self.similarity, SIMILARITIES)
        require_odd(self.kernel)
        require_positive(candidates=self.candidates, top_videos=self.top_videos, top_moments=self.top_moments)
