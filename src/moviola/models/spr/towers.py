"""The two towers of SPR: frames that see each other, and queries, in one space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.checks import require_heads

__all__ = ["TowerSizes", "Towers"]

# Added to the attention logit of a masked frame. Finite, so that a segment without any frame stays finite.
MASKED = -1e6


@dataclass(frozen=True)
class TowerSizes:
    """Sizes and start of the two towers.

    Attributes:
        hidden_size: size of a frame's feature, of a query's feature and of the embeddings.
        layers: transformer blocks over the frames.
        heads: attention heads; None: one for every 64 dimensions, at least 1.
        feed_forward_size: width of a block's feed-forward layer; None: four times ``hidden_size``.
        max_clips: most frames of a segment or window.
        identity_start: start as no change at all: both projections are the identity, and the blocks and the
            positions add nothing, so that a segment is the mean of its frames at length 1 and a query is
            itself. The features already lie in one space (CLIP), and a little training data improves on
            that space sooner than it finds it again from random projections. The paper starts at random.
    """

    hidden_size: int = 768
    layers: int = 6
    heads: int | None = None
    feed_forward_size: int | None = None
    max_clips: int = 32
    identity_start: bool = False

    def __post_init__(self) -> None:
        require_heads(self.hidden_size, self.head_count)

    @property
    def head_count(self) -> int:
        """The number of attention heads that the model has."""
        return max(1, self.hidden_size // 64) if self.heads is None else self.heads

    @property
    def inner_size(self) -> int:
        """The width of the feed-forward layers that the model has."""
        return 4 * self.hidden_size if self.feed_forward_size is None else self.feed_forward_size

    @property
    def residual_deviation(self) -> float:
        """Deviation at the start of the weights that write to the residual stream (CLIP's)."""
        return 0.0 if self.identity_start else (2 * self.layers * self.hidden_size) ** -0.5


class _Attention(nn.Module):
    """Multi-head self-attention with the parameter names and the start of CLIP's blocks."""

    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.heads = sizes.head_count
        self.in_proj_weight = nn.Parameter(torch.empty(3 * sizes.hidden_size, sizes.hidden_size))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * sizes.hidden_size))
        self.out_proj = nn.Linear(sizes.hidden_size, sizes.hidden_size)
        nn.init.normal_(self.in_proj_weight, std=sizes.hidden_size**-0.5)
        _start(self.out_proj, sizes.residual_deviation)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """(B, T, d) -> (B, T, d), with ``bias`` (B, 1, 1, T) added to the attention logits."""
        parts = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        query, key, value = parts.view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = bias.clamp(min=torch.finfo(query.dtype).min).to(query.dtype)  # half precision ends at -65504
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        return cast("Tensor", self.out_proj(mixed.transpose(1, 2).flatten(2)))


class _Block(nn.Module):
    """A pre-norm transformer block, with CLIP's activation x sigmoid(1.702 x)."""

    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.attn = _Attention(sizes)
        self.ln_1 = nn.LayerNorm(sizes.hidden_size)
        widen = nn.Linear(sizes.hidden_size, sizes.inner_size)
        narrow = nn.Linear(sizes.inner_size, sizes.hidden_size)
        self.mlp = nn.ModuleDict({"c_fc": widen, "c_proj": narrow})
        _start(widen, (2 * sizes.hidden_size) ** -0.5)
        _start(narrow, sizes.residual_deviation)
        self.ln_2 = nn.LayerNorm(sizes.hidden_size)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        attended = x + self.attn(self.ln_1(x), bias)
        hidden = self.mlp["c_fc"](self.ln_2(attended))
        return cast("Tensor", attended + self.mlp["c_proj"](hidden * torch.sigmoid(1.702 * hidden)))


def _start(layer: nn.Linear, deviation: float) -> None:
    nn.init.normal_(layer.weight, std=deviation)
    nn.init.zeros_(layer.bias)


class Towers(nn.Module):
    """The visual tower up to the frames' features, and the query tower, shared by both models of SPR."""

    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.frame_position_embeddings = nn.Embedding(sizes.max_clips, sizes.hidden_size)
        blocks = nn.ModuleList(_Block(sizes) for _ in range(sizes.layers))
        self.seq_transf = nn.ModuleDict({"resblocks": blocks})
        self.qfeat_proj = nn.Linear(sizes.hidden_size, sizes.hidden_size)
        self.temp_proj = nn.Linear(sizes.hidden_size, sizes.hidden_size)
        nn.init.normal_(self.frame_position_embeddings.weight, std=0.0 if sizes.identity_start else 0.01)
        if sizes.identity_start:
            for projection in (self.qfeat_proj, self.temp_proj):
                nn.init.eye_(projection.weight)
                nn.init.zeros_(projection.bias)

    def frame_features(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Frames that have seen each other, (N, T, d) float32, each of length 1.

        Args:
            frames: (N, T, d) float32.
            mask: (N, T), 1 or True for a frame and 0 for padding.

        Raises:
            InvalidValue: T is more than there are positions, or d is not ``hidden_size``.
        """
        positions, dim = self.frame_position_embeddings.weight.shape
        if frames.ndim != 3 or frames.shape[1] > positions or frames.shape[2] != dim:
            raise InvalidValue(
                f"frames of shape {tuple(frames.shape)}: this model wants (N, T, {dim}), T <= {positions}; "
                "cut the frames or build the model with a larger max_clips or another hidden_size"
            )
        bias = (1 - mask[:, None, None, :].to(frames.dtype)) * MASKED
        mixed = frames + self.frame_position_embeddings.weight[: frames.shape[1]]
        for block in cast("nn.ModuleList", self.seq_transf["resblocks"]):
            mixed = block(mixed, bias)
        return F.normalize(frames + mixed, dim=-1)

    def encode_queries(self, queries: Tensor) -> Tensor:
        """Embeddings (Q, d) of queries from their sentence features (Q, d)."""
        return cast("Tensor", self.qfeat_proj(queries))
