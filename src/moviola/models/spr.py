"""SPR: segment retrieval (stage 1) and the CLIP refiner (stage 3).

Paper: Zhang, Zhu and Sun, "A Flexible and Scalable Framework for Video Moment Search", sections 3.1 and 3.3.

Where the text and the published code differ, the code decides, since published weights need it: the
transformer's output is added to its input once more, each frame is brought to length 1 before the mean, and
a linear layer follows the pooling; the similarity is multiplied by a learned temperature (Eq. 1 omits it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.losses import CONTRASTIVE, both_directions

__all__ = ["SegmentRetriever", "SegmentRetrieverConfig"]

# Added to the attention logit of a masked frame. Finite, so that a segment without any frame stays finite.
MASKED = -1e6


@dataclass(frozen=True)
class TowerSizes:
    """Sizes and start of the two towers.

    Attributes:
        dim: size of a frame's feature, of a query's feature and of the embeddings.
        layers: transformer blocks over the frames.
        heads: attention heads; None: one for every 64 dimensions, at least 1.
        mlp_ratio: width of a block's feed-forward layer in units of ``dim``.
        positions: most frames of a segment or window.
        identity_start: start as no change at all: both projections are the identity, and the blocks and the
            positions add nothing, so that a segment is the mean of its frames at length 1 and a query is
            itself. The features already lie in one space (CLIP), and a little training data improves on
            that space sooner than it finds it again from random projections. The paper starts at random.
    """

    dim: int = 768
    layers: int = 6
    heads: int | None = None
    mlp_ratio: int = 4
    positions: int = 32
    identity_start: bool = False

    def __post_init__(self) -> None:
        if self.dim % self.head_count:
            raise InvalidValue(
                f"dim {self.dim} is not a multiple of {self.head_count} heads; give heads that divide it"
            )

    @property
    def head_count(self) -> int:
        """The attention heads that the model has."""
        return max(1, self.dim // 64) if self.heads is None else self.heads

    @property
    def residual_deviation(self) -> float:
        """Deviation at the start of the weights that write to the residual stream (CLIP's)."""
        return 0.0 if self.identity_start else (2 * self.layers * self.dim) ** -0.5


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
        if self.loss not in CONTRASTIVE:
            raise InvalidValue(f"loss {self.loss!r} is not known; give one of {', '.join(CONTRASTIVE)}")


class _Attention(nn.Module):
    """Multi-head self-attention with the parameter names and the start of CLIP's blocks."""

    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.heads = sizes.head_count
        self.in_proj_weight = nn.Parameter(torch.empty(3 * sizes.dim, sizes.dim))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * sizes.dim))
        self.out_proj = nn.Linear(sizes.dim, sizes.dim)
        nn.init.normal_(self.in_proj_weight, std=sizes.dim**-0.5)
        _start(self.out_proj, sizes.residual_deviation)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """(B, T, d) -> (B, T, d), with ``bias`` (B, 1, 1, T) added to the attention logits."""
        batch, length, dim = x.shape
        parts = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        query, key, value = parts.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        joined: Tensor = self.out_proj(mixed.transpose(1, 2).reshape(batch, length, dim))
        return joined


class _FeedForward(nn.Module):
    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.c_fc = nn.Linear(sizes.dim, sizes.mlp_ratio * sizes.dim)
        self.c_proj = nn.Linear(sizes.mlp_ratio * sizes.dim, sizes.dim)
        _start(self.c_fc, (2 * sizes.dim) ** -0.5)
        _start(self.c_proj, sizes.residual_deviation)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.c_fc(x)
        narrowed: Tensor = self.c_proj(hidden * torch.sigmoid(1.702 * hidden))
        return narrowed


class _Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.attn = _Attention(sizes)
        self.ln_1 = nn.LayerNorm(sizes.dim)
        self.mlp = _FeedForward(sizes)
        self.ln_2 = nn.LayerNorm(sizes.dim)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        seen = x + self.attn(self.ln_1(x), bias)
        out: Tensor = seen + self.mlp(self.ln_2(seen))
        return out


class _Transformer(nn.Module):
    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(_Block(sizes) for _ in range(sizes.layers))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        for block in self.resblocks:
            x = block(x, bias)
        return x


