"""Blocks that several models are built from: XML and ReLoCLNet wholly, CONQUER, PREM and Reel in part.

All blocks take batches first, (B, L, D), and masks that are 1 at valid positions and 0 at padding, float32.

Padding. By default neither content nor amount of padding changes anything at the valid positions: attention
never reaches a padded key and masked similarities are zeroed before a convolution. ``reference_padding=True``
reproduces the published releases instead: -10000 is added to the logits of masked keys (a row whose keys are
all masked then attends to everything), and the convolution sees the padding.

Silence. A clip without a subtitle has a row of zeros, which biases and positions would turn into a vector
that looks alike in every film. Models leave it out by default (``mask_silent``): no clip attends to it, and
what is made of it is a zero vector, which :func:`present` knows. ``mask_silent=False`` is the papers' way.

References: XML is Lei et al., TVR (ECCV 2020), section 4; ReLoCLNet is Zhang et al. (SIGIR 2021), section 4.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.study.models.checks import require_heads

__all__ = [
    "MASKED", "Attention", "AttentionBlock", "InputProjection", "LearnedPositions", "ModularQuery",
    "best_clip_score", "best_present", "clip_cosine", "cross_attention_bias", "full_precision", "initialise",
    "masked_fill", "present", "self_attention_bias", "span_logits", "start_aligned",
]  # fmt: skip

MASKED = -1e10
"""Value of a masked score or logit."""

_NEVER = -1e30  # still finite in bfloat16, and a row without any valid key stays free of NaN
_REFERENCE_BIAS = -1e4


def initialise(model: nn.Module, std: float = 0.02) -> None:
    """Draws the weights of linear layers and embeddings from N(0, std); norms start at identity, biases at 0.

    Convolutions keep PyTorch's own start, as the releases have it.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=std)
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


@torch.no_grad()
def start_aligned(model: nn.Module, size: int) -> None:
    """Lets a model start in the space that its features share: a control of what SPR inherits from it.

    All input projections begin as one orthogonal map of a feature's first ``size`` numbers (endpoints, which
    follow them, count nothing), and blocks add nothing to what they read, so that a query is near to the
    clips that it is near to in the features. Not the papers'; SPR's is ``identity_start``.
    """
    first: Tensor | None = None
    for module in model.modules():
        if isinstance(module, InputProjection):
            linear = cast("nn.Linear", module.net[1])
            if first is None:
                first = nn.init.orthogonal_(torch.empty(linear.out_features, size))
            nn.init.zeros_(linear.weight)[:, :size] = first
            nn.init.zeros_(linear.bias)
        elif isinstance(module, AttentionBlock):
            nn.init.zeros_(cast("nn.Linear", module.output["dense"]).weight)
        elif isinstance(module, nn.TransformerEncoderLayer):
            for last in (module.self_attn.out_proj, module.linear2):
                nn.init.zeros_(last.weight)
                nn.init.zeros_(last.bias)


def full_precision(beside: Tensor) -> torch.autocast:
    """Switches autocast off on the device of a tensor.

    Scores are compared by margins of a tenth or multiplied by 30 or 100; rounded cosines are a wrong order.
    """
    return torch.autocast(beside.device.type, enabled=False)


def masked_fill(values: Tensor, mask: Tensor) -> Tensor:
    """``values`` where ``mask`` is 1, :data:`MASKED` where it is 0, broadcast; float32 or wider."""
    return values.to(torch.promote_types(values.dtype, torch.float32)).masked_fill(mask == 0, MASKED)


def self_attention_bias(mask: Tensor, *, reference_padding: bool = False) -> Tensor:
    """(B, L) mask of the keys to the (B, 1, 1, L) float bias that :class:`Attention` adds to its logits."""
    lowest = _REFERENCE_BIAS if reference_padding else _NEVER
    return ((1 - mask.float()) * lowest)[:, None, None, :]


def cross_attention_bias(mask: Tensor, side_mask: Tensor, *, reference_padding: bool = False) -> Tensor:
    """Bias of a stream (B, L) that attends to another one (B, K), broadcastable to (B, 1, L, K).

    With ``reference_padding`` a padded row is masked against every key, so that it attends to all of them.
    """
    if not reference_padding:
        return self_attention_bias(side_mask)
    return ((1 - mask.float()[:, :, None] * side_mask.float()[:, None, :]) * _REFERENCE_BIAS)[:, None]


class InputProjection(nn.Module):
    """LayerNorm, dropout, linear map and, unless ``relu`` is off, ReLU: (..., in_size) to (..., out_size)."""

    def __init__(self, in_size: int, out_size: int, dropout: float = 0.1, *, relu: bool = True) -> None:
        super().__init__()
        self.relu = relu
        self.LayerNorm = nn.LayerNorm(in_size)
        self.net = nn.Sequential(nn.Dropout(dropout), nn.Linear(in_size, out_size))

    def forward(self, features: Tensor) -> Tensor:
        projected = cast("Tensor", self.net(self.LayerNorm(features)))
        return F.relu(projected) if self.relu else projected


