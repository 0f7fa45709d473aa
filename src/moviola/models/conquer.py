"""CONQUER: looks for the moment inside candidate videos that another retriever found.

Reference: Hou, Ngo and Chan, "CONQUER: Contextual Query-aware Ranking for Video Corpus Moment Retrieval"
(ACM MM 2021), as TVR-Ranking (appendix C) adapts it to ranked retrieval: the loss of a pair is weighted by
the similarity of query and caption.

How it works: both streams of a video are encoded together, without the query
(:meth:`Conquer.encode_context`), and are then, for each query, fused with weights that the query sets,
compared with the query's tokens and modelled once more in time, until each clip has a logit for the moment's
start and one for its end (:meth:`Conquer.match`).

The similarity measure says how a moment's score follows from these logits (:data:`SIMILARITIES`):

======================  ===========================================================================
``general``             first-stage score of the video x softmax of start and end within the video
``exclusive``           the same with the softmax, over the candidates, of a video head of the model
``disjoint``            start logit + end logit, over all candidates at once
======================  ===========================================================================

Departures. The release pads every video to ``max_clips`` and every query to ``max_tokens``, pools the query
and takes the video head's maximum over padding as well, and lets convolutions see the padding;
``reference_padding=True`` does the same. By default padding is left out everywhere, so that any length up to
these maxima may be given and more padding changes nothing. Candidates come from any retriever, not only from
the one whose rankings the release carries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.batches import CandidateBatch, Ranked
from moviola.models.layers import (
    AttentionBlock,
    InputProjection,
    initialise,
    masked_fill,
    self_attention_bias,
)
from moviola.models.spans import LABELS, SUM, corpus_spans, span_band, top_scores

__all__ = [
    "SIMILARITIES",
    "Conquer",
    "ConquerConfig",
    "Context",
    "Queries",
    "Scores",
    "Similarity",
]

_PICTURES, _WORDS = 0, 1
"""Token types of the two kinds of input; subtitles and queries are words."""


@dataclass(frozen=True)
class ConquerConfig:
    """Sizes, loss weights and decoding; the defaults are the paper's and the release's.

    Attributes:
        visual_size: size of a clip's visual features (ResNet and SlowFast, each L2-normalised, in a row).
        subtitle_size: size of a clip's subtitle features; 0 for a model that has pictures alone.
        query_size: size of a query token's features.
        feed_forward_size: inner size of each Transformer layer.
        layers: Transformer layers in each place where the paper has one.
        max_clips: most clips of a video.
        max_tokens: most tokens of a query.
        clusters: NetVLAD clusters that pool the query for the fusion of the streams.
        clip_score_size: channels between the two convolutions of the start and end heads.
        video_score_size: inner size of the video head, which only some similarities have.
        kernel: clips that the first of these convolutions sees.
        similarity: a key of :data:`SIMILARITIES`.
        span_weight: weight of the start and end losses.
        video_weight: weight of the video head's loss.
        clip_seconds: length of a clip.
        candidates: videos that the first stage hands over for a query.
        top_videos: videos of these whose moments are ranked, chosen by the similarity's video score.
        top_moments: moments that are returned for a query.
        shortest_span, longest_span: ``shortest_span <= end - start < longest_span`` in clips, ``end`` being
            the last clip of the moment.
        nms: temporal IoU above which the worse of two moments of a video is dropped; None keeps all.
        moments_before_nms: moments that go into that suppression.
        reference_padding: treat padding as the release does.
        initial_std: standard deviation of initial weights.
    """

    visual_size: int = 4352
    subtitle_size: int = 768
    query_size: int = 768
    hidden_size: int = 768
    heads: int = 12
    feed_forward_size: int = 3072
    layers: int = 1
    max_clips: int = 100
    max_tokens: int = 30
    clusters: int = 32
    clip_score_size: int = 128
    video_score_size: int = 128
    kernel: int = 5
    dropout: float = 0.1
    similarity: str = "general"
    span_weight: float = 0.01
    video_weight: float = 0.05
    clip_seconds: float = 1.5
    candidates: int = 100
    top_videos: int = 100
    top_moments: int = 40
    shortest_span: int = 0
    longest_span: int = 24
    nms: float | None = None
    moments_before_nms: int = 200
    reference_padding: bool = False
    initial_std: float = 0.02


@dataclass(frozen=True)
class Context:
    """Encoded videos, whatever the query: rows are videos.

    Attributes:
        visual: (V, L, D) float32.
        subtitles: (V, L, D) float32; None without that stream.
        mask: (V, L) float32, 1 for a clip and 0 for padding.
    """

    visual: Tensor
    subtitles: Tensor | None
    mask: Tensor

    def select(self, rows: Tensor) -> Context:
        """The videos of ``rows`` (...) int64; the first dimension V becomes ``rows``' dimensions."""
        return self._each(lambda tensor: tensor[rows.to(tensor.device)])

    def to(self, device: torch.device | str) -> Context:
        """The same videos on another device."""
        return self._each(lambda tensor: tensor.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Context:
        subtitles = None if self.subtitles is None else change(self.subtitles)
        return Context(change(self.visual), subtitles, change(self.mask))


@dataclass(frozen=True)
class Queries:
    """Encoded queries.

    Attributes:
        tokens: (Q, Lq, D) float32.
        mask: (Q, Lq) float32, 1 for a token and 0 for padding.
        fusion: (Q, 2) float32, how much pictures and subtitles count, sum 1; None without subtitles.
    """

    tokens: Tensor
    mask: Tensor
    fusion: Tensor | None

    def select(self, rows: Tensor) -> Queries:
        """The queries of ``rows`` (N,) int64."""
        return Queries(self.tokens[rows], self.mask[rows], None if self.fusion is None else self.fusion[rows])


@dataclass(frozen=True)
class Scores:
    """What the model thinks of Q queries in V candidate videos each.

    Attributes:
        start: (Q, V, L) float32 logits of a moment's first clip, -1e10 at padding.
        end: (Q, V, L) float32 logits of its last clip (which belongs to it), -1e10 at padding.
        video: (Q, V) float32 logits of the videos; None without a video head.
    """

    start: Tensor
    end: Tensor
    video: Tensor | None


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
    """Pictures and subtitles of a video as one sequence: (N, L, dv) and (N, L, ds) to two (N, L, D)."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
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
        encoded = encode(torch.cat([pictures, words], dim=1), torch.cat([mask, mask], dim=1))
        return cast("tuple[Tensor, Tensor]", encoded.chunk(2, dim=1))


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
    """How much pictures and subtitles count for a query: (N, Lq, D) to (N, 2), sum 1."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.reference_padding = config.reference_padding
        self.text_pooling = NetVLAD(config.hidden_size, config.clusters)
        self.dropout = nn.Dropout(config.dropout)
        self.moe_fc_txt = nn.Linear(config.hidden_size * config.clusters, 2, bias=False)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        pooled = self.text_pooling(tokens, torch.ones_like(mask) if self.reference_padding else mask)
        return cast("Tensor", self.moe_fc_txt(self.dropout(pooled)).softmax(dim=-1))


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
        # one vector a video: its clips, as each is asked for by the token that it fits best
        wanted = similarity.amax(dim=-1).softmax(dim=-1)
        video = torch.einsum("qvl,qvld->qvd", wanted, clips)[:, :, None]
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
        seen = features if self.reference_padding else features * mask[:, :, None]
        return masked_fill(self.clip_score_predictor(seen.transpose(1, 2))[:, 0], mask)


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


@dataclass(frozen=True)
class Similarity:
    """How the score of a moment follows from the model's logits: what start, end and video add up to.

    Attributes:
        video_head: whether the model has, and trains, a head that scores videos.
        clips: logits (Q, V, L) of starts or ends to what they add.
        videos: first-stage scores (Q, V), -inf for no candidate, and video logits (Q, V) to what a video adds
            to all its moments, (Q, V); None where it adds nothing and is as good as its best moment.
        finish: the sum to the score that is given back; increasing (``exp`` where the sum is of logarithms).
    """

    video_head: bool
    clips: Callable[[Tensor], Tensor]
    videos: Callable[[Tensor, Tensor | None], Tensor] | None
    finish: Callable[[Tensor], Tensor]


def _log_first_stage(first_stage: Tensor, _: Tensor | None) -> Tensor:
    lowest = first_stage.masked_fill(first_stage == -math.inf, 0).min().item()
    if not lowest >= 0:
        raise InvalidValue(
            f"first-stage score {lowest:g}: the general similarity multiplies by it, so it must not be "
            "negative; give exp(a * score) for an a > 0, or use another similarity"
        )
    return first_stage.clamp(min=0).log()


def _log_video_head(first_stage: Tensor, video: Tensor | None) -> Tensor:
    assert video is not None  # a model with this similarity has the head
    return _log_softmax(video.masked_fill(first_stage == -math.inf, -math.inf))


def _log_softmax(logits: Tensor) -> Tensor:
    return logits.log_softmax(dim=-1)


def _as_it_is(values: Tensor) -> Tensor:
    return values


SIMILARITIES: dict[str, Similarity] = {
    "general": Similarity(False, _log_softmax, _log_first_stage, torch.exp),
    "exclusive": Similarity(True, _log_softmax, _log_video_head, torch.exp),
    "disjoint": Similarity(False, _as_it_is, None, _as_it_is),
}
"""The paper's similarity measures by name."""


class Conquer(nn.Module):
    """CONQUER.

    Attributes:
        config: what it was built from.

    Raises:
        InvalidValue: the configuration names no similarity, or its heads don't divide its hidden size.
    """

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        if config.similarity not in SIMILARITIES:
            raise InvalidValue(f"similarity {config.similarity!r}: choose one of {', '.join(SIMILARITIES)}")
        self.config = config
        self.similarity = SIMILARITIES[config.similarity]
        self.encoder = nn.ModuleDict(
            {"videoEncoder": VideoEncoder(config), "queryEncoder": QueryEncoder(config)}
        )
        if config.subtitle_size:
            self.query_weight = FusionWeights(config)
        self.query_aware_feature_learning_layer = QueryAwareFeatures(config)
        self.contextual_QAL_feature_learning = ContextualProjection(4 * config.hidden_size, config)
        self.moment_localization_head = MomentHead(config)
        if self.similarity.video_head:
            self.video_scoring_head = VideoHead(config)
        initialise(self, config.initial_std)

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None = None) -> Context:
        """Encodes videos without any query; what comes out may be kept.

        Args:
            visual: (V, L, dv) float32, zero where padded.
            mask: (V, L), 1 for a clip and 0 for padding; each video has a clip.
            subtitles: (V, L, ds) float32; None for a model without that stream.

        Returns:
            Videos of L clips, of ``max_clips`` clips with ``reference_padding``.

        Raises:
            InvalidValue: L is more than ``max_clips``, or subtitles are missing or not wanted.
        """
        if (subtitles is None) == bool(self.config.subtitle_size):
            wanted = f"features of size {self.config.subtitle_size}" if subtitles is None else "None"
            given = "None" if subtitles is None else f"size {subtitles.shape[-1]}"
            raise InvalidValue(f"subtitles ({given}): this model takes {wanted} (subtitle_size); give that")
        visual, mask = self._fit(visual, mask, self.config.max_clips, "video", "clips")
        if subtitles is not None:
            subtitles, _ = self._fit(subtitles, mask, self.config.max_clips, "video", "clips")
        pictures, words = self.encoder["videoEncoder"](visual, subtitles, mask)
        return Context(pictures, words, mask)

    def encode_query(self, query: Tensor, query_mask: Tensor) -> Queries:
        """Encodes queries (Q, Lq, dq) float32 with their mask (Q, Lq), and finds their fusion weights.

        Raises:
            InvalidValue: Lq is more than ``max_tokens``.
        """
        query, query_mask = self._fit(query, query_mask, self.config.max_tokens, "query", "tokens")
        tokens = self.encoder["queryEncoder"](query, query_mask)
        fusion = self.query_weight(tokens, query_mask) if self.config.subtitle_size else None
        return Queries(tokens, query_mask, fusion)

    def match(self, queries: Queries, videos: Context) -> Scores:
        """Compares Q queries with V videos each: the part that has to be run for every pair.

        Args:
            queries: Q encoded queries.
            videos: encoded videos with the two first dimensions (Q, V), see :meth:`Context.select`.
        """
        clips = videos.visual
        if queries.fusion is not None and videos.subtitles is not None:
            weights = queries.fusion[:, :, None, None, None]
            clips = weights[:, 0] * videos.visual + weights[:, 1] * videos.subtitles
        aware = self.query_aware_feature_learning_layer(clips, videos.mask, queries.tokens, queries.mask)
        aware, mask = aware.flatten(0, 1), videos.mask.flatten(0, 1)
        contextual = self.contextual_QAL_feature_learning(aware, mask)
        start, end = self.moment_localization_head(aware, contextual, mask)
        pairs = videos.mask.shape[:2]
        video = None
        if self.similarity.video_head:
            video = self.video_scoring_head(aware, contextual, mask).unflatten(0, pairs)
        return Scores(start.unflatten(0, pairs), end.unflatten(0, pairs), video)

    def forward(
        self,
        query: Tensor,
        query_mask: Tensor,
        visual: Tensor,
        mask: Tensor,
        subtitles: Tensor | None = None,
    ) -> Scores:
        """Scores B queries in V candidate videos each.

        Args:
            query: (B, Lq, dq) float32.
            query_mask: (B, Lq), 1 for a token.
            visual: (B, V, L, dv) float32.
            mask: (B, V, L), 1 for a clip.
            subtitles: (B, V, L, ds) float32; None for a model without that stream.

        Returns:
            Scores of (B, V, L) and (B, V).
        """
        words = None if subtitles is None else subtitles.flatten(0, 1)
        context = self.encode_context(visual.flatten(0, 1), mask.flatten(0, 1), words)
        rows = torch.arange(len(context.mask), device=visual.device).view(mask.shape[:2])
        scores = self.match(self.encode_query(query, query_mask), context.select(rows))
        length = mask.shape[2]
        return Scores(scores.start[..., :length], scores.end[..., :length], scores.video)

    def loss(self, batch: CandidateBatch) -> dict[str, Tensor]:
        """Weighted terms of the loss, whose sum is to be minimised.

        ``moment``: cross entropy of start and end, each normalised over all clips of all candidates of a
        query together. ``video``, with a video head: cross entropy of the right video among the candidates.
        Each query counts as much as its ``similarity``.
        """
        queries = self.encode_query(batch.query, batch.query_mask)
        context = self.encode_context(batch.visual, batch.mask, batch.subtitles)
        scores = self.match(queries, context.select(batch.candidates))
        # The right video is the first one, so a label of its clips is one of all candidates' clips.
        moment = F.cross_entropy(scores.start.flatten(1), batch.labels[:, 0], reduction="none")
        moment = moment + F.cross_entropy(scores.end.flatten(1), batch.labels[:, 1], reduction="none")
        terms = {"span": self.config.span_weight * (batch.similarity * moment).mean()}
        if scores.video is not None:
            first = torch.zeros_like(batch.labels[:, 0])
            video = F.cross_entropy(scores.video, first, reduction="none")
            terms["video"] = self.config.video_weight * (batch.similarity * video).mean()
        return terms

    @torch.no_grad()
    def rank(
        self,
        query: Tensor,
        query_mask: Tensor,
        context: Context,
        *,
        first_stage: Tensor,
        pairs_at_once: int = 64,
    ) -> Ranked:
        """Finds each query's best moments in the videos that another retriever thinks best for it.

        Args:
            query: (Q, Lq, dq) float32.
            query_mask: (Q, Lq), 1 for a token.
            context: V encoded videos; they may lie on another device than the model.
            first_stage: (Q, V) float32 scores of that retriever. The best ``config.candidates`` videos of
                each query are looked into; -inf marks a video that must not be. Under the general similarity
                they multiply the scores of moments and must not be negative.
            pairs_at_once: pairs of a query and a video that are matched at once, which bounds the memory.

        Returns:
            ``config.top_moments`` moments a query; their ``video`` is a row of ``context``.

        Raises:
            InvalidValue: a candidate's first-stage score is negative under the general similarity, or
                ``first_stage`` is not (Q, V).
        """
        if first_stage.shape != (len(query), len(context.mask)):
            raise InvalidValue(
                f"first-stage scores of shape {tuple(first_stage.shape)}: {len(query)} queries and "
                f"{len(context.mask)} videos were given; one score for each pair of them is needed"
            )
        first_scores, candidates = top_scores(first_stage, self.config.candidates)
        at_once = max(1, pairs_at_once // max(1, candidates.shape[1]))
        parts = []
        for first in range(0, len(query), at_once):
            rows = slice(first, first + at_once)
            queries = self.encode_query(query[rows], query_mask[rows])
            scores = self._match_in_parts(queries, context, candidates[rows], pairs_at_once)
            found = self.decode(scores, first_scores[rows])
            video = candidates[rows].gather(1, found.video.clamp(min=0)).masked_fill(found.video < 0, -1)
            parts.append(replace(found, video=video))
        return Ranked(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Ranked)))

    def decode(self, scores: Scores, first_stage: Tensor) -> Ranked:
        """The best moments of Q queries in their V candidates, by the configured similarity and span limits.

        Args:
            scores: what :meth:`match` gave.
            first_stage: (Q, V) float32, -inf for a video that is no candidate.

        Returns:
            Ranked moments; ``video`` is a place among the V candidates.
        """
        config, finish = self.config, self.similarity.finish
        start, end = self.similarity.clips(scores.start), self.similarity.clips(scores.end)
        added = self._added_by_video(scores, first_stage)
        if config.top_videos < added.shape[1]:
            best = top_scores(self._video_terms(scores, first_stage), config.top_videos)[1]
            added = torch.full_like(added, -math.inf).scatter(1, best, added.gather(1, best))
        video, spans = corpus_spans(
            added,
            start,
            end,
            shortest=config.shortest_span,
            longest=config.longest_span,
            k=config.top_moments if config.nms is None else config.moments_before_nms,
            combine=SUM,
        )
        ranked = Ranked(
            video,
            (spans.start * config.clip_seconds).masked_fill(video < 0, 0),
            (LABELS["conquer"].end_clip(spans.end) * config.clip_seconds).masked_fill(video < 0, 0),
            finish(spans.score).masked_fill(video < 0, -math.inf),
        )
        return ranked if config.nms is None else _suppress(ranked, config.nms, config.top_moments)

    def video_scores(self, scores: Scores, first_stage: Tensor) -> Tensor:
        """(Q, V) scores of the candidates as videos, by the similarity; arguments as for :meth:`decode`."""
        return self.similarity.finish(self._video_terms(scores, first_stage))

    def _match_in_parts(
        self, queries: Queries, context: Context, candidates: Tensor, pairs_at_once: int
    ) -> Scores:
        """:meth:`match` of Q queries with the (Q, V) rows of the context, some pairs at a time."""
        device = queries.tokens.device
        owner = torch.arange(len(candidates), device=device).repeat_interleave(candidates.shape[1])
        pairs = zip(
            *(torch.split(rows, pairs_at_once) for rows in (owner, candidates.flatten())), strict=True
        )
        parts = [self.match(queries.select(q), context.select(v[:, None]).to(device)) for q, v in pairs]
        start, end = (
            torch.cat([getattr(part, name) for part in parts]).view(*candidates.shape, -1)
            for name in ("start", "end")
        )
        video = [part.video for part in parts if part.video is not None]
        return Scores(start, end, torch.cat(video).view(candidates.shape) if video else None)

    def _added_by_video(self, scores: Scores, first_stage: Tensor) -> Tensor:
        videos = self.similarity.videos
        added = torch.zeros_like(first_stage) if videos is None else videos(first_stage, scores.video)
        return added.masked_fill(first_stage == -math.inf, -math.inf)

    def _video_terms(self, scores: Scores, first_stage: Tensor) -> Tensor:
        added = self._added_by_video(scores, first_stage)
        if self.similarity.videos is not None:
            return added
        start, end = self.similarity.clips(scores.start), self.similarity.clips(scores.end)
        band = span_band(
            start,
            end,
            shortest=self.config.shortest_span,
            longest=self.config.longest_span,
            combine=SUM,
        )
        return added + band.flatten(-2).amax(dim=-1)

    def _fit(self, features: Tensor, mask: Tensor, most: int, what: str, unit: str) -> tuple[Tensor, Tensor]:
        """Checks the length and, as the release, pads to the greatest one."""
        length = features.shape[1]
        if length > most:
            raise InvalidValue(
                f"{what} of {length} {unit}: this model takes {most}; cut or pool it to that many"
            )
        mask = mask.to(features.dtype)
        if not self.config.reference_padding:
            return features, mask
        return F.pad(features, (0, 0, 0, most - length)), F.pad(mask, (0, most - mask.shape[1]))


def _suppress(ranked: Ranked, threshold: float, k: int) -> Ranked:
    """Leaves out each moment whose IoU with a better one of its video, itself kept, exceeds the threshold."""
    start, end = ranked.start, ranked.end
    shared = torch.minimum(end[:, :, None], end[:, None]) - torch.maximum(start[:, :, None], start[:, None])
    lengths = (end - start)[:, :, None] + (end - start)[:, None]
    overlapping = shared > threshold * (lengths - shared)
    overlapping &= ranked.video[:, :, None] == ranked.video[:, None]
    kept = ranked.video >= 0
    for place in range(1, kept.shape[1]):
        kept[:, place] &= ~(overlapping[:, place, :place] & kept[:, :place]).any(dim=1)
    score, places = top_scores(ranked.score.masked_fill(~kept, -math.inf), k)
    none = score == -math.inf
    return Ranked(
        ranked.video.gather(1, places).masked_fill(none, -1),
        start.gather(1, places).masked_fill(none, 0),
        end.gather(1, places).masked_fill(none, 0),
        score,
    )
