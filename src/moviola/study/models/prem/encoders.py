"""Encoders of tokens and clips, and poolings, of PREM's retriever and localizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from moviola.study.models.checks import require_subtitles
from moviola.study.models.layers import InputProjection, LearnedPositions, ModularQuery
from moviola.study.models.prem.config import PremConfig

__all__ = ["POOLINGS", "QueryEncoder", "VideoEncoder", "modality_pooling", "stream_mask", "transformer"]


def stream_mask(config: PremConfig, mask: Tensor, subtitles: Tensor | None) -> Tensor:
    """Masks of clips per stream: (V, L) with 1 for a clip to (V, S, L) bool."""
    valid = (mask > 0)[:, None].repeat(1, len(config.stream_sizes), 1)
    if config.mask_silent and len(config.stream_sizes) > 1 and subtitles is not None:
        valid[:, 1] &= (subtitles != 0).any(-1)
    return valid


def _streams(config: PremConfig, visual: Tensor, subtitles: Tensor | None) -> list[Tensor]:
    """The features of the streams that the model has, pictures first."""
    if config.subtitle_size:
        require_subtitles(subtitles, config.subtitle_size)
    streams = (visual if config.visual_size else None, subtitles if config.subtitle_size else None)
    return [features for features in streams if features is not None]


def transformer(config: PremConfig) -> nn.TransformerEncoderLayer:
    """One layer of the vanilla transformer (norms after the sums, ReLU)."""
    return nn.TransformerEncoderLayer(
        config.hidden_size, config.heads, config.feed_forward_size, config.dropout, batch_first=True
    )


class QueryEncoder(nn.Module):
    """Tokens of a query in their context: (Q, Lq, dq), (Q, Lq) bool to (Q, Lq, D).

    With ``shared_encoder`` it has positions alone, and reads by the projection and layer of ``lines``.
    """

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.shared = config.shared_encoder
        if not self.shared:
            self.projection = InputProjection(config.query_size, config.hidden_size, config.dropout)
        self.positions = _positions(config.max_tokens, config)
        if not self.shared:
            self.layer = transformer(config)

    def forward(self, query: Tensor, mask: Tensor, lines: VideoEncoder) -> Tensor:
        projection, layer = (
            (lines.projections[0], lines.layer) if self.shared else (self.projection, self.layer)
        )
        return cast("Tensor", layer(self.positions(projection(query)), src_key_padding_mask=~mask))


class VideoEncoder(nn.Module):
    """Clips of all streams in one transformer, each seeing its own and the other stream, to (V, S, L, D)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.config = config
        self.projections = nn.ModuleList(
            InputProjection(size, config.hidden_size, config.dropout) for size in config.stream_sizes
        )
        self.positions = _positions(config.max_clips, config)
        self.modality = nn.Parameter(torch.randn(len(config.stream_sizes), 1, config.hidden_size) * 0.02)
        self.layer = transformer(config)

    def forward(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        """(V, L, dv), (V, L) with 1 for a clip, (V, L, ds) or None."""
        features = _streams(self.config, visual, subtitles)
        projected = [project(feature) for project, feature in zip(self.projections, features, strict=True)]
        clips = self.positions(torch.stack(projected, dim=1) + self.modality)
        valid = stream_mask(self.config, mask, subtitles)
        encoded = self.layer(clips.flatten(1, 2), src_key_padding_mask=~valid.flatten(1))
        return torch.unflatten(encoded, 1, valid.shape[1:])


def _positions(count: int, config: PremConfig) -> LearnedPositions:
    """Learned positions, small beside what they are added to, and no norm."""
    positions = LearnedPositions(count, config.hidden_size, config.dropout, norm=False)
    nn.init.normal_(positions.position_embeddings.weight, std=0.02)
    return positions


def modality_pooling(config: PremConfig) -> ModularQuery:
    """Equation 5: each stream weighs the tokens for itself; (Q, Lq, D), (Q, Lq) to (Q, S, D)."""
    return ModularQuery(config.hidden_size, len(config.stream_sizes))


class _Pooling(nn.Module):
    """A pooling of the tokens, (Q, Lq, D) and (Q, Lq) bool to (Q, D), for every stream: (Q, S, D)."""

    def __init__(self, config: PremConfig, pooled: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.streams, self.pooled = len(config.stream_sizes), pooled

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return self.pooled(tokens, mask)[:, None].expand(-1, self.streams, -1)


def _mean(tokens: Tensor, mask: Tensor) -> Tensor:
    return (tokens * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def _largest(tokens: Tensor, mask: Tensor) -> Tensor:
    return tokens.masked_fill(~mask[..., None], -torch.inf).amax(1)


POOLINGS: dict[str, Callable[[PremConfig], nn.Module]] = {
    "modality": modality_pooling,
    "mean": lambda config: _Pooling(config, _mean),
    "max": lambda config: _Pooling(config, _largest),
}
"""Poolings of a query's tokens into one vector per stream, by the name in the settings."""
