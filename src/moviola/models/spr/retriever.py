"""SPR's stage 1: segments of a video and queries in one space (section 3.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.models.checks import require_known
from moviola.models.layers import full_precision
from moviola.models.losses import CONTRASTIVE
from moviola.models.spr.towers import Towers, TowerSizes

__all__ = ["SegmentRetriever", "SegmentRetrieverConfig"]


@dataclass(frozen=True)
class SegmentRetrieverConfig(TowerSizes):
    """Settings of the segment retrieval model, besides the towers' sizes.

    Attributes:
        logit_scale: the temperature's starting value, as a logarithm; CLIP's trained one is ln 100.
        loss: a name in :data:`moviola.models.losses.CONTRASTIVE`.
    """

    logit_scale: float = math.log(100.0)
    loss: str = "mil-nce"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known("loss", self.loss, CONTRASTIVE)


class SegmentRetriever(Towers):
    """Segments and queries in one space (SPR, section 3.1): cosine says how well they match.

    ``config.hidden_size`` is d below. Embeddings are not normalised.
    """

    def __init__(self, config: SegmentRetrieverConfig) -> None:
        super().__init__(config)
        self.config = config
        self.pt_clip_logit_scale = nn.Parameter(torch.tensor(config.logit_scale))

    def encode_segments(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Embeddings (S, d) float32 of segments; one without any frame gives the projection's bias.

        Args:
            frames: (S, T, d) float32, frame features; what masked frames hold does not matter if finite.
            mask: (S, T), 1 or True for a frame and 0 for padding.

        Raises:
            InvalidValue: T is more than ``config.max_clips``, or d is not ``config.hidden_size``.
        """
        features = self.frame_features(frames, mask)
        valid = mask.to(features.dtype).unsqueeze(-1)
        mean = (features * valid).sum(dim=1) / valid.sum(dim=1).clamp(min=1.0)
        return cast("Tensor", self.temp_proj(mean))

    def similarity(self, queries: Tensor, segments: Tensor) -> Tensor:
        """Logits (Q, S) between query embeddings (Q, d) and segment embeddings (S, d): scaled cosine."""
        with full_precision(queries):
            cosine = F.normalize(queries.float(), dim=-1) @ F.normalize(segments.float(), dim=-1).T
            return self.pt_clip_logit_scale.exp() * cosine

    def loss(self, frames: Tensor, mask: Tensor, queries: Tensor, relevance: Tensor) -> dict[str, Tensor]:
        """The contrastive loss of a batch in both directions (Eq. 1); the total is the sum of the values.

        Args:
            frames, mask: as of :meth:`encode_segments`.
            queries: (Q, d) float32, sentence features.
            relevance: (Q, S) bool or float, above 0 where the segment answers the query. The graded losses
                read the value, the others only whether it is above 0.
        """
        logits = self.similarity(self.encode_queries(queries), self.encode_segments(frames, mask))
        loss = CONTRASTIVE[self.config.loss]
        return {
            "query_to_segment": loss(logits, relevance) / 2,
            "segment_to_query": loss(logits.T, relevance.T) / 2,
        }
