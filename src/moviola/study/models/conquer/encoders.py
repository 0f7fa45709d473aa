"""CONQUER's encoders: clips of both streams together, tokens of a query, and how much each stream counts."""

from __future__ import annotations

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.study.models.conquer.config import ConquerConfig
from moviola.study.models.layers import AttentionBlock, InputProjection, self_attention_bias

__all__ = ["FusionWeights", "QueryEncoder", "TransformerStack", "VideoEncoder"]

_PICTURES, _WORDS = 0, 1
"""Token types of the two kinds of input; subtitles and queries are words."""


class TransformerLayer(nn.Module):
    """BERT's layer, normalised after each half, with exact GELU: (N, L, D) to (N, L, D)."""

    def __init__(self, size: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.attention = AttentionBlock(size, heads, dropout)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(size, inner)})
        self.output = nn.ModuleDict({"dense": nn.Linear(inner, size), "LayerNorm": nn.LayerNorm(size)})
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, bias: Tensor) -> Tensor:
        attended = self.attention(features, bias)
        fed = self.output["dense"](F.gelu(self.intermediate["dense"](attended)))
        return cast("Tensor", self.output["LayerNorm"](self.dropout(fed) + attended))


class TransformerStack(nn.Module):
    """The configured number of Transformer layers: (N, L, D) to (N, L, D)."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.reference_padding = config.reference_padding
        self.layer = nn.ModuleList(
            TransformerLayer(config.hidden_size, config.heads, config.feed_forward_size, config.dropout)
            for _ in range(config.layers)
        )

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        bias = self_attention_bias(mask, reference_padding=self.reference_padding)
        for layer in self.layer:
            features = layer(features, bias)
        return features


class Embeddings(nn.Module):
    """Adds to projected features their position and their type, then LayerNorm and dropout."""

    def __init__(self, positions: int, config: ConquerConfig) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(positions, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(2, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, features: Tensor, kind: int) -> Tensor:
        placed = features + self.position_embeddings.weight[: features.shape[1]]
        return cast("Tensor", self.dropout(self.LayerNorm(placed + self.token_type_embeddings.weight[kind])))


def _transformer(positions: int, config: ConquerConfig) -> nn.ModuleDict:
    return nn.ModuleDict({"embeddings": Embeddings(positions, config), "encoder": TransformerStack(config)})


class VideoEncoder(nn.Module):
    """Pictures and subtitles of a video as one sequence: (N, L, dv) and (N, L, ds) to two (N, L, D).

    With ``mask_silent`` a clip without a subtitle is a zero vector in the second, and nothing attends to it.
    """

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.mask_silent = config.mask_silent
        self.img_linear = InputProjection(config.visual_size, config.hidden_size, config.dropout)
        if config.subtitle_size:
            self.text_linear = InputProjection(config.subtitle_size, config.hidden_size, config.dropout)
        self.transformer = _transformer(config.max_clips, config)

    def forward(self, visual: Tensor, subtitles: Tensor | None, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        embed, encode = self.transformer["embeddings"], self.transformer["encoder"]
        pictures = embed(self.img_linear(visual), _PICTURES)
        if subtitles is None:
            return encode(pictures, mask), None
        words = embed(self.text_linear(subtitles), _WORDS)
        if not self.mask_silent:
            encoded = encode(torch.cat([pictures, words], dim=1), torch.cat([mask, mask], dim=1))
            return cast("tuple[Tensor, Tensor]", encoded.chunk(2, dim=1))
        # Most clips of a film say nothing: only the others are encoded, and then put back in their places.
        said = mask * (subtitles != 0).any(dim=-1)
        clips = said.argsort(dim=1, descending=True, stable=True)[:, : int(said.sum(dim=1).max())]
        places, said = clips[..., None].expand(-1, -1, words.shape[-1]), said.gather(1, clips)
        together = torch.cat([pictures, words.gather(1, places)], dim=1)
        encoded = encode(together, torch.cat([mask, said], dim=1))
        pictures, heard = encoded.split([mask.shape[1], said.shape[1]], dim=1)
        return pictures, torch.zeros_like(words).scatter(1, places, heard * said[..., None])


class QueryEncoder(nn.Module):
    """Tokens of a query in their context: (N, Lq, dq) to (N, Lq, D)."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.linear = InputProjection(config.query_size, config.hidden_size, config.dropout)
        self.transformer = _transformer(config.max_tokens, config)

    def forward(self, query: Tensor, mask: Tensor) -> Tensor:
        tokens = self.transformer["embeddings"](self.linear(query), _WORDS)
        return cast("Tensor", self.transformer["encoder"](tokens, mask))


class NetVLAD(nn.Module):
    """Pools tokens by their differences from K learned centres: (N, Lq, D) to (N, D * K), L2-normalised."""

    def __init__(self, size: int, clusters: int) -> None:
        super().__init__()
        scale = 1 / math.sqrt(size)
        self.clusters = nn.Parameter(scale * torch.randn(size, clusters))
        self.clusters2 = nn.Parameter(scale * torch.randn(1, size, clusters))
        self.LayerNorm = nn.LayerNorm(clusters)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        assignment = self.LayerNorm(tokens @ self.clusters).softmax(dim=-1) * mask[:, :, None]
        differences = (
            tokens.transpose(1, 2) @ assignment - assignment.sum(dim=1, keepdim=True) * self.clusters2
        )
        return F.normalize(F.normalize(differences, dim=1).flatten(1), dim=-1)


class FusionWeights(nn.Module):
    """Weights of pictures and subtitles for a query: (N, Lq, D) to (N, 2), sum 1."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.reference_padding = config.reference_padding
        self.text_pooling = NetVLAD(config.hidden_size, config.clusters)
        self.dropout = nn.Dropout(config.dropout)
        self.moe_fc_txt = nn.Linear(config.hidden_size * config.clusters, 2, bias=False)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        pooled = self.text_pooling(tokens, torch.ones_like(mask) if self.reference_padding else mask)
        return cast("Tensor", self.moe_fc_txt(self.dropout(pooled)).softmax(dim=-1))
