"""SPR's stage 1: segments of a video and queries in one space (section 3.1), by two towers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.checks import require_heads, require_known
from moviola.models.layers import full_precision
from moviola.models.losses import CONTRASTIVE

__all__ = ["SegmentRetriever", "SegmentRetrieverConfig", "TowerSizes", "Towers"]


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
