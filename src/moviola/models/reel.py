"""Reel: a refiner of our own that reads every video once, without knowing the query.

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
(:mod:`moviola.training.recipes.reel`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.batches import Batch, Rows
from moviola.models.losses import list_wise
from moviola.models.role_encoder import RoleEncoder, RoleEncoderConfig
from moviola.models.spans import SUM, sliding, span_band

__all__ = ["AnswerBatch", "Reel", "ReelConfig", "ReelContext"]

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
    """

    clip_seconds: float = 1.0
    longest_span: int = 24
    least_overlap: float = 0.5
    sharpness: float = 1.0
    similarity_power: float = 2.0
    cuts: bool = False

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
    """

    cuts: Tensor
    answer: Tensor
    span: Tensor
    similarity: Tensor

    def largest(self, gain: Tensor) -> Tensor:
        """(Q, V, …): of the gain (K, …) of each answer the largest of a query and a video; 0 without one."""
        queries, videos = len(self.query), len(self.mask)
        place = self.answer[:, 0] * videos + self.answer[:, 1]
        gains = torch.zeros(queries * videos, *gain.shape[1:], device=gain.device)
        place = place.view(-1, *[1] * (gain.ndim - 1)).expand_as(gain)
        return torch.unflatten(gains.scatter_reduce_(0, place, gain, "amax"), 0, (queries, videos))


@dataclass(frozen=True)
class ReelContext(Rows):
    """Stored encodings of N videos or windows, float32: (N, L, 3, h), (N, L), 1 for a clip, and (N, L), 1 for
    a clip that begins at a cut.
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
        super().__init__(config, _ROLES)
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
        """Logits (Q, N, 3, L) of each query (Q, 3, h) over the clips of each of N videos."""
        similarity = torch.einsum("qrh,nlrh->qnrl", query, context.clips)
        return self._smoothed(similarity, context.mask, context.cuts)

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
        """The list-wise loss over all spans of the batch's videos; queries without a reachable answer are
        left out.
        """
        context = self.encode_context(batch.visual, batch.mask, batch.subtitles, batch.cuts)
        curves = self.curves(self.encode_query(batch.query, batch.query_mask), context)
        scores = self.span_scores(curves, context.mask, context.cuts).flatten(1)
        return {"list": list_wise(scores, self.gains(batch).flatten(1))}

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

    def refine(self, query: Tensor, context: ReelContext) -> tuple[Tensor, Tensor, Tensor]:
        """The best span of each of N windows, for a query (N, 3, h) each, or (1, 3, h) for all.

        Returns (N,): the score, float32, comparable between windows and videos; first and last clip, int64.
        """
        query = query.expand(len(context.mask), -1, -1)
        similarity = torch.einsum("nrh,nlrh->nrl", query, context.clips)
        return self.best_spans(similarity, context.mask, context.cuts)

    def best_spans(
        self, similarity: Tensor, mask: Tensor, cuts: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As :meth:`refine`, from dot products (N, 3, L) of clips and query, the mask and the cuts."""
        cuts = torch.zeros_like(mask) if cuts is None else cuts
        scores = self.span_scores(self._smoothed(similarity, mask, cuts), mask, cuts)
        best, cell = scores.flatten(1).max(dim=1)
        first = cell // self.config.longest_span
        return best, first, first + cell % self.config.longest_span
