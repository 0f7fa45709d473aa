"""SPR's CLIP refiner, stage 3: a finer span and a score for each window of frames (section 3.3.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.batches import PairBatch, Rows
from moviola.models.checks import require_known, require_odd
from moviola.models.clip_windows import LABELS
from moviola.models.layers import full_precision, masked_fill, span_logits
from moviola.models.losses import (
    frame_contrast,
    in_batch_ranking_loss,
    span_cross_entropy,
    video_contrast,
)
from moviola.models.refining import WindowModel, Windows
from moviola.models.spr.retriever import SegmentRetriever, Towers, TowerSizes

__all__ = ["SprClip", "SprClipConfig", "SprClipContext"]


@dataclass(frozen=True)
class SprClipConfig(TowerSizes):
    """Settings of the CLIP refiner, besides the towers' sizes.

    Attributes:
        max_clips: most frames of a window; longer windows are pooled
            (:func:`moviola.models.clip_windows.pool_clips`).
        kernel: frames that a convolution of the span head sees; odd.
        logit_scale: starting value of the temperature of cosines, as a logarithm.
        frame_weight, video_weight: of the contrastive losses on the frames of the pair's own window (FCL),
            and on windows (VCL).
        span_weight: of the cross entropies of start and end.
        context_weight, query_weight: of the ranking losses against another window, and another query.
        hard_negative_weight: of the hinge against a window without any answer (HN).
        weak_weight: of the hinge of a strong against a weak positive.
        margin: of all hinges.
        sum_positives: see :func:`moviola.models.losses.video_contrast`.
        labels: the convention of the labels, a key of :data:`~moviola.models.clip_windows.LABELS`.
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
        """The weighted terms of the loss; arguments as of :meth:`moviola.models.reloclnet.ReLoCLNet.loss`."""
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
        return self.weighted(frame, video, span, *ranking) | self.compared(scores, harder, weaker)


def _cosine_along(queries: Tensor, context: SprClipContext) -> Tensor:
    """Cosine of query i (N, d), or of one query (1, d), with the frames of window i, as (N, L)."""
    with full_precision(queries):
        return (context.frames @ F.normalize(queries.float(), dim=-1)[:, :, None]).squeeze(-1)