def _start(layer: nn.Linear, deviation: float) -> None:
    nn.init.normal_(layer.weight, std=deviation)
    nn.init.zeros_(layer.bias)


class _Towers(nn.Module):
    """The visual tower up to the frames' features, and the query tower: what both models of SPR share."""

    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.frame_position_embeddings = nn.Embedding(sizes.positions, sizes.dim)
        self.seq_transf = _Transformer(sizes)
        self.qfeat_proj = nn.Linear(sizes.dim, sizes.dim)
        self.temp_proj = nn.Linear(sizes.dim, sizes.dim)
        nn.init.normal_(self.frame_position_embeddings.weight, std=0.0 if sizes.identity_start else 0.01)
        if sizes.identity_start:
            for projection in (self.qfeat_proj, self.temp_proj):
                nn.init.eye_(projection.weight)
                nn.init.zeros_(projection.bias)

    def frame_features(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Frames that have seen each other: (N, T, d), of length 1 each; (N, T, d) and (N, T) are given."""
        positions, dim = self.frame_position_embeddings.weight.shape
        if frames.ndim != 3 or frames.shape[1] > positions or frames.shape[2] != dim:
            raise InvalidValue(
                f"frames of shape {tuple(frames.shape)}: this model wants (N, T, {dim}), T <= {positions}; "
                "cut the frames or build the model with more positions or another dim"
            )
        bias = (1 - mask[:, None, None, :].to(frames.dtype)) * MASKED
        mixed = self.seq_transf(frames + self.frame_position_embeddings.weight[: frames.shape[1]], bias)
        return F.normalize(frames + mixed, dim=-1)

    def encode_queries(self, queries: Tensor) -> Tensor:
        """Embeddings (Q, d) of queries from their sentence features (Q, d)."""
        embeddings: Tensor = self.qfeat_proj(queries)
        return embeddings


class SegmentRetriever(_Towers):
    """Segments and queries in one space (SPR, section 3.1): cosine says how well they match.

    ``config.dim`` is d below. Embeddings are not normalised.
    """

    def __init__(self, config: SegmentRetrieverConfig) -> None:
        super().__init__(config)
        self.config = config
        self.pt_clip_logit_scale = nn.Parameter(torch.tensor(config.logit_scale))

    def encode_segments(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Embeddings of segments.

        Args:
            frames: (S, T, d) float32, frame features; what masked frames hold does not matter if finite.
            mask: (S, T), 1 or True for a frame and 0 for padding.

        Returns:
            (S, d) float32. A segment without any frame gives the projection's bias.

        Raises:
            InvalidValue: T is more than ``config.positions``, or d is not ``config.dim``.
        """
        features = self.frame_features(frames, mask)
        valid = mask.to(features.dtype).unsqueeze(-1)
        mean = (features * valid).sum(dim=1) / valid.sum(dim=1).clamp(min=1.0)
        embeddings: Tensor = self.temp_proj(mean)
        return embeddings

    def similarity(self, queries: Tensor, segments: Tensor) -> Tensor:
        """Logits (Q, S) between query embeddings (Q, d) and segment embeddings (S, d): scaled cosine."""
        cosine = F.normalize(queries, dim=-1) @ F.normalize(segments, dim=-1).T
        return self.pt_clip_logit_scale.exp() * cosine

    def loss(self, frames: Tensor, mask: Tensor, queries: Tensor, relevance: Tensor) -> dict[str, Tensor]:
        """The contrastive loss of a batch in both directions (Eq. 1); the total is the sum of the values.

        Args:
            frames: (S, T, d) float32, frame features.
            mask: (S, T), 1 for a frame and 0 for padding.
            queries: (Q, d) float32, sentence features.
            relevance: (Q, S) bool or float, above 0 where the segment answers the query. The graded losses
                read the value, the others only whether it is above 0.
        """
        logits = self.similarity(self.encode_queries(queries), self.encode_segments(frames, mask))
        to_segment, to_query = both_directions(CONTRASTIVE[self.config.loss], logits, relevance)
        return {"query_to_segment": to_segment / 2, "segment_to_query": to_query / 2}
