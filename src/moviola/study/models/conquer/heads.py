"""CONQUER's query-aware features of a query and a video, and the heads on them."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from moviola.study.models.conquer.config import ConquerConfig
from moviola.study.models.conquer.encoders import TransformerStack
from moviola.study.models.layers import InputProjection, masked_fill

__all__ = ["ContextualProjection", "MomentHead", "QueryAwareFeatures", "VideoHead"]


class QueryAwareFeatures(nn.Module):
    """Clips in the light of the query: (Q, V, L, D) and (Q, Lq, D) to (Q, V, L, 4 D)."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.similarity_weight = nn.Linear(3 * config.hidden_size, 1, bias=False)

    def forward(self, clips: Tensor, mask: Tensor, tokens: Tensor, query_mask: Tensor) -> Tensor:
        # w . [v; q; v * q] for every clip and token, without writing the triples out
        of_clip, of_token, of_both = self.similarity_weight.weight[0].chunk(3)
        similarity = (
            (clips @ of_clip)[..., None]
            + (tokens @ of_token)[:, None, None, :]
            + torch.einsum("qvld,qtd->qvlt", clips * of_both, tokens)
        )
        both_valid = mask[..., None] * query_mask[:, None, None, :]
        similarity = masked_fill(similarity, both_valid)
        query_of_clip = torch.einsum("qvlt,qtd->qvld", similarity.softmax(dim=-1), tokens)
        # one vector per video: its clips, each weighed by the token that it fits best
        weights = similarity.amax(dim=-1).softmax(dim=-1)
        video = torch.einsum("qvl,qvld->qvd", weights, clips)[:, :, None]
        return torch.cat([clips, query_of_clip, clips * query_of_clip, clips * video], dim=-1)


class ContextualProjection(nn.Module):
    """The paper's "FC + T": projection to the hidden size, then a Transformer: (N, L, in) to (N, L, D)."""

    def __init__(self, in_size: int, config: ConquerConfig) -> None:
        super().__init__()
        self.trans_linear = InputProjection(in_size, config.hidden_size, config.dropout)
        self.encoder = TransformerStack(config)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        return cast("Tensor", self.encoder(self.trans_linear(features), mask))


class ClipScore(nn.Module):
    """A logit for each clip from its neighbourhood: (N, L, D) to (N, L), -1e10 at padding."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.reference_padding = config.reference_padding
        self.clip_score_predictor = nn.Sequential(
            nn.Conv1d(
                config.hidden_size,
                config.clip_score_size,
                config.kernel,
                padding=config.kernel // 2,
                bias=False,
            ),
            nn.ReLU(),
            nn.Conv1d(config.clip_score_size, 1, 1, bias=False),
        )

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        inputs = features if self.reference_padding else features * mask[:, :, None]
        return masked_fill(self.clip_score_predictor(inputs.transpose(1, 2))[:, 0], mask)


class MomentHead(nn.Module):
    """Start and end logits; the end is modelled after the start."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.begin_feature_modeling = ContextualProjection(5 * config.hidden_size, config)
        self.end_feature_modeling = ContextualProjection(2 * config.hidden_size, config)
        self.begin_score_modeling = ClipScore(config)
        self.end_score_modeling = ClipScore(config)

    def forward(self, aware: Tensor, contextual: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """``aware`` (N, L, 4 D), ``contextual`` (N, L, D), ``mask`` (N, L) to two (N, L)."""
        begin = self.begin_feature_modeling(torch.cat([aware, contextual], dim=-1), mask)
        end = self.end_feature_modeling(torch.cat([contextual, begin], dim=-1), mask)
        return self.begin_score_modeling(begin, mask), self.end_score_modeling(end, mask)


class VideoHead(nn.Module):
    """A logit for each candidate video from its best clip in every feature: (N,)."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.reference_padding = config.reference_padding
        self.video_feature_modeling = ContextualProjection(5 * config.hidden_size, config)
        self.video_score_predictor = nn.Sequential(
            nn.Linear(config.hidden_size, config.video_score_size, bias=False),
            nn.ReLU(),
            nn.Linear(config.video_score_size, 1, bias=False),
        )

    def forward(self, aware: Tensor, contextual: Tensor, mask: Tensor) -> Tensor:
        features = self.video_feature_modeling(torch.cat([aware, contextual], dim=-1), mask)
        if not self.reference_padding:
            features = masked_fill(features, mask[:, :, None])
        return cast("Tensor", self.video_score_predictor(features.amax(dim=1))[:, 0])
