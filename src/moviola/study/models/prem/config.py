"""The settings of PREM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moviola.errors import InvalidValue
from moviola.study.models.checks import require_heads, require_known, require_one_space, require_positive
from moviola.study.models.relevant_content import POSITIVES

__all__ = ["PremConfig"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "pooling": ("modality", "mean", "max"),
    "positives": POSITIVES,
    "gate": ("rescaled", "literal", "none"),
}


@dataclass(frozen=True)
class PremConfig:
    """Everything that fixes a PREM; the defaults are the paper's for TVR (section 4.2).

    Those for DiDeMo are in :mod:`moviola.study.training.data_sets`.

    Attributes:
        visual_size, subtitle_size, query_size: features of a clip's pictures, of its subtitles, of a token.
            0 for one of the first two: no such stream (tables 2 and 6, "Text", "Image").
        hidden_size, feed_forward_size, heads, dropout: the transformers; ``hidden_size`` is D.
        max_clips, max_tokens: most clips of a video and tokens of a query.
        fusion_layers: self-attention + cross-attention layers of the localizer; 0 leaves fusion out.
        mask_silent: leave clips without subtitle (a zero vector) out of the subtitle stream, where there are
            pictures too; the paper says nothing of it.
        shared_encoder: read queries with the encoder of subtitles, where these are the only stream, or one of
            their own (:class:`~moviola.study.models.prem.PremApart`): both are texts, and texts that are
            alike have like vectors before anything is learned, and the localizer compares these. Not the
            paper's.
        aligned_start: start in the space that the features of pictures, lines and queries share
            (:func:`~moviola.study.models.layers.start_aligned`); the paper starts at random.
        pooling: how the retriever's tokens become one vector per stream: modality-specific (equation 5), or
            the mean or maximum of the tokens for both streams (table 3).
        positives: clips that the retriever learns from: the best of the moment and, weaker, the best outside
            it; the best of the moment; or the best of the whole video (table 2, "SR", "WR").
        weak_weight: λ of equation 8.
        video_to_query: whether the retriever also learns from L^q.
        temperature: t of equations 7 and 13.
        gate: how equation 9 is scaled; ``"none"`` passes the streams on untouched (table 6).
        shared_norm: boundaries compete over all candidate videos (equation 11), not inside the true one only
            (table 6).
        adversarial_weight: γ of equation 12; 0 leaves the task and its layers out (table 6).
        adversarial_iou: a span above this IoU with the moment is a positive.
        adversarial_predictions: best predictions of a negative video that are negatives.
        top_videos, top_moments: videos searched for a query, and moments that it is answered with at most.
        shortest_span, longest_span: ``shortest_span <= end - start < longest_span`` in clips, ``end`` being
            the last clip of the moment.
        nms: predictions of one video above this IoU with a better one are dropped.
    """

    visual_size: int = 4352
    subtitle_size: int = 768
    query_size: int = 768
    hidden_size: int = 384
    feed_forward_size: int = 1536
    heads: int = 4
    dropout: float = 0.1
    max_clips: int = 100
    max_tokens: int = 30
    fusion_layers: int = 2
    mask_silent: bool = True
    shared_encoder: bool = False
    aligned_start: bool = False
    pooling: Literal["modality", "mean", "max"] = "modality"
    positives: Literal["strong+weak", "strong", "video"] = "strong+weak"
    weak_weight: float = 0.5
    video_to_query: bool = True
    temperature: float = 0.01
    gate: Literal["rescaled", "literal", "none"] = "rescaled"
    shared_norm: bool = True
    adversarial_weight: float = 0.8
    adversarial_iou: float = 0.7
    adversarial_predictions: int = 5
    clip_seconds: float = 1.5
    top_videos: int = 10
    shortest_span: int = 0
    longest_span: int = 24
    nms: float = 0.7
    top_moments: int = 100

    def __post_init__(self) -> None:
        if not (self.visual_size or self.subtitle_size):
            raise InvalidValue("visual_size 0 and subtitle_size 0: give features of at least one stream")
        require_heads(self.hidden_size, self.heads)
        require_positive(top_videos=self.top_videos, top_moments=self.top_moments)
        if self.temperature <= 0:
            raise InvalidValue(f"temperature {self.temperature}: must be above 0")
        if not 0 <= self.shortest_span < self.longest_span:
            raise InvalidValue(
                f"shortest_span {self.shortest_span}, longest_span {self.longest_span}: need "
                "0 <= shortest_span < longest_span"
            )
        if self.shared_encoder and self.subtitle_size != self.query_size:
            raise InvalidValue(
                f"shared_encoder: subtitles of {self.subtitle_size} numbers, and tokens of "
                f"{self.query_size}; give features of one text encoder, or set model.shared_encoder=false"
            )
        if self.aligned_start:
            require_one_space(self.query_size, *self.stream_sizes)
        for name, known in _CHOICES.items():
            require_known(name, getattr(self, name), known)

    @property
    def stream_sizes(self) -> tuple[int, ...]:
        """Feature sizes of the streams that exist, pictures first; S of them."""
        return tuple(size for size in (self.visual_size, self.subtitle_size) if size)
