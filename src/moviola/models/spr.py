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

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.batches import PairBatch
from moviola.models.layers import masked_fill, span_logits
from moviola.models.losses import (
    CONTRASTIVE,
    both_directions,
    frame_contrast,
    hinge,
    in_batch_ranking_loss,
    related_pairs,
    video_contrast,
)
from moviola.models.reloclnet import Windows
from moviola.models.spans import LABELS, window_spans

__all__ = [
    "SegmentRetriever",
    "SegmentRetrieverConfig",
    "SprClip",
    "SprClipConfig",
    "SprClipContext",
    "TowerSizes",
]

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
        if self.hidden_size % self.head_count:
            raise InvalidValue(
                f"hidden_size {self.hidden_size} is not a multiple of {self.head_count} heads; give heads "
                "that divide it"
            )

    @property
    def head_count(self) -> int:
        """The attention heads that the model has."""
        return max(1, self.hidden_size // 64) if self.heads is None else self.heads

    @property
    def inner_size(self) -> int:
        """The width of the feed-forward layers that the model has."""
        return 4 * self.hidden_size if self.feed_forward_size is None else self.feed_forward_size

    @property
    def residual_deviation(self) -> float:
        """Deviation at the start of the weights that write to the residual stream (CLIP's)."""
        return 0.0 if self.identity_start else (2 * self.layers * self.hidden_size) ** -0.5


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
        self.in_proj_weight = nn.Parameter(torch.empty(3 * sizes.hidden_size, sizes.hidden_size))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * sizes.hidden_size))
        self.out_proj = nn.Linear(sizes.hidden_size, sizes.hidden_size)
        nn.init.normal_(self.in_proj_weight, std=sizes.hidden_size**-0.5)
        _start(self.out_proj, sizes.residual_deviation)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """(B, T, d) -> (B, T, d), with ``bias`` (B, 1, 1, T) added to the attention logits."""
        batch, length, dim = x.shape
        parts = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        query, key, value = parts.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = bias.clamp(min=torch.finfo(query.dtype).min).to(query.dtype)  # half precision ends at -65504
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        joined: Tensor = self.out_proj(mixed.transpose(1, 2).reshape(batch, length, dim))
        return joined


class _FeedForward(nn.Module):
    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.c_fc = nn.Linear(sizes.hidden_size, sizes.inner_size)
        self.c_proj = nn.Linear(sizes.inner_size, sizes.hidden_size)
        _start(self.c_fc, (2 * sizes.hidden_size) ** -0.5)
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
        self.ln_1 = nn.LayerNorm(sizes.hidden_size)
        self.mlp = _FeedForward(sizes)
        self.ln_2 = nn.LayerNorm(sizes.hidden_size)

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


def _full_precision(beside: Tensor) -> torch.autocast:
    """Keeps cosines in float32 under autocast: times 30 or 100, half a per cent is a wrong order."""
    return torch.autocast(beside.device.type, enabled=False)


def _start(layer: nn.Linear, deviation: float) -> None:
    nn.init.normal_(layer.weight, std=deviation)
    nn.init.zeros_(layer.bias)


class _Towers(nn.Module):
    """The visual tower up to the frames' features, and the query tower: what both models of SPR share."""

    def __init__(self, sizes: TowerSizes) -> None:
        super().__init__()
        self.frame_position_embeddings = nn.Embedding(sizes.max_clips, sizes.hidden_size)
        self.seq_transf = _Transformer(sizes)
        self.qfeat_proj = nn.Linear(sizes.hidden_size, sizes.hidden_size)
        self.temp_proj = nn.Linear(sizes.hidden_size, sizes.hidden_size)
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
                "cut the frames or build the model with a larger max_clips or another hidden_size"
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

    ``config.hidden_size`` is d below. Embeddings are not normalised.
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
            InvalidValue: T is more than ``config.max_clips``, or d is not ``config.hidden_size``.
        """
        features = self.frame_features(frames, mask)
        valid = mask.to(features.dtype).unsqueeze(-1)
        mean = (features * valid).sum(dim=1) / valid.sum(dim=1).clamp(min=1.0)
        embeddings: Tensor = self.temp_proj(mean)
        return embeddings

    def similarity(self, queries: Tensor, segments: Tensor) -> Tensor:
        """Logits (Q, S) between query embeddings (Q, d) and segment embeddings (S, d): scaled cosine."""
        with _full_precision(queries):
            cosine = F.normalize(queries.float(), dim=-1) @ F.normalize(segments.float(), dim=-1).T
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


@dataclass(frozen=True)
class SprClipConfig(TowerSizes):
    """Settings of the CLIP refiner, besides the towers' sizes.

    Attributes:
        max_clips: most frames of a window; longer windows are pooled
            (:func:`moviola.models.spans.pool_clips`).
        kernel: frames that a convolution of the span head sees; odd.
        logit_scale: starting value of the temperature of cosines, as a logarithm.
        frame_weight: of the contrastive loss on the frames of the pair's own window (FCL).
        video_weight: of the contrastive loss on windows (VCL).
        span_weight: of the cross entropies of start and end.
        context_weight, query_weight: of the ranking losses against another window, and another query.
        hard_negative_weight: of the hinge against a window without any answer (HN).
        weak_weight: of the hinge of a strong against a weak positive.
        margin: of all hinges.
        sum_positives: see :func:`moviola.models.losses.video_contrast`.
        labels: the convention of the labels, a key of :data:`~moviola.models.spans.LABELS`.
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
        if self.kernel % 2 == 0:
            raise InvalidValue(f"kernel {self.kernel}: must be odd, or a curve changes its length")
        if self.labels not in LABELS:
            raise InvalidValue(f"labels {self.labels!r}: must be one of {', '.join(LABELS)}")


