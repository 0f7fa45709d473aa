"""Clips and queries as unit vectors, one for each role that they can play; common to Reel and its stage 1.

A video of any length is encoded once, without a query, by dilated convolutions over its clips, without
positions; a query by attention over its tokens. They meet in dot products only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.models.checks import require_odd
from moviola.models.layers import (
    AttentionBlock,
    InputProjection,
    LearnedPositions,
    ModularQuery,
    initialise,
    self_attention_bias,
)

__all__ = ["RoleEncoder", "RoleEncoderConfig"]


@dataclass(frozen=True)
class RoleEncoderConfig:
    """Sizes.

    Attributes:
        visual_size, query_size: size of a clip's and of a token's feature.
        subtitle_size: size of a clip's subtitle feature; 0 without that stream.
        hidden_size, dropout: of everything inside.
        dilations: one convolution over time for each, in clips.
        kernel: width of the convolutions over time, in clips, odd.
        heads, max_tokens: attention heads over the query's tokens, and most of these.
    """

    visual_size: int = 768
    query_size: int = 768
    subtitle_size: int = 0
    hidden_size: int = 256
    dilations: tuple[int, ...] = (1, 2, 4)
    kernel: int = 5
    heads: int = 4
    max_tokens: int = 32
    dropout: float = 0.1

    def __post_init__(self) -> None:
        require_odd(self.kernel)


class _TimeBlock(nn.Module):
    """Pre-norm residual block: a depthwise convolution over time, then a feed-forward layer."""

    def __init__(self, size: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        padding = kernel // 2 * dilation
        self.over_time = nn.Conv1d(size, size, kernel, padding=padding, dilation=dilation, groups=size)
        self.widen = nn.Linear(size, 2 * size)
        self.narrow = nn.Linear(2 * size, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(N, L, h) and (N, L, 1) to (N, L, h); padding counts as silence, as if the video ended there."""
        mixed = self.over_time((self.norm(x) * mask).transpose(1, 2)).transpose(1, 2)
        return x + cast("Tensor", self.dropout(self.narrow(F.gelu(self.widen(mixed)))))


class RoleEncoder(nn.Module):
    """Encodes clips and queries; h is ``hidden_size``, R the number of roles."""

    def __init__(self, config: RoleEncoderConfig, roles: int) -> None:
        super().__init__()
        self.config = config
        size, drop = config.hidden_size, config.dropout
        self.visual_projection = InputProjection(config.visual_size, size, drop, relu=False)
        self.subtitle_projection = (
            InputProjection(config.subtitle_size, size, drop, relu=False) if config.subtitle_size else None
        )
        self.blocks = nn.ModuleList(_TimeBlock(size, config.kernel, d, drop) for d in config.dilations)
        self.clip_norm = nn.LayerNorm(size)
        self.clip_roles = nn.Linear(size, roles * size)
        self.query_projection = InputProjection(config.query_size, size, drop, relu=False)
        self.query_positions = LearnedPositions(config.max_tokens, size, drop)
        self.query_block = AttentionBlock(size, config.heads, drop)
        self.query_pool = ModularQuery(size, roles)
        self.query_roles = nn.ModuleList(nn.Linear(size, size) for _ in range(roles))
        initialise(self)

    def encode_clips(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None = None) -> Tensor:
        """Vectors (N, L, R, h) of length 1 of the clips of videos or windows.

        Args:
            visual: (N, L, visual_size) float32.
            mask: (N, L) float32, 1 for a clip.
            subtitles: (N, L, subtitle_size) float32, or None.
        """
        valid = mask[..., None]
        x = self.visual_projection(visual)
        if self.subtitle_projection is not None and subtitles is not None:
            x = x + self.subtitle_projection(subtitles)
        for block in self.blocks:
            x = block(x, valid)
        clips = self.clip_roles(self.clip_norm(x)).unflatten(-1, (len(self.query_roles), -1))
        return F.normalize(clips, dim=-1)

    def encode_query(self, query: Tensor, query_mask: Tensor) -> Tensor:
        """Vectors (Q, R, h) of length 1 of queries (Q, Lq, query_size) with their mask (Q, Lq)."""
        tokens = self.query_positions(self.query_projection(query))
        tokens = self.query_block(tokens, self_attention_bias(query_mask))
        pooled = self.query_pool(tokens, query_mask)
        roles = [role(pooled[:, place]) for place, role in enumerate(self.query_roles)]
        return F.normalize(torch.stack(roles, dim=1), dim=-1)
