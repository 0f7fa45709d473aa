"""Variants of Reel, each with one idea more (see :data:`reel_ideas.rows.ROWS`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.study.models.layers import ModularQuery, masked_fill, self_attention_bias
from moviola.study.models.losses import list_wise
from moviola.study.models.reel import AnswerBatch, Reel, ReelConfig
from moviola.study.models.spans import sliding

__all__ = [
    "Again", "Boundaries", "Distilled", "EightVectors", "FinerTimes", "FourVectors", "ManyVectors", "SpanMap",
    "UnknownBatch", "UnknownLeftOut",
]  # fmt: skip


# ---- what a query is compared with -----------------------------------------------------------------------


class _OneForAll(nn.Linear):
    """Vectors of a clip, (..., size) to (..., roles * size): its inside stands beside each of a query's."""

    def __init__(self, size: int, vectors: int) -> None:
        super().__init__(size, 3 * size)
        self.vectors = vectors

    def forward(self, x: Tensor) -> Tensor:
        inside, *others = super().forward(x).chunk(3, dim=-1)
        return torch.cat([inside] * self.vectors + others, dim=-1)


class ManyVectors(Reel):
    """Several vectors of a query for "inside"; each clip counts the one that fits it best."""

    vectors = 1

    def __init__(self, config: ReelConfig) -> None:
        super().__init__(config)
        size = config.hidden_size
        self.clip_roles = _OneForAll(size, self.vectors)
        self.query_pool = ModularQuery(size, self.vectors + 2)
        self.query_roles = nn.ModuleList(nn.Linear(size, size) for _ in range(self.vectors + 2))
        for layer in (self.clip_roles, self.query_pool, *self.query_roles):
            nn.init.normal_(cast("nn.Linear", layer).weight, std=0.02)

    def _smoothed(self, similarity: Tensor, mask: Tensor, cuts: Tensor) -> Tensor:
        inside, others = similarity[..., : self.vectors, :], similarity[..., self.vectors :, :]
        return super()._smoothed(torch.cat([inside.amax(dim=-2, keepdim=True), others], dim=-2), mask, cuts)


class FourVectors(ManyVectors):
    """Four of them."""

    vectors = 4


class EightVectors(ManyVectors):
    """Eight of them."""

    vectors = 8


# ---- what a span is worth --------------------------------------------------------------------------------


class SpanMap(Reel):
    """A small network over the map of spans (first clip, length): inside, boundaries, flanks.

    Its last layer begins at zero, so that it begins as Reel does.
    """

    flanks = (2, 6)  # clips before and after a span whose mean is seen
    channels = 8

    def __init__(self, config: ReelConfig) -> None:
        super().__init__(config)
        self.seen = nn.Linear(4 + 2 * len(self.flanks), self.channels)
        self.around = nn.Conv2d(self.channels, self.channels, 3, padding=1)
        self.added = nn.Linear(self.channels, 1)
        nn.init.zeros_(self.added.weight)
        nn.init.zeros_(self.added.bias)

    def span_scores(self, curves: Tensor, mask: Tensor, cuts: Tensor) -> Tensor:
        """Logits of all spans with those of the network; see :meth:`Reel.span_scores`."""
        scores = super().span_scores(curves, mask, cuts)
        hidden = F.gelu(self.seen(self._map(curves) / 10))  # logits are some ten large
        cells = hidden.flatten(0, -4).permute(0, 3, 1, 2)
        mixed = F.gelu(self.around(cells)).permute(0, 2, 3, 1).view_as(hidden)
        added: Tensor = self.added(hidden + mixed)
        return scores + added[..., 0]

    def _map(self, curves: Tensor) -> Tensor:
        """(..., L, longest_span, 4 + 2 flanks) of curves (..., 3, L)."""
        longest = self.config.longest_span
        inside, start, end = curves.unbind(dim=-2)
        inner = sliding(F.pad(inside, (0, longest - 1)), longest)
        lengths = torch.arange(1, longest + 1, device=curves.device)
        seen = [inner.cumsum(dim=-1) / lengths, inner.cummin(dim=-1).values]
        seen += [start[..., None].expand_as(inner), sliding(F.pad(end, (0, longest - 1)), longest)]
        for width in self.flanks:
            sums = F.pad(F.pad(inside, (width, width + longest)).cumsum(dim=-1), (1, 0))
            means = (sums[..., width:] - sums[..., :-width]) / width  # cell i: clips i - width to i - 1
            seen.append(means[..., : inside.shape[-1], None].expand_as(inner))
            after = means[..., width + 1 : width + inside.shape[-1] + longest]
            seen.append(sliding(after, longest))
        return torch.stack(seen, dim=-1)