@dataclass(frozen=True)
class SprClipContext:
    """N encoded windows; knows no query, so it may be stored.

    Attributes:
        frames: (N, L, d) float32, each of length 1.
        mask: (N, L) float32, 1 for a frame.
    """

    frames: Tensor
    mask: Tensor

    def __len__(self) -> int:
        """Number of windows."""
        return len(self.mask)

    def select(self, rows: Tensor) -> SprClipContext:
        """The windows at ``rows`` (M,) int64, in that order, as often as they occur."""
        return SprClipContext(self.frames[rows], self.mask[rows])


class SprClip(_Towers):
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
                f"query of shape {tuple(query.shape)}: SPR_CLIP takes one sentence feature a query, "
                "(Q, 1, d); encode the queries as sentences"
            )
        return self.encode_queries(query.reshape(len(query), -1))

    def scores(self, queries: Tensor, context: SprClipContext) -> Tensor:
        """phi (Q, N) in [-1, 1]: the largest cosine of a query (Q, d) with the frames of a window."""
        with _full_precision(queries):
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

    # ---- answers -----------------------------------------------------------------------------------------

    def refine(
        self, query: Tensor, query_mask: Tensor | None, context: SprClipContext
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The best span of each window, p_start(m) p_end(n) exp(alpha phi).

        Args:
            query: (N, 1, d) float32, row i for window i; or (1, 1, d) for all windows; or without the 1.
            query_mask: not looked at.
            context: N windows, each with a frame.

        Returns:
            Scores (N,) float32, frames of start (N,) int64 and of end (N,) int64, in the convention of the
            labels. A window with too few frames for the shortest span is returned whole.
        """
        config, queries = self.config, self.encode_query(query)
        start, end = self.span_logits(queries, context)
        spans = window_spans(
            start, end, context.mask, shortest=config.shortest_span, longest=config.longest_span
        )
        score = spans.score + config.alpha * self.pair_scores(queries, context)
        return score.exp(), spans.start, spans.end

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
        """The weighted terms of the loss, whose sum is to be minimised.

        Args:
            batch: B pairs of a query (B, 1, d) and a window.
            hard_pool: draw the ranking losses' negatives from that many hardest; None draws from the batch.
            generator: source of randomness; None uses PyTorch's own.
            hard_negatives: a window without any answer to each pair's query (HN); also one more negative of
                the loss on windows.
            weak_positives: a window that answers each pair's query less well than the pair's own.

        Returns:
            ``frame``, ``video``, ``span``, ``context``, ``query`` and, where asked for, ``hard_negative`` and
            ``weak``; each a float32 scalar.
        """
        config, scale = self.config, self.pt_clip_logit_scale.exp()
        queries = self.encode_query(batch.query)
        windows = self.encode_context(batch.visual, batch.mask)
        own = windows.select(batch.video)
        related = related_pairs(batch.positives, batch.video)
        scores = self.scores(queries, windows)[:, batch.video]
        terms: dict[str, Tensor] = {}
        harder = None
        if hard_negatives is not None:
            harder = self._scores_in(queries, hard_negatives)
            missed = hinge(scores.diagonal(), harder, config.margin).mean()
            terms["hard_negative"] = config.hard_negative_weight * missed
        if weak_positives is not None:
            weaker = self._scores_in(queries, weak_positives)
            terms["weak"] = config.weak_weight * hinge(scores.diagonal(), weaker, config.margin).mean()
        frame = frame_contrast(scale * _cosine_along(queries, own), batch.labels, own.mask)
        video = video_contrast(
            scale * scores,
            related,
            more=None if harder is None else scale * harder,
            sum_positives=config.sum_positives,
        )
        start, end = self.span_logits(queries, own)
        span = F.cross_entropy(start, batch.labels[:, 0]) + F.cross_entropy(end, batch.labels[:, 1])
        context, query = in_batch_ranking_loss(
            scores, related, margin=config.margin, pool=hard_pool, generator=generator
        )
        return {
            "frame": config.frame_weight * frame.mean(),
            "video": config.video_weight * video.mean(),
            "span": config.span_weight * span,
            "context": config.context_weight * context,
            "query": config.query_weight * query,
            **terms,
        }

    def _scores_in(self, queries: Tensor, windows: Windows) -> Tensor:
        """(B,) phi of query i with its own further window."""
        return self.pair_scores(queries, self.encode_context(windows.visual, windows.mask))


def _cosine_along(queries: Tensor, context: SprClipContext) -> Tensor:
    """Cosine of query i (N, d), or of one query (1, d), with the frames of window i, as (N, L)."""
    with _full_precision(queries):
        return (context.frames @ F.normalize(queries.float(), dim=-1)[:, :, None]).squeeze(-1)
