"""SPR: segment retrieval (stage 1) and the CLIP refiner (stage 3).

Paper: Zhang, Zhu and Sun, "A Flexible and Scalable Framework for Video Moment Search", sections 3.1 and 3.3.

Where the text and the published code differ, the code decides, since published weights need it: the
transformer's output is added to its input once more, each frame is brought to length 1 before the mean, and
a linear layer follows the pooling; the similarity is multiplied by a learned temperature (Eq. 1 omits it).

The CLIP refiner was never published, and the text leaves open (section 3.3.2) what its span head is exactly.
Here the query passes a feed-forward layer and is compared with each frame; two convolutions over the curve
of these cosines, times a learned temperature, give the logits of start and end. ReLoCLNet, whose losses it
shares, does the same without the temperature, which embeddings of length 1 need. The frames are projected
one by one, so that the mean of F^M is what stage 1 makes of the same frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.retrieval.saved.clip_windows import LABELS
from moviola.study.models.batches import PairBatch, Rows
from moviola.study.models.checks import require_heads, require_known, require_odd
from moviola.study.models.layers import full_precision, masked_fill, span_logits
from moviola.study.models.losses import (
    CONTRASTIVE,
    frame_contrast,
    in_batch_ranking_loss,
    span_cross_entropy,
    video_contrast,
)
from moviola.study.models.refining import WindowModel, Windows

__all__ = [
    "SegmentRetriever", "SegmentRetrieverConfig", "SprClip", "SprClipConfig", "SprClipContext", "TowerSizes",
    "Towers",
]  # fmt: skip


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
        loss: a name in :data:`moviola.study.models.losses.CONTRASTIVE`.
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
            frames, mask: see :meth:`encode_segments`.
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


@dataclass(frozen=True)
class SprClipConfig(TowerSizes):
    """Settings of the CLIP refiner, besides the towers' sizes.

    Attributes:
        max_clips: most frames of a window; longer windows are pooled
            (:func:`moviola.retrieval.saved.clip_windows.pool_clips`).
        kernel: frames that a convolution of the span head sees; odd.
        logit_scale: starting value of the temperature of cosines, as a logarithm.
        frame_weight, video_weight: of the contrastive losses on the frames of the pair's own window (FCL),
            and on windows (VCL).
        span_weight: of the cross entropies of start and end.
        context_weight, query_weight: of the ranking losses against another window, and another query.
        hard_negative_weight: of the hinge against a window without any answer (HN).
        weak_weight: of the hinge of a strong against a weak positive.
        margin: of all hinges.
        sum_positives: see :func:`moviola.study.models.losses.video_contrast`.
        labels: the convention of the labels, a key of :data:`~moviola.retrieval.saved.clip_windows.LABELS`.
        clip_seconds: time between two frames.
        shortest_span, longest_span: ``shortest_span <= end - start < longest_span`` in frames.
        alpha: a span scores exp(alpha phi) times the probabilities of its start and end.
    """

    max_clips: int = 128
    kernel: int = 5
    logit_scale: float = math.log(20.0)
    frame_weight: float = 0.03
    video_weight: float = 0.03
    span_weight: float = 0.02
    context_weight: float = 1.0
    query_weight: float = 1.0
    hard_negative_weight: float = 1.0
    weak_weight: float = 1.0
    margin: float = 0.1
    sum_positives: bool = False
    labels: str = "spr"
    clip_seconds: float = 1.0
    shortest_span: int = 1
    longest_span: int = 16
    alpha: float = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_odd(self.kernel)
        require_known("labels", self.labels, LABELS)


@dataclass(frozen=True)
class SprClipContext(Rows):
    """N encoded windows; knows no query, so it may be stored.

    Attributes:
        frames: (N, L, d) float32, each of length 1.
        mask: (N, L) float32, 1 for a frame.
    """

    frames: Tensor
    mask: Tensor


class SprClip(WindowModel, Towers):
    """SPR_CLIP: a finer span and a matching score for each window of frames (SPR, section 3.3).

    A query is one sentence vector: where a batch or a call has tokens (B, 1, d), there is just this one, and
    its mask is not looked at. ``config.hidden_size`` is d below.
    """

    def __init__(self, config: SprClipConfig) -> None:
        super().__init__(config)
        self.config = config
        self.pt_clip_logit_scale = nn.Parameter(torch.tensor(config.logit_scale))
        self.span_query = nn.Linear(config.hidden_size, config.hidden_size)
        if config.identity_start:
            nn.init.eye_(self.span_query.weight)
            nn.init.zeros_(self.span_query.bias)
        padding = config.kernel // 2
        self.start_predictor = nn.Conv1d(1, 1, config.kernel, padding=padding, bias=False)
        self.end_predictor = nn.Conv1d(1, 1, config.kernel, padding=padding, bias=False)

    def start_from(self, retriever: SegmentRetriever) -> None:
        """Takes over the towers of a trained stage 1; positions beyond its own stay as they are.

        Raises:
            InvalidValue: the towers differ in size, but for the positions.
        """
        for name in ("hidden_size", "layers", "head_count", "inner_size"):
            ours, theirs = getattr(self.config, name), getattr(retriever.config, name)
            if ours != theirs:
                raise InvalidValue(f"stage 1 with {name} {theirs}: this refiner has {ours}; make them equal")
        state = retriever.state_dict()
        del state["pt_clip_logit_scale"]
        table = self.frame_position_embeddings.weight.detach().clone()
        known = min(len(table), retriever.config.max_clips)
        table[:known] = state["frame_position_embeddings.weight"][:known]
        self.load_state_dict(state | {"frame_position_embeddings.weight": table}, strict=False)

    # ---- encoding and scores -----------------------------------------------------------------------------

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: None = None) -> SprClipContext:
        """Encodes windows, each frame by itself with what it sees of the others (F^M).

        Args:
            visual: (N, L, d) float32, frame features; what masked frames hold does not matter if finite.
            mask: (N, L), 1 for a frame and 0 for padding.
            subtitles: None; the model looks at pictures alone.

        Raises:
            InvalidValue: L is more than ``max_clips``, d is not ``hidden_size``, or subtitles are given.
        """
        if subtitles is not None:
            raise InvalidValue("subtitles: SPR_CLIP looks at pictures alone; give None")
        frames = self.temp_proj(self.frame_features(visual, mask))
        return SprClipContext(F.normalize(frames.float(), dim=-1), mask.float())

    def encode_query(self, query: Tensor, query_mask: Tensor | None = None) -> Tensor:
        """Embeddings (Q, d) of queries from their sentence features (Q, d) or (Q, 1, d).

        Raises:
            InvalidValue: a query has several tokens.
        """
        if query.ndim == 3 and query.shape[1] != 1:
            raise InvalidValue(
                f"query of shape {tuple(query.shape)}: SPR_CLIP takes one sentence feature per query, "
                "(Q, 1, d); encode the queries as sentences"
            )
        return self.encode_queries(query.reshape(len(query), -1))

    def scores(self, queries: Tensor, context: SprClipContext) -> Tensor:
        """phi (Q, N) in [-1, 1]: the largest cosine of a query (Q, d) with the frames of a window."""
        with full_precision(queries):
            cosine = torch.einsum("qd,nld->qnl", F.normalize(queries.float(), dim=-1), context.frames)
            return masked_fill(cosine, context.mask).amax(dim=-1)

    def pair_scores(self, queries: Tensor, context: SprClipContext) -> Tensor:
        """(N,) float32, :meth:`scores` of query i with window i; one query may stand for all."""
        return masked_fill(_cosine_along(queries, context), context.mask).amax(dim=-1)

    def span_logits(self, queries: Tensor, context: SprClipContext) -> tuple[Tensor, Tensor]:
        """Logits of start and end, (N, L) each, of query i with window i; one query may stand for all."""
        curve = self.pt_clip_logit_scale.exp() * _cosine_along(self.span_query(queries), context)
        return (
            span_logits(curve, context.mask, self.start_predictor),
            span_logits(curve, context.mask, self.end_predictor),
        )

    # ---- training ----------------------------------------------------------------------------------------

    def loss(
        self,
        batch: PairBatch,
        *,
        hard_pool: int | None,
        generator: torch.Generator | None,
        hard_negatives: Windows | None = None,
        weak_positives: Windows | None = None,
    ) -> dict[str, Tensor]:
        """The weighted terms of the loss; arguments of
        :meth:`moviola.study.models.reloclnet.ReLoCLNet.loss`.
        """
        config, scale = self.config, self.pt_clip_logit_scale.exp()
        queries = self.encode_query(batch.query)
        windows = self.encode_context(batch.visual, batch.mask)
        own = windows.select(batch.video)
        scores = self.scores(queries, windows)[:, batch.video]
        harder, weaker = (
            None if more is None else self.pair_scores(queries, self.encode_context(more.visual, more.mask))
            for more in (hard_negatives, weak_positives)
        )
        frame = frame_contrast(scale * _cosine_along(queries, own), batch.labels, own.mask)
        video = video_contrast(
            scale * scores,
            batch.positives,
            more=None if harder is None else scale * harder,
            sum_positives=config.sum_positives,
        )
        span = span_cross_entropy(*self.span_logits(queries, own), batch.labels)
        ranking = in_batch_ranking_loss(
            scores, batch.positives, margin=config.margin, pool=hard_pool, generator=generator
        )
        there = None if weak_positives is None else weak_positives.there
        return self.weighted(frame, video, span, *ranking) | self.compared(scores, harder, weaker, there)


def _cosine_along(queries: Tensor, context: SprClipContext) -> Tensor:
    """Cosine of query i (N, d), or of one query (1, d), with the frames of window i, as (N, L)."""
    with full_precision(queries):
        return (context.frames @ F.normalize(queries.float(), dim=-1)[:, :, None]).squeeze(-1)