class LearnedPositions(nn.Module):
    """Adds a learned embedding of each position, then LayerNorm (with ``norm``) and dropout: (..., L, D).

    Raises:
        InvalidValue: on a call with more than ``max_length`` positions.
    """

    def __init__(self, max_length: int, size: int, dropout: float = 0.1, *, norm: bool = True) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(max_length, size)
        self.LayerNorm = nn.LayerNorm(size) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        length, table = features.shape[-2], self.position_embeddings.weight
        if length > len(table):
            raise InvalidValue(
                f"sequence of {length} positions: this model has {len(table)}; pool or cut it to that many"
            )
        return cast("Tensor", self.dropout(self.LayerNorm(features + table[:length])))


class Attention(nn.Module):
    """Multi-head scaled dot-product attention, with dropout on its weights and no map after the heads.

    Raises:
        InvalidValue: ``size`` is no multiple of ``heads``.
    """

    def __init__(self, size: int, heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        require_heads(size, heads)
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)

    def forward(self, main: Tensor, side: Tensor, bias: Tensor) -> Tensor:
        """``main`` (B, L, D) attends to ``side`` (B, K, D), to (B, L, D); ``bias`` as (B, heads, L, K)."""
        query, key, value = (
            given.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for given in (self.query(main), self.key(side), self.value(side))
        )
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(query, key, value, bias.to(query.dtype), dropout)
        return attended.transpose(1, 2).flatten(2)


class AttentionBlock(nn.Module):
    """Self-attention, linear map, residual and LayerNorm: (B, L, D) to (B, L, D). It has no feed-forward."""

    def __init__(self, size: int, heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.self = Attention(size, heads, dropout)
        self.output = nn.ModuleDict({"dense": nn.Linear(size, size), "LayerNorm": nn.LayerNorm(size)})
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, bias: Tensor) -> Tensor:
        """``bias`` is what :func:`self_attention_bias` makes of the mask."""
        mixed = self.dropout(self.output["dense"](self.self(features, features, bias)))
        return cast("Tensor", self.output["LayerNorm"](mixed + features))


class ModularQuery(nn.Linear):
    """Pools the tokens of a query into one vector for each of ``streams`` streams (XML, section 4.1).

    Each stream has its own weights over the tokens: a linear map without bias, softmax over valid tokens.
    """

    def __init__(self, size: int, streams: int = 2) -> None:
        super().__init__(size, streams, bias=False)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]  # takes a mask as well
        """``tokens`` (B, L, D) and their ``mask`` (B, L) to (B, streams, D)."""
        return torch.einsum("bls,bld->bsd", self.token_weights(tokens, mask), tokens)

    def token_weights(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Token weights of each stream's vector, (B, L, streams), sum 1 over L; arguments as in the call."""
        return self._logits(tokens, mask).softmax(dim=1)

    def stream_weights(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Weight of each stream for a query, (B, streams), sum 1; arguments as in the call.

        A stream counts by how strongly the tokens ask for it: the softmax, over the streams, of the logsumexp
        of the logits that pool the tokens.
        """
        return self._logits(tokens, mask).logsumexp(dim=1).softmax(dim=-1)

    def _logits(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return masked_fill(super().forward(tokens), mask[:, :, None])


def clip_cosine(query: Tensor, clips: Tensor) -> Tensor:
    """Cosine of every query (Q, D) with every clip (V, L, D), as (Q, V, L); autocast does not lower it."""
    with full_precision(query):
        # dividing by the lengths spares a normalised copy of a whole corpus
        lengths: Tensor = torch.linalg.vector_norm(clips, dim=-1).clamp(min=1e-12)
        return torch.einsum("qd,vld->qvl", F.normalize(query, dim=-1).to(clips.dtype), clips) / lengths


def present(clips: Tensor, mask: Tensor) -> Tensor:
    """(..., L) bool, the clips (..., L, D) that are neither padding in the mask (..., L) nor zero vectors."""
    return (mask > 0) & (clips != 0).any(dim=-1)


def best_present(values: Tensor, there: Tensor) -> Tensor:
    """Largest value (..., L) of the clips that are there, broadcastable to (..., L); 0 where none is."""
    best = masked_fill(values, there).amax(dim=-1)
    return best.masked_fill(~there.any(dim=-1), 0)


def best_clip_score(query: Tensor, clips: Tensor, mask: Tensor) -> Tensor:
    """Largest cosine of a query (Q, D) with the clips of a video: (V, L, D), mask (V, L) to (Q, V).

    Clips that are not :func:`present` don't count; a video without any other scores 0.
    """
    return best_present(clip_cosine(query, clips), present(clips, mask))


def span_logits(
    similarity: Tensor, mask: Tensor, predictor: nn.Conv1d, *, reference_padding: bool = False
) -> Tensor:
    """Logits of the moment's start or end, (..., L), from the similarity of a query with each clip.

    Args:
        similarity: (..., L) float32, already the mean of the streams.
        mask: broadcastable to (..., L); where it is 0 the logit is :data:`MASKED`.
        predictor: a convolution of one channel to one channel that keeps the length.
        reference_padding: let the convolution see the similarities of padded clips, as the releases do.
    """
    curve = similarity if reference_padding else similarity * mask
    with full_precision(curve):
        logits = predictor(curve.reshape(-1, 1, curve.shape[-1]).to(predictor.weight.dtype))
    return masked_fill(logits.view(curve.shape), mask)