class Again(Reel):
    """The best 20 spans are looked at again: the query's tokens attend to their stored clips."""

    spans = 20
    flank = 2  # clips on both sides that are seen as well

    def __init__(self, config: ReelConfig) -> None:
        super().__init__(config)
        size = config.hidden_size
        self.clip_reading = nn.Linear(3 * size, size)
        self.is_inside = nn.Embedding(2, size)
        self.attention = nn.MultiheadAttention(size, config.heads, config.dropout, batch_first=True)
        self.reading_norm = nn.LayerNorm(size)
        self.verdict = nn.Sequential(nn.Linear(2 * size, size), nn.GELU(), nn.Linear(size, 1))
        last = cast("nn.Linear", self.verdict[-1])
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def tokens(self, query: Tensor, query_mask: Tensor) -> Tensor:
        """(Q, Lq, h), a query's tokens with each other in mind."""
        tokens = self.query_positions(self.query_projection(query))
        return cast("Tensor", self.query_block(tokens, self_attention_bias(query_mask)))

    def around(self, clips: Tensor, mask: Tensor, spans: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The clips of spans and their flanks (..., S, 3, h), which exist and which lie inside (..., S) bool.

        Args:
            clips, mask: (V, L, 3, h) and (V, L), of videos.
            spans: (..., 3) int64, place of the video, first and last clip.
        """
        video, first, last = (own[..., None] for own in spans.unbind(dim=-1))
        place = first + torch.arange(-self.flank, self.config.longest_span + self.flank, device=spans.device)
        known = place.clamp(0, mask.shape[1] - 1)
        there = (place == known) & (place <= last + self.flank) & (mask[video, known] > 0)
        inside = there & (place >= first) & (place <= last)
        # Attention needs a clip, and the first stands for a span that has none, a cell beyond its video.
        return clips[video, known], there | (place == first), inside

    def verdicts(
        self, tokens: Tensor, tokens_mask: Tensor, clips: Tensor, there: Tensor, inside: Tensor
    ) -> Tensor:
        """(N,) added to the score of each of N spans.

        Args:
            tokens, tokens_mask: (N, Lq, h) and (N, Lq), of the query of each.
            clips: (N, S, 3, h), stored clips of the span and around it.
            there, inside: (N, S) bool, which of them exist, and lie in the span.
        """
        read = self.clip_reading(clips.flatten(-2)) + self.is_inside(inside.long())
        seen, _ = self.attention(tokens, read, read, key_padding_mask=~there, need_weights=False)
        both = torch.cat([tokens, self.reading_norm(tokens + seen)], dim=-1)
        pooled = (both * tokens_mask[..., None]).sum(dim=1) / tokens_mask.sum(dim=1, keepdim=True)
        return cast("Tensor", self.verdict(pooled))[..., 0]

    def loss(self, batch: AnswerBatch) -> dict[str, Tensor]:
        """The list-wise loss over all spans, and one over the best and an answer with the second look."""
        context, curves = self.batch_curves(batch)
        scores = self.span_scores(curves, context.mask, context.cuts).flatten(1)
        gains = self.gains(batch).flatten(1)
        first_look = scores.detach().scatter_add(
            1, gains.argmax(dim=1, keepdim=True), (gains.amax(dim=1, keepdim=True) > 0) * 1e6
        )
        cells = first_look.topk(min(self.spans, scores.shape[1]), dim=1).indices
        length, longest = batch.mask.shape[1], self.config.longest_span
        video, first, width = cells // (length * longest), cells // longest % length, cells % longest
        spans = torch.stack([video, first, first + width], dim=-1)
        clips, there, inside = self.around(context.clips, context.mask, spans)
        tokens = self.tokens(batch.query, batch.query_mask)
        count = cells.shape[1]
        added = self.verdicts(
            tokens.repeat_interleave(count, dim=0), batch.query_mask.repeat_interleave(count, dim=0),
            clips.flatten(0, 1), there.flatten(0, 1), inside.flatten(0, 1),
        ).view_as(cells)  # fmt: skip
        again = list_wise(scores.gather(1, cells) + added, gains.gather(1, cells))
        return {"list": list_wise(scores, gains), "again": again}


class FinerTimes(Reel):
    """Times finer than a clip: offsets of start and end, in clips, read off the curves around them.

    Attributes:
        moved: (N, 2) offsets of the spans that :meth:`best_spans` returned last; read by its refiner.
    """

    moved: Tensor

    def __init__(self, config: ReelConfig) -> None:
        super().__init__(config)
        self.offsets = nn.Sequential(
            nn.Conv1d(3, 16, config.kernel, padding=config.kernel // 2), nn.GELU(), nn.Conv1d(16, 2, 1)
        )

    def clip_offsets(self, curves: Tensor) -> Tensor:
        """(..., 2, L) in (-1/2, 1/2), for a start in each clip and for an end, of curves (..., 3, L)."""
        found = self.offsets((curves / 10).flatten(0, -3))
        return cast("Tensor", found.tanh() / 2).view(*curves.shape[:-2], 2, curves.shape[-1])

    def loss(self, batch: AnswerBatch) -> dict[str, Tensor]:
        """The list-wise loss, and the distance of offsets from those of answers, by similarity."""
        context, curves = self.batch_curves(batch)
        scores = self.span_scores(curves, context.mask, context.cuts).flatten(1)
        own = self.clip_offsets(curves[batch.answer[:, 0], batch.answer[:, 1]])
        edges = batch.span.round()
        clips = torch.stack([edges[:, 0], edges[:, 1] - 1], dim=1).long()
        known = clips.clamp(0, batch.mask.shape[1] - 1)
        found = own.gather(2, known[..., None])[..., 0]
        weight = batch.similarity[:, None] ** self.config.similarity_power * (known == clips)
        distance = F.smooth_l1_loss(found, batch.span - edges, reduction="none", beta=0.1)
        times = (weight * distance).sum() / weight.sum().clamp(min=1e-6)
        return {"list": list_wise(scores, self.gains(batch).flatten(1)), "times": times}

    def best_spans(
        self, similarity: Tensor, mask: Tensor, cuts: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Those of :class:`Reel`; the offsets are kept in :attr:`moved`."""
        best, first, last = super().best_spans(similarity, mask, cuts)
        curves = self._smoothed(similarity, mask, torch.zeros_like(mask) if cuts is None else cuts)
        offsets = self.clip_offsets(curves)
        self.moved = offsets.gather(2, torch.stack([first, last], dim=1)[..., None])[..., 0]
        return best, first, last


# ---- what is learned -------------------------------------------------------------------------------------


class Boundaries(Reel):
    """The first clip of an answer against those around it, and the last one, besides."""

    reach = 4  # clips on both sides
    weight = 0.25

    def loss(self, batch: AnswerBatch) -> dict[str, Tensor]:
        """The list-wise loss, and the cross-entropy of both boundaries among the clips around them."""
        context, curves = self.batch_curves(batch)
        scores = self.span_scores(curves, context.mask, context.cuts).flatten(1)
        own = curves[batch.answer[:, 0], batch.answer[:, 1], 1:]
        mask = batch.mask[batch.answer[:, 1]]
        edges = batch.span.round().long()
        clips = torch.stack([edges[:, 0], edges[:, 1] - 1], dim=1)
        place = clips[..., None] + torch.arange(-self.reach, self.reach + 1, device=clips.device)
        known = place.clamp(0, mask.shape[1] - 1)
        there = (place == known) & (mask[:, None].expand(-1, 2, -1).gather(2, known) > 0)
        found = masked_fill(own.gather(2, known), there.float()).log_softmax(dim=-1)[..., self.reach]
        weight = batch.similarity[:, None] ** self.config.similarity_power * there[..., self.reach]
        missed = -(weight * found).sum() / weight.sum().clamp(min=1e-6)
        gains = self.gains(batch).flatten(1)
        return {"list": list_wise(scores, gains), "boundaries": self.weight * missed}


@dataclass(frozen=True)
class UnknownBatch(AnswerBatch):
    """With moments that nobody said to answer a query, or not to.

    Attributes:
        unknown: (U, 2) int64, row of a query and row of a video.
        unknown_span: (U, 2) float32, start and end in clips, exclusive.
    """

    unknown: Tensor
    unknown_span: Tensor


class UnknownLeftOut(Reel):
    """Spans of unknown relevance take no part in the softmax."""

    def loss(self, batch: AnswerBatch) -> dict[str, Tensor]:
        """The list-wise loss over all spans but those."""
        assert isinstance(batch, UnknownBatch)
        context, curves = self.batch_curves(batch)
        scores = self.span_scores(curves, context.mask, context.cuts).flatten(1)
        gains = self.gains(batch).flatten(1)
        alike = torch.ones(len(batch.unknown), device=scores.device)
        unknown = self.gains(
            replace(batch, answer=batch.unknown, span=batch.unknown_span, similarity=alike)
        ).flatten(1)
        left_out = (unknown > 0) & (gains == 0)
        return {"list": list_wise(scores.masked_fill(left_out, -1e10), gains)}


class Distilled(Reel):
    """Learns the mean of what several trained ones score, besides."""

    weight = 0.5
    teachers: Sequence[Reel] = ()

    def loss(self, batch: AnswerBatch) -> dict[str, Tensor]:
        """The list-wise loss, and the divergence from the teachers' softmax over all spans."""
        context, curves = self.batch_curves(batch)
        scores = self.span_scores(curves, context.mask, context.cuts).flatten(1)
        with torch.no_grad():
            taught = torch.stack([_scores(teacher, batch) for teacher in self.teachers]).mean(dim=0)
        gains = self.gains(batch).flatten(1)
        own, goal = scores.log_softmax(dim=1), taught.log_softmax(dim=1)
        apart = F.kl_div(own, goal, reduction="batchmean", log_target=True)
        return {"list": list_wise(scores, gains), "teachers": self.weight * apart}


def _scores(model: Reel, batch: AnswerBatch) -> Tensor:
    context, curves = model.batch_curves(batch)
    return model.span_scores(curves, context.mask, context.cuts).flatten(1)
