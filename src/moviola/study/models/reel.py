"""Reel: a refiner of our own that reads every video once, without knowing the query; and its stage 1.

SPR's refiners (sections 3.3.1 and 3.3.2) encode the window of every proposal again for every query, and learn
to find a moment and to rank moments from losses of different kinds. Here

- **a video is encoded once**: dilated convolutions over its clips, without positions, so that a video has any
  length and a window is a slice of what is stored (:meth:`Reel.encode_context`);
- **a query meets clips in dot products only**: three vectors of the query (does it happen here, does it start
  here, does it end here) against three of each clip, smoothed by one small convolution over time;
- **a cut is evidence**, since an editor cuts where something begins or ends: where shots are known, that
  convolution sees which clips begin at a cut, and a span scores less for each cut that it crosses;
- **a span's score is one number that is comparable everywhere**: the logits of its start and of its end and
  the mean of what lies between. It is learned by one list-wise loss: softmax over *all* spans of *all* videos
  of the batch against the graded overlap of each with the query's answers (as in ListNet, Cao et al. 2007,
  with similarity times overlap as the gain). Finding and ranking are then the same thing, and what is
  optimised is close to NDCG@K, IoU >= mu.

As a refiner, it adds the score of the proposal to that of the span, by a weight that val chooses once it is
trained; and where val's videos are cut, val chooses what a span loses by a cut that it crosses
(:mod:`moviola.study.training.recipes.reel`).

A query may have no answer at all. With :attr:`ReelConfig.answerable` a fourth vector of clips and query, and
a convolution over its dot products and the logits of the other three, say at every clip how sure the model is
that what is asked is there; of an answer it is as sure as at the surest clip. That is learned from whole
queries, those with an answer in the batch and those that nothing answers (as in Generalized Moment Retrieval,
2026), so that answers that nobody has labelled do no harm.

Stage 1 brings segments and queries into one space. SPR's (section 3.1) sees the clips of one segment alone
and one vector of the query. Here a clip knows what comes before and after it, and the query is read token by
token. A segment is the mean of its clips' unit vectors. One list-wise loss, softmax over all segments of the
batch's videos against how much of each lies in an answer, times similarity, is close to the recall that a
stage 1 is there for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.study.models.batches import Batch, Rows
from moviola.study.models.checks import require_odd
from moviola.study.models.layers import (
    AttentionBlock,
    InputProjection,
    LearnedPositions,
    ModularQuery,
    initialise,
    self_attention_bias,
)
from moviola.study.models.losses import list_wise
from moviola.study.models.spans import SUM, sliding, span_band

__all__ = [
    "AnswerBatch", "Reel", "ReelConfig", "ReelContext", "ReelStage1", "ReelStage1Config", "RoleEncoder",
    "RoleEncoderConfig",
]  # fmt: skip


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


_ROLES = 3  # inside, start, end
_SMOOTHING = 16  # channels of the convolution over dot products


@dataclass(frozen=True)
class ReelConfig(RoleEncoderConfig):
    """Decoding, and what counts as an answer; the defaults suit CLIP features of one clip per second.

    Attributes:
        longest_span: ``0 <= end - start < longest_span`` in clips, ``end`` being the last clip of the span.
        least_overlap: spans that overlap an answer less than this (IoU) are no answer.
        sharpness: the gain of a span is its overlap beyond ``least_overlap`` to this power, times similarity
            to the power ``similarity_power``.
        cuts: whether scores depend on where videos are cut.
        answerable: whether it also says how sure it is that a query has an answer at all; it then learns from
            queries without one too.
    """

    clip_seconds: float = 1.0
    longest_span: int = 24
    least_overlap: float = 0.5
    sharpness: float = 1.0
    similarity_power: float = 2.0
    cuts: bool = False
    answerable: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.least_overlap < 1:
            raise InvalidValue(f"least_overlap {self.least_overlap}: give an IoU of at least 0, below 1")


@dataclass(frozen=True)
class AnswerBatch(Batch):
    """Q queries, V videos, and which spans of which videos answer which queries.

    Attributes:
        cuts: (V, L) float32, 1 for a clip that begins at a cut.
        answer: (K, 2) int64, row of a query and row of a video.
        span: (K, 2) float32, start and end of the answer in clips, exclusive.
        similarity: (K,) float32 in [0, 1], how well it answers.
        answered: (Q,) float32, 0 for a query that nothing answers, in whatever video, else 1.
    """

    cuts: Tensor
    answer: Tensor
    span: Tensor
    similarity: Tensor
    answered: Tensor

    def largest(self, gain: Tensor) -> Tensor:
        """(Q, V, …): of the gain (K, …) of each answer the largest of a query and a video; 0 without one."""
        queries, videos = len(self.query), len(self.mask)
        place = self.answer[:, 0] * videos + self.answer[:, 1]
        gains = torch.zeros(queries * videos, *gain.shape[1:], device=gain.device)
        place = place.view(-1, *[1] * (gain.ndim - 1)).expand_as(gain)
        return torch.unflatten(gains.scatter_reduce_(0, place, gain, "amax"), 0, (queries, videos))


@dataclass(frozen=True)
class ReelContext(Rows):
    """Stored encodings of N videos or windows, float32: (N, L, R, h), (N, L), 1 for a clip, and (N, L), 1 for
    a clip that begins at a cut. R is 3, or 4 with :attr:`ReelConfig.answerable`.
    """

    clips: Tensor
    mask: Tensor
    cuts: Tensor


class Reel(RoleEncoder):
    """Encodes videos without a query, and scores all of their spans for each query; h is ``hidden_size``.

    Attributes:
        crossing: () float32, what a span's score loses by each cut that it crosses; not learned, but set once
            the model is trained. Only with :attr:`ReelConfig.cuts`.
    """

    config: ReelConfig
    crossing: Tensor

    def __init__(self, config: ReelConfig) -> None:
        super().__init__(config, _ROLES + config.answerable)
        self.smooth = nn.Sequential(
            nn.Conv1d(_ROLES, _SMOOTHING, config.kernel, padding=config.kernel // 2),
            nn.GELU(),
            nn.Conv1d(_SMOOTHING, _ROLES, config.kernel, padding=config.kernel // 2),
        )
        self.log_scale = nn.Parameter(torch.full((_ROLES,), math.log(10.0)))
        self.length_bias = nn.Parameter(torch.zeros(config.longest_span))
        if config.cuts:
            self.cut_kernel = nn.Parameter(torch.zeros(_SMOOTHING, 1, config.kernel))
            self.register_buffer("crossing", torch.zeros(()))
        if config.answerable:
            self.there_scale = nn.Parameter(torch.tensor(math.log(10.0)))
            self.there = nn.Sequential(
                nn.Conv1d(_ROLES + 1, _SMOOTHING, config.kernel, padding=config.kernel // 2),
                nn.GELU(),
                nn.Conv1d(_SMOOTHING, 1, config.kernel, padding=config.kernel // 2),
            )

    def encode_context(
        self, visual: Tensor, mask: Tensor, subtitles: Tensor | None = None, cuts: Tensor | None = None
    ) -> ReelContext:
        """Everything about videos (or windows) that no query is needed for.

        ``visual`` and ``subtitles`` are (N, L, size) float32, ``mask`` and ``cuts`` (N, L) float32, 1 for a
        clip, and for one that begins at a cut.
        """
        clips = self.encode_clips(visual, mask, subtitles)
        return ReelContext(clips, mask, torch.zeros_like(mask) if cuts is None else cuts)

    def curves(self, query: Tensor, context: ReelContext) -> Tensor:
        """Logits (Q, N, 3, L) of each query (Q, R, h) over the clips of each of N videos."""
        return self._smoothed(_among(query, context)[..., :_ROLES, :], context.mask, context.cuts)

    def answerable(self, similarity: Tensor, curves: Tensor, mask: Tensor) -> Tensor:
        """Log odds (..., N) that what a query asks for is in each video or window.

        Args:
            similarity: (..., N, 4, L), dot products of clips with a query.
            curves: (..., N, 3, L), their logits.
            mask: (N, L), 1 for a clip.
        """
        valid = mask[:, None, :]
        own = similarity[..., _ROLES:, :] * self.there_scale.exp() * valid
        seen = torch.cat([curves, own], dim=-2)
        first, activation, second = self.there
        hidden = activation(first(seen.flatten(0, -3))).unflatten(0, seen.shape[:-2]) * valid
        sure = second(hidden.flatten(0, -3)).unflatten(0, seen.shape[:-2])
        most: Tensor = sure.masked_fill(valid == 0, SUM.padding).amax(dim=(-2, -1))
        return most

    def _smoothed(self, similarity: Tensor, mask: Tensor, cuts: Tensor) -> Tensor:
        """(..., N, 3, L): scaled, with what neighbours and cuts say added; silence beyond the ends."""
        valid = mask[:, None, :]
        scaled = similarity * self.log_scale.exp()[:, None] * valid
        first, activation, second = self.smooth
        hidden = first(scaled.flatten(0, -3)).unflatten(0, scaled.shape[:-2])
        if self.config.cuts:
            hidden = hidden + F.conv1d(cuts[:, None], self.cut_kernel, padding=self.config.kernel // 2)
        hidden = activation(hidden) * valid
        smoothed: Tensor = second(hidden.flatten(0, -3)).view_as(scaled)
        return scaled + smoothed * valid

    def span_scores(self, curves: Tensor, mask: Tensor, cuts: Tensor) -> Tensor:
        """Logits of all spans: curves (..., 3, L), mask and cuts (..., L) to (..., L, longest_span).

        Cell (m, w) is the span of clips m to m + w, both included; -1e10 where it leaves the video.
        """
        inside, start, end = curves.unbind(dim=-2)
        if self.config.cuts:
            # A span of clips m to n crosses the cuts at which the clips m + 1 to n begin.
            weighed = self.crossing * cuts.cumsum(dim=-1)
            start, end = start + weighed, end - weighed
        hidden = (mask == 0).expand(start.shape)
        edges = span_band(
            start.masked_fill(hidden, SUM.padding),
            end.masked_fill(hidden, SUM.padding),
            shortest=0,
            longest=self.config.longest_span,
            combine=SUM,
        )
        until = F.pad(inside.cumsum(dim=-1), (1, self.config.longest_span - 1))
        # Beyond the last clip the sums are 0; the edges mask those cells.
        total = sliding(until, self.config.longest_span)[..., 1:, :] - until[..., : inside.shape[-1], None]
        lengths = torch.arange(1, self.config.longest_span + 1, device=curves.device)
        return edges + total / lengths + self.length_bias

    def loss(self, batch: AnswerBatch) -> dict[str, Tensor]:
        """``list``: the list-wise loss over all spans of the batch's videos; queries without a reachable
        answer are left out. With :attr:`ReelConfig.answerable` also the cross-entropy of whether each query
        has an answer, under that name.
        """
        context = self.encode_context(batch.visual, batch.mask, batch.subtitles, batch.cuts)
        similarity = _among(self.encode_query(batch.query, batch.query_mask), context)
        curves = self._smoothed(similarity[..., :_ROLES, :], context.mask, context.cuts)
        scores = self.span_scores(curves, context.mask, context.cuts).flatten(1)
        terms = {"list": list_wise(scores, self.gains(batch).flatten(1))}
        if self.config.answerable:
            sure = self.answerable(similarity, curves, context.mask).amax(dim=1)
            terms["answerable"] = F.binary_cross_entropy_with_logits(sure, batch.answered)
        return terms

    def gains(self, batch: AnswerBatch) -> Tensor:
        """(Q, V, L, longest_span): how much each span is worth to each query, in [0, 1]."""
        first = torch.arange(batch.mask.shape[1], device=batch.mask.device)[:, None]
        after = first + torch.arange(1, self.config.longest_span + 1, device=batch.mask.device)
        start, end = batch.span[:, 0, None, None], batch.span[:, 1, None, None]
        shared = (torch.minimum(after, end) - torch.maximum(first, start)).clamp(min=0)
        overlap = shared / (after - first + end - start - shared)
        least, power = self.config.least_overlap, self.config.sharpness
        gain = ((overlap - least) / (1 - least)).clamp(min=0) ** power
        gain = gain * (batch.similarity**self.config.similarity_power)[:, None, None]
        return batch.largest((after <= batch.mask.sum(dim=1)[batch.answer[:, 1], None, None]) * gain)

    def refine(self, query: Tensor, context: ReelContext) -> tuple[Tensor, ...]:
        """The best span of each of N windows, for a query (N, R, h) each, or (1, R, h) for all.

        Returns (N,): the score, float32, comparable between windows and videos; first and last clip, int64;
        with :attr:`ReelConfig.answerable` the log odds that the window has an answer, float32.
        """
        query = query.expand(len(context.mask), -1, -1)
        similarity = torch.einsum("nrh,nlrh->nrl", query, context.clips)
        return self.best_spans(similarity, context.mask, context.cuts)

    def best_spans(self, similarity: Tensor, mask: Tensor, cuts: Tensor | None = None) -> tuple[Tensor, ...]:
        """As :meth:`refine`, from dot products (N, R, L) of clips and query, the mask and the cuts."""
        cuts = torch.zeros_like(mask) if cuts is None else cuts
        curves = self._smoothed(similarity[:, :_ROLES], mask, cuts)
        best, cell = self.span_scores(curves, mask, cuts).flatten(1).max(dim=1)
        first = cell // self.config.longest_span
        spans = best, first, first + cell % self.config.longest_span
        return (*spans, self.answerable(similarity, curves, mask)) if self.config.answerable else spans


def _among(query: Tensor, context: ReelContext) -> Tensor:
    """(Q, N, R, L), dot products of each query (Q, R, h) with the clips of each of N videos."""
    return torch.einsum("qrh,nlrh->qnrl", query, context.clips)


@dataclass(frozen=True)
class ReelStage1Config(RoleEncoderConfig):
    """Settings besides the sizes.

    Attributes:
        similarity_power: a segment's gain is its share times similarity to this power.
    """

    similarity_power: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subtitle_size:
            raise InvalidValue(f"subtitle_size {self.subtitle_size}: segments are pictures alone; give 0")


class ReelStage1(RoleEncoder):
    """Encodes clips and queries with one vector each, whose cosine says how well they match."""

    config: ReelStage1Config

    def __init__(self, config: ReelStage1Config) -> None:
        super().__init__(config, roles=1)
        self.log_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def loss(self, batch: AnswerBatch, segment_clips: int, least_share: float) -> dict[str, Tensor]:
        """The list-wise loss over all segments of the batch's videos.

        Args:
            segment_clips: T, clips of a segment.
            least_share: a segment answers a query if at least this share of it lies in an answer.
        """
        clips = self.encode_clips(batch.visual, batch.mask)[:, :, 0] * batch.mask[..., None]
        segments = F.normalize(_blocks(clips, segment_clips), dim=-1)
        there = _blocks(batch.mask[..., None], segment_clips)[..., 0] > 0
        cosine = torch.einsum("qh,vsh->qvs", self.encode_query(batch.query, batch.query_mask)[:, 0], segments)
        scores = (self.log_scale.exp() * cosine).masked_fill(~there, -1e9)
        gains = self.gains(batch, segment_clips, least_share) * there  # an answer may end after its video
        return {"list": list_wise(scores.flatten(1), gains.flatten(1))}

    def gains(self, batch: AnswerBatch, segment_clips: int, least_share: float) -> Tensor:
        """(Q, V, S) float32 in [0, 1], how much each segment is worth to each query; see :meth:`loss`."""
        first = torch.arange(0, batch.mask.shape[1], segment_clips, device=batch.mask.device)
        start, end = batch.span[:, :1], batch.span[:, 1:]
        shared = torch.minimum(first + segment_clips, end) - torch.maximum(first, start)
        share = shared.clamp(min=0) / segment_clips
        similarity = batch.similarity[:, None] ** self.config.similarity_power
        return batch.largest(torch.where(share >= least_share, share, 0) * similarity)


def _blocks(rows: Tensor, size: int) -> Tensor:
    """(N, L, d) to (N, ceil(L / size), d), sums of ``size`` neighbours."""
    whole = F.pad(rows, (0, 0, 0, -rows.shape[1] % size))
    return whole.view(len(rows), -1, size, rows.shape[2]).sum(dim=2)
