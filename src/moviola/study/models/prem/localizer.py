"""PREM's focus-then-fuse moment localizer (section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from moviola.study.models.batches import CandidateBatch
from moviola.study.models.layers import full_precision, start_aligned
from moviola.study.models.prem.config import PremConfig
from moviola.study.models.prem.encoders import (
    QueryEncoder,
    VideoEncoder,
    modality_pooling,
    stream_mask,
    transformer,
)
from moviola.study.models.prem.spans import relevant_spans, span_scores
from moviola.study.models.relevant_content import clips_inside

__all__ = ["Boundaries", "PremLocalizer"]

_LIKENESS = 10.0
"""What the cosine of line and query adds to a boundary's score before anything is learned."""


@dataclass(frozen=True)
class Boundaries:
    """Logits of the localizer for N pairs of a query and a video.

    Attributes:
        start, end: (N, L), scores of the clips, -inf where padded.
        fused: (N, L, D), the clips that have read the query.
    """

    start: Tensor
    end: Tensor
    fused: Tensor


class PremLocalizer(nn.Module):
    """The focus-then-fuse moment localizer (section 3.4).

    With a shared encoder the cosine of a clip and the query, times a learned weight, is added to the scores
    of both boundaries: a line like the query is found before anything is learned. Not the paper's.
    """

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.config = config
        size, streams = config.hidden_size, len(config.stream_sizes)
        self.video_encoder = VideoEncoder(config)
        self.query_encoder = QueryEncoder(config)
        if config.gate != "none" or config.shared_encoder:
            self.pooling = modality_pooling(config)
        if config.shared_encoder:
            self.likeness = nn.Parameter(torch.tensor(_LIKENESS))
        if config.gate != "none":
            self.gates = nn.ModuleList(nn.Linear(size, size) for _ in range(streams))
        self.fuse = nn.Linear(streams * size, size)
        self.fusion = nn.ModuleList(
            nn.TransformerDecoderLayer(
                size, config.heads, config.feed_forward_size, config.dropout, batch_first=True
            )
            for _ in range(config.fusion_layers)
        )
        self.start = _BoundaryHead(size)
        self.end = _BoundaryHead(size)
        if config.adversarial_weight:
            self.classifier = _SpanClassifier(config)
        if config.aligned_start:
            start_aligned(self, config.query_size)

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        """Clips, (V, S, L, D), of (V, L, dv), (V, L) with 1 for a clip, (V, L, ds) or None."""
        return cast("Tensor", self.video_encoder(visual, mask, subtitles))

    def encode_query(self, query: Tensor, query_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens (Q, Lq, D) and what clips are compared with, (Q, S, D); S is 0 where nothing compares."""
        mask = query_mask > 0
        tokens: Tensor = self.query_encoder(query, mask, self.video_encoder)
        if self.config.gate == "none" and not self.config.shared_encoder:
            return tokens, tokens.new_zeros(len(tokens), 0, tokens.shape[-1])
        return tokens, self.pooling(tokens, mask)

    def forward(
        self, tokens: Tensor, token_mask: Tensor, focus: Tensor, content: Tensor, mask: Tensor
    ) -> Boundaries:
        """Score the clips of N pairs: (N, Lq, D), (N, Lq) bool, (N, S, D), (N, S, L, D), (N, S, L) bool."""
        clips = mask[:, 0]  # pictures, or subtitles alone, are there for every clip
        focused = self.focus(content, focus) * mask[..., None]
        fused: Tensor = self.fuse(focused.transpose(1, 2).flatten(2))
        for layer in self.fusion:
            fused = layer(fused, tokens, tgt_key_padding_mask=~clips, memory_key_padding_mask=~token_mask)
        start, end = self.start(fused, clips), self.end(fused, clips)
        if self.config.shared_encoder:  # subtitles are the only stream
            with full_precision(content):
                cosine = F.cosine_similarity(content[:, 0].float(), focus.float(), dim=-1)
            start, end = start + self.likeness * cosine, end + self.likeness * cosine
        return Boundaries(start, end, fused)

    def focus(self, content: Tensor, focus: Tensor) -> Tensor:
        """Let through what the query (N, S, D) asks of each stream (N, S, L, D) (equation 9)."""
        if self.config.gate == "none":
            return content
        keys = torch.stack([gate(content[:, stream]) for stream, gate in enumerate(self.gates)], dim=1)
        scale = sqrt(self.config.hidden_size) if self.config.gate == "rescaled" else 1.0
        return F.normalize(keys * focus[:, :, None], dim=-1) * scale * content

    def loss(self, batch: CandidateBatch) -> dict[str, Tensor]:
        """Boundaries with Shared-Norm (equation 11) and the adversarial task (equation 12).

        Returns:
            Weighted terms: ``start`` and ``end``, means over queries, and ``adversarial``, a mean over spans.
        """
        config = self.config
        count = batch.candidates.shape[1]
        rows = batch.candidates.flatten()
        query = torch.arange(len(batch), device=rows.device).repeat_interleave(count)
        inside = clips_inside(batch.labels, batch.mask[batch.candidates[:, 0]])
        mask = stream_mask(config, batch.mask, batch.subtitles)[rows]
        content = self.encode_context(batch.visual, batch.mask, batch.subtitles)[rows]
        tokens, focus = self.encode_query(batch.query, batch.query_mask)
        token_mask = batch.query_mask > 0
        boundaries: Boundaries = self(tokens[query], token_mask[query], focus[query], content, mask)

        def likelihood(scores: Tensor, label: Tensor) -> Tensor:
            scores = torch.unflatten(scores, 0, (-1, count))
            rivals = scores.flatten(1) if config.shared_norm else scores[:, 0]
            missed = rivals.logsumexp(1) - scores[:, 0].gather(1, label[:, None])[:, 0]
            return (batch.similarity * missed).mean()

        terms = {
            "start": likelihood(boundaries.start, batch.labels[:, 0]),
            "end": likelihood(boundaries.end, batch.labels[:, 1]),
        }
        if config.adversarial_weight:
            lengths = batch.mask[batch.candidates[:, 0]].sum(1).long()
            spans = relevant_spans(batch.labels, lengths, inside.shape[1], config)
            missed = self._adversarial(boundaries, batch, mask[:, 0], spans)
            terms["adversarial"] = config.adversarial_weight * missed
        return terms

    def _adversarial(
        self, boundaries: Boundaries, batch: CandidateBatch, mask: Tensor, positive: tuple[Tensor, ...]
    ) -> Tensor:
        """Binary cross entropy of spans like the moment against the best predictions in negative videos."""
        count = batch.candidates.shape[1]
        wrong = torch.arange(len(mask), device=mask.device)
        predicted = _predictions(boundaries, wrong[wrong % count > 0], self.config)
        spans = zip((positive[0] * count, *positive[1:]), predicted, strict=True)
        row, start, end = (torch.cat(both) for both in spans)
        logits = self.classifier(boundaries.fused, mask, row, start, end)
        target = (torch.arange(len(row), device=row.device) < len(positive[0])).to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, target, weight=batch.similarity[row // count])


class _BoundaryHead(nn.Module):
    """Two convolutions over the clips: (N, L, D), (N, L) bool to scores (N, L), -inf where padded."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.wide = nn.Conv1d(size, 128, kernel_size=5, padding=2)
        self.narrow = nn.Conv1d(128, 1, kernel_size=1, bias=False)

    def forward(self, fused: Tensor, clips: Tensor) -> Tensor:
        hidden = torch.relu(self.wide((fused * clips[..., None]).transpose(1, 2)))
        scores: Tensor = self.narrow(hidden)[:, 0].float()
        return scores.masked_fill(~clips, -torch.inf)


class _SpanClassifier(nn.Module):
    """Is this span what the query asks for? A transformer over the clips, their maximum, three layers."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.layer = transformer(config)
        self.score = nn.Sequential(
            nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 1)
        )

    def forward(self, fused: Tensor, clips: Tensor, row: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Logits (P,) of spans ``start..end`` (inclusive) of rows of ``fused`` (N, L, D)."""
        states = self.layer(fused, src_key_padding_mask=~clips)
        logits: Tensor = self.score(_span_maximum(states, row, start, end))
        return logits[:, 0].float()


@torch.no_grad()
def _predictions(boundaries: Boundaries, rows: Tensor, config: PremConfig) -> tuple[Tensor, Tensor, Tensor]:
    """The best spans of these rows: row, first and last clip of each, (P,) int64."""
    start, end = boundaries.start[rows], boundaries.end[rows]
    flat = span_scores(start, end, shortest=config.shortest_span, longest=config.longest_span).flatten(1)
    best = flat.topk(min(config.adversarial_predictions, flat.shape[1]))
    valid = best.values > -torch.inf
    first = best.indices // config.longest_span
    last = first + best.indices % config.longest_span
    return rows[:, None].expand_as(first)[valid], first[valid], last[valid]


def _span_maximum(states: Tensor, row: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Largest value of each feature in P spans (both ends inclusive) of (N, L, D): (P, D).

    Maxima over 1, 2, 4, … neighbours are made once; any span is covered by two of one size.
    """
    level = torch.frexp((end - start + 1).to(torch.float32)).exponent - 1
    pooled = states.new_zeros(len(row), states.shape[-1])
    table, size = states, 1
    for step in range(int(level.max()) + 1):
        here = level == step
        left, right = table[row[here], start[here]], table[row[here], end[here] - size + 1]
        pooled[here] = torch.maximum(left, right)
        if 2 * size <= states.shape[1]:
            table, size = torch.maximum(table[:, :-size], table[:, size:]), 2 * size
    return pooled
