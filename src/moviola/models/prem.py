"""PREM: partial relevance enhancement (Hou et al., "Improving Video Corpus Moment Retrieval with Partial
Relevance Enhancement").

Two models trained one after the other. The *collaborative retriever* ranks videos: one query vector a stream
(pictures, subtitles), each compared with the best clip of its stream. The *focus-then-fuse localizer* reads
the best ten videos together with the query and scores every clip as a start and as an end.

Streams are stacked: ``S`` = 2 (pictures, then subtitles), or 1 where ``subtitle_size`` or ``visual_size`` is
0; scores are then those of the one stream, not halved (DiDeMo has pictures only).

No code was released; what the text leaves open is settled thus:

- A feature's fully connected layer is LayerNorm, dropout, Linear, ReLU; positions are learned vectors.
- Biases that a softmax cancels (the pooling's, the boundary heads' last) do not exist.
- A clip without subtitle is a zero vector that takes part like any other; ``mask_silent`` leaves it out.
- A moment that covers its whole video has no weak term. Queries of one video are not each other's negatives,
  nor are pairs of which the batch says that the one's moment answers the other's query.
- The video-to-query loss sets the strong positive against the other queries' best clip of the whole video.
- The gate (equation 9) has unit length over the features, so it shrinks what passes by about the root of
  their number; ``"rescaled"`` multiplies by that root, ``"literal"`` does not.
- The adversarial task reads a separate one-layer transformer on top of the fused clips, so that what it
  classifies has seen the query and its loss reaches all of the localizer. The true moment is one of its
  positives: its IoU with itself is above any threshold.
- A pair's losses are weighted by its ``similarity`` (1 in the paper; graded in ranked sets).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from moviola.errors import InvalidValue
from moviola.models.batches import CandidateBatch, PairBatch, Ranked

__all__ = [
    "Boundaries",
    "Prem",
    "PremConfig",
    "PremContext",
    "PremLocalizer",
    "PremQueries",
    "PremRetriever",
    "relevant_spans",
    "suppress_spans",
]

# The largest tensor of a ranking has about so many numbers (256 MiB of float32); queries are chunked to it.
_LARGEST = 2**26


@dataclass(frozen=True)
class PremConfig:
    """Everything that fixes a PREM; the defaults are the paper's for TVR (section 4.2).

    For DiDeMo: ``subtitle_size=0, max_clips=20, shortest_span=2, longest_span=7``.

    Attributes:
        visual_size, subtitle_size, query_size: features of a clip's pictures, of its subtitles, of a token.
            0 for one of the first two means that the stream does not exist (tables 2 and 6, "Text", "Image").
        hidden_size, feed_forward_size, heads, dropout: the transformers; ``hidden_size`` is D.
        max_clips, max_tokens: most clips of a video and tokens of a query.
        fusion_layers: self-attention + cross-attention layers of the localizer; 0 leaves fusion out.
        mask_silent: leave clips without subtitle (a zero vector) out of the subtitle stream.
        pooling: how the retriever's words become a vector a stream: modality-specific (equation 5), or the
            mean or maximum of the words for both streams (table 3).
        positives: clips that the retriever learns from: the best of the moment and, weaker, the best outside
            it; the best of the moment; or the best of the whole video (table 2, "SR", "WR").
        weak_weight: λ of equation 8.
        video_to_query: whether the retriever also learns from L^q.
        temperature: t of equations 7 and 13.
        gate: how equation 9 is scaled; ``"none"`` passes the streams on untouched (table 6).
        shared_norm: whether boundaries compete over all candidate videos (equation 11) or inside the true
            one only (table 6).
        adversarial_weight: γ of equation 12; 0 leaves the task and its layers out (table 6).
        adversarial_iou: a span above this IoU with the moment is a positive.
        adversarial_predictions: best predictions of a negative video that are negatives.
        clip_seconds: length of a clip.
        top_videos: so many videos are localized in for a query.
        shortest_span, longest_span: ``shortest_span <= end - start < longest_span`` in clips, ``end`` being
            the last clip of the moment.
        nms: predictions of one video above this IoU with a better one are dropped.
        top_moments: moments that a query is answered with, at most.
    """

    visual_size: int = 4352
    subtitle_size: int = 768
    query_size: int = 768
    hidden_size: int = 384
    feed_forward_size: int = 1536
    heads: int = 4
    dropout: float = 0.1
    max_clips: int = 100
    max_tokens: int = 30
    fusion_layers: int = 2
    mask_silent: bool = False
    pooling: Literal["modality", "mean", "max"] = "modality"
    positives: Literal["strong+weak", "strong", "video"] = "strong+weak"
    weak_weight: float = 0.5
    video_to_query: bool = True
    temperature: float = 0.01
    gate: Literal["rescaled", "literal", "none"] = "rescaled"
    shared_norm: bool = True
    adversarial_weight: float = 0.8
    adversarial_iou: float = 0.7
    adversarial_predictions: int = 5
    clip_seconds: float = 1.5
    top_videos: int = 10
    shortest_span: int = 0
    longest_span: int = 24
    nms: float = 0.7
    top_moments: int = 100

    def __post_init__(self) -> None:
        if not (self.visual_size or self.subtitle_size):
            raise InvalidValue("visual_size 0 and subtitle_size 0: give features of at least one stream")
        if self.mask_silent and not (self.visual_size and self.subtitle_size):
            raise InvalidValue("mask_silent: needs both streams, or a silent video would have nothing left")
        if self.hidden_size % self.heads:
            raise InvalidValue(f"hidden_size {self.hidden_size}: must be a multiple of heads {self.heads}")
        if not 0 <= self.shortest_span < self.longest_span:
            raise InvalidValue(
                f"shortest_span {self.shortest_span}, longest_span {self.longest_span}: need "
                "0 <= shortest_span < longest_span"
            )
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise InvalidValue(f"{name} {getattr(self, name)!r}: choose one of {', '.join(known)}")

    @property
    def stream_sizes(self) -> tuple[int, ...]:
        """Feature sizes of the streams that exist, pictures first; S of them."""
        return tuple(size for size in (self.visual_size, self.subtitle_size) if size)


@dataclass(frozen=True)
class PremContext:
    """What PREM knows of V videos before any query: compute once, keep, :meth:`select` from.

    Attributes:
        units: (V, S, L, D), the retriever's clips at length 1.
        content: (V, S, L, D), the localizer's clips. (Ŵ of the gate is not applied ahead: that would spare
            a twentieth of the localizer's work and cost half as much memory again.)
        mask: (V, S, L) bool, True for a clip that takes part.
    """

    units: Tensor
    content: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> PremContext:
        """The videos in these rows, (R,) int64, in that order."""
        return PremContext(self.units[rows], self.content[rows], self.mask[rows])


@dataclass(frozen=True)
class PremQueries:
    """Encoded queries.

    Attributes:
        units: (Q, S, D), the retriever's query vectors at length 1.
        words: (Q, Lq, D), the localizer's words.
        focus: (Q, S, D), the localizer's query vectors that drive its gates.
        mask: (Q, Lq) bool, True for a word.
    """

    units: Tensor
    words: Tensor
    focus: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> PremQueries:
        """The queries in these rows, (R,) int64, in that order."""
        return PremQueries(self.units[rows], self.words[rows], self.focus[rows], self.mask[rows])


@dataclass(frozen=True)
class Boundaries:
    """What the localizer says of N pairs of a query and a video.

    Attributes:
        start, end: (N, L), scores of the clips, -inf where padded.
        fused: (N, L, D), the clips that have read the query.
    """

    start: Tensor
    end: Tensor
    fused: Tensor


class Prem(nn.Module):
    """Retriever and localizer together: ranks the moments of a corpus (section 3.5)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.config = config
        self.retriever = PremRetriever(config)
        self.localizer = PremLocalizer(config)

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> PremContext:
        """Encode videos, each once: (V, L, dv), (V, L) with 1 for a clip, (V, L, ds) or None."""
        return PremContext(
            self.retriever.encode_context(visual, mask, subtitles),
            self.localizer.encode_context(visual, mask, subtitles),
            stream_mask(self.config, mask, subtitles),
        )

    def encode_query(self, query: Tensor, query_mask: Tensor) -> PremQueries:
        """Encode queries: (Q, Lq, dq), (Q, Lq) with 1 for a token."""
        words, focus = self.localizer.encode_query(query, query_mask)
        return PremQueries(self.retriever.encode_query(query, query_mask), words, focus, query_mask > 0)

    def video_scores(self, queries: PremQueries, context: PremContext) -> Tensor:
        """S^R of every video (equation 6): (Q, V), in [-1, 1]."""
        return self.retriever.score(queries.units, context.units, context.mask)

    def rank_videos(
        self, query: Tensor, query_mask: Tensor, context: PremContext, *, keep: int
    ) -> tuple[Tensor, Tensor]:
        """Video retrieval: rows (Q, K) int64 and S^R (Q, K), best first, K = min(keep, V)."""
        units = self.retriever.encode_query(query, query_mask)
        best = [
            self.retriever.score(chunk, context.units, context.mask).topk(min(keep, len(context.mask)))
            for chunk in torch.split(units, _chunk(len(context.mask)))
        ]
        return torch.cat([found.indices for found in best]), torch.cat([found.values for found in best])

    def rank(self, query: Tensor, query_mask: Tensor, context: PremContext) -> Ranked:
        """Corpus search: S = S^R / t + start + end in the best videos (equation 13), suppressed per video.

        Args:
            query: (Q, Lq, dq) float32.
            query_mask: (Q, Lq), 1 for a token.
            context: the corpus.

        Returns:
            ``config.top_moments`` moments a query.
        """
        rows, similarity = self.rank_videos(query, query_mask, context, keep=self.config.top_videos)
        return self._localize(query, query_mask, context, rows, similarity / self.config.temperature)

    def rank_within(self, query: Tensor, query_mask: Tensor, context: PremContext, video: Tensor) -> Ranked:
        """Moments of one given video a query, ``video`` (Q,) int64 rows, by start + end (SVMR)."""
        rows = video[:, None]
        return self._localize(query, query_mask, context, rows, torch.zeros_like(rows, dtype=query.dtype))

    def _localize(
        self, query: Tensor, query_mask: Tensor, context: PremContext, rows: Tensor, prior: Tensor
    ) -> Ranked:
        """The best moments in videos ``rows`` (Q, R), whose spans all get ``prior`` (Q, R) on top."""
        config = self.config
        words, focus = self.localizer.encode_query(query, query_mask)
        word_mask = query_mask > 0
        length = context.mask.shape[-1]
        widest = max(config.feed_forward_size, config.heads * length, config.longest_span)
        found = []
        for part in torch.split(
            torch.arange(len(query), device=rows.device), _chunk(rows.shape[1] * length * widest)
        ):
            videos = rows[part].flatten()
            asked = part.repeat_interleave(rows.shape[1])
            boundaries = self.localizer(
                words[asked], word_mask[asked], focus[asked], context.content[videos], context.mask[videos]
            )
            spans = _span_scores(boundaries.start, boundaries.end, config.shortest_span, config.longest_span)
            spans = torch.unflatten(spans, 0, (len(part), -1)) + prior[part, :, None, None]
            found.append(suppress_spans(spans, threshold=config.nms, keep=config.top_moments))
        place, first, last, score = (torch.cat(column) for column in zip(*found, strict=True))
        return Ranked(
            torch.where(place < 0, place, rows.gather(1, place.clamp(min=0))),
            first * config.clip_seconds,
            (last + 1) * config.clip_seconds,
            score,
        )


class PremRetriever(nn.Module):
    """The multi-modal collaborative video retriever (section 3.3)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.config = config
        self.videos = _VideoEncoder(config)
        self.words = _WordEncoder(config)
        self.pooling = _POOLINGS[config.pooling](config)

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        """Clips at length 1, (V, S, L, D), of (V, L, dv), (V, L) with 1 for a clip, (V, L, ds) or None."""
        return F.normalize(self.videos(visual, mask, subtitles), dim=-1)

    def encode_query(self, query: Tensor, query_mask: Tensor) -> Tensor:
        """Query vectors at length 1, (Q, S, D), of (Q, Lq, dq) and (Q, Lq) with 1 for a token."""
        mask = query_mask > 0
        pooled: Tensor = self.pooling(self.words(query, mask), mask)
        return F.normalize(pooled, dim=-1)

    def score(self, queries: Tensor, units: Tensor, mask: Tensor) -> Tensor:
        """S^R (equation 6), (Q, V), of (Q, S, D), (V, S, L, D) and (V, S, L) bool."""
        at_once = _chunk(len(queries) * mask[0].numel())  # videos
        blocks = zip(torch.split(units, at_once), torch.split(mask, at_once), strict=True)
        return torch.cat([_best(_similarity(queries, block), there) for block, there in blocks], dim=1)

    def loss(self, batch: PairBatch) -> dict[str, Tensor]:
        """Relevant content-enhanced contrastive learning (equations 7 and 8, and L^q).

        ``batch.labels`` are first and last clip, both inclusive. Negatives are the videos, and the queries,
        of the other pairs of the batch.

        Returns:
            Weighted terms, each a mean over pairs: ``strong`` (``video`` where the positive is the best of
            the whole video), ``weak``, ``query``, as configured.
        """
        config = self.config
        mask = stream_mask(config, batch.mask, batch.subtitles)
        units = self.encode_context(batch.visual, batch.mask, batch.subtitles)
        queries = self.encode_query(batch.query, batch.query_mask)
        similarity = _similarity(queries, units)  # (B, V, S, L)
        against = (
            _best(similarity, mask)[:, batch.video] / config.temperature
        )  # (B, B), query by pair's video
        own = similarity[torch.arange(len(batch), device=mask.device), batch.video]  # (B, S, L)
        own_mask = mask[batch.video]
        inside = _inside(batch.labels, batch.mask[batch.video])[:, None]
        negative = ~(batch.positives | (batch.video[:, None] == batch.video))

        def contrast(positive: Tensor, scores: Tensor, others: Tensor) -> Tensor:
            """InfoNCE of one (B,) positive against the others of its row: (B,)."""
            scores = torch.cat([positive[:, None], scores.masked_fill(~others, -torch.inf)], dim=1)
            return batch.similarity * (scores.logsumexp(1) - positive)

        clips = own_mask if config.positives == "video" else own_mask & inside
        positive = _best(own, clips) / config.temperature
        terms = {"video" if config.positives == "video" else "strong": contrast(positive, against, negative)}
        if config.positives == "strong+weak":
            outside = own_mask & ~inside
            there = outside.any(-1).any(-1)
            weak = _best(own, outside) / config.temperature
            terms["weak"] = config.weak_weight * contrast(weak, against, negative) * there
        if config.video_to_query:
            terms["query"] = contrast(positive, against.T, negative.T)
        return {name: term.mean() for name, term in terms.items()}


class PremLocalizer(nn.Module):
    """The focus-then-fuse moment localizer (section 3.4)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.config = config
        size, streams = config.hidden_size, len(config.stream_sizes)
        self.videos = _VideoEncoder(config)
        self.words = _WordEncoder(config)
        if config.gate != "none":
            self.pooling = _ModalityPooling(config)
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

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        """Clips, (V, S, L, D), of (V, L, dv), (V, L) with 1 for a clip, (V, L, ds) or None."""
        states: Tensor = self.videos(visual, mask, subtitles)
        return states

    def encode_query(self, query: Tensor, query_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Words (Q, Lq, D) and what the gates look for, (Q, S, D); S is 0 without gates."""
        mask = query_mask > 0
        words: Tensor = self.words(query, mask)
        if self.config.gate == "none":
            return words, words.new_zeros(len(words), 0, words.shape[-1])
        return words, self.pooling(words, mask)

    def forward(
        self, words: Tensor, word_mask: Tensor, focus: Tensor, content: Tensor, mask: Tensor
    ) -> Boundaries:
        """Score the clips of N pairs of a query and a video.

        Args:
            words: (N, Lq, D).
            word_mask: (N, Lq) bool.
            focus: (N, S, D).
            content: (N, S, L, D).
            mask: (N, S, L) bool.
        """
        clips = mask[:, 0]  # pictures, or subtitles alone, are there for every clip
        focused = self.focus(content, focus) * mask[..., None]
        fused: Tensor = self.fuse(focused.transpose(1, 2).flatten(2))
        for layer in self.fusion:
            fused = layer(fused, words, tgt_key_padding_mask=~clips, memory_key_padding_mask=~word_mask)
        return Boundaries(self.start(fused, clips), self.end(fused, clips), fused)

    def focus(self, content: Tensor, focus: Tensor) -> Tensor:
        """Let through what the query asks of each stream (equation 9): (N, S, L, D) and (N, S, D) to
        (N, S, L, D)."""
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
        asked = torch.arange(len(batch), device=rows.device).repeat_interleave(count)
        inside = _inside(batch.labels, batch.mask[batch.candidates[:, 0]])
        mask = stream_mask(config, batch.mask, batch.subtitles)[rows]
        content = self.encode_context(batch.visual, batch.mask, batch.subtitles)[rows]
        words, focus = self.encode_query(batch.query, batch.query_mask)
        word_mask = batch.query_mask > 0
        boundaries: Boundaries = self(words[asked], word_mask[asked], focus[asked], content, mask)

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
            terms["adversarial"] = config.adversarial_weight * self._adversarial(
                boundaries, batch, mask[:, 0], relevant_spans(batch.labels, lengths, inside.shape[1], config)
            )
        return terms

    def _adversarial(
        self,
        boundaries: Boundaries,
        batch: CandidateBatch,
        clips: Tensor,
        positive: tuple[Tensor, Tensor, Tensor],
    ) -> Tensor:
        """Binary cross entropy of spans like the moment against the best predictions in negative videos."""
        count = batch.candidates.shape[1]
        pair, start, end = positive
        wrong = torch.arange(len(batch.candidates.flatten()), device=pair.device)
        wrong = wrong[wrong % count > 0]
        predicted = _predictions(boundaries, wrong, self.config)
        row = torch.cat([pair * count, predicted[0]])
        logits = self.classifier(
            boundaries.fused, clips, row, torch.cat([start, predicted[1]]), torch.cat([end, predicted[2]])
        )
        target = (torch.arange(len(row), device=row.device) < len(pair)).to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, target, weight=batch.similarity[row // count])


class _Projection(nn.Sequential):
    """A feature enters the model: LayerNorm, dropout, Linear, ReLU."""

    def __init__(self, size: int, config: PremConfig) -> None:
        super().__init__(
            nn.LayerNorm(size), nn.Dropout(config.dropout), nn.Linear(size, config.hidden_size), nn.ReLU()
        )


class _Positions(nn.Embedding):
    """Learned vectors of the positions, small beside what they are added to."""

    def __init__(self, count: int, config: PremConfig, unit: str) -> None:
        super().__init__(count, config.hidden_size)
        self.unit = unit
        nn.init.normal_(self.weight, std=0.02)

    def first(self, length: int) -> Tensor:
        """(length, D)."""
        if length > self.num_embeddings:
            raise InvalidValue(
                f"{length} {self.unit}: this model reads at most {self.num_embeddings}; cut the input, "
                f"or build it with a larger max_{self.unit}"
            )
        return self.weight[:length]


def _transformer(config: PremConfig) -> nn.TransformerEncoderLayer:
    """One layer of the vanilla transformer (norms after the sums, ReLU)."""
    return nn.TransformerEncoderLayer(
        config.hidden_size, config.heads, config.feed_forward_size, config.dropout, batch_first=True
    )


class _WordEncoder(nn.Module):
    """Tokens of a query to words in context: (Q, Lq, dq), (Q, Lq) bool to (Q, Lq, D)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.project = _Projection(config.query_size, config)
        self.positions = _Positions(config.max_tokens, config, "words")
        self.dropout = nn.Dropout(config.dropout)
        self.layer = _transformer(config)

    def forward(self, query: Tensor, mask: Tensor) -> Tensor:
        words = self.dropout(self.project(query) + self.positions.first(query.shape[1]))
        encoded: Tensor = self.layer(words, src_key_padding_mask=~mask)
        return encoded


class _VideoEncoder(nn.Module):
    """Clips of all streams in one transformer, each seeing its own and the other stream, to (V, S, L, D)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.config = config
        self.project = nn.ModuleList(_Projection(size, config) for size in config.stream_sizes)
        self.positions = _Positions(config.max_clips, config, "clips")
        self.modality = nn.Parameter(torch.randn(len(config.stream_sizes), 1, config.hidden_size) * 0.02)
        self.dropout = nn.Dropout(config.dropout)
        self.layer = _transformer(config)

    def forward(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        features = _streams(self.config, visual, subtitles)
        projected = [project(feature) for project, feature in zip(self.project, features, strict=True)]
        clips = torch.stack(projected, dim=1) + self.positions.first(mask.shape[1]) + self.modality
        there = stream_mask(self.config, mask, subtitles)
        encoded = self.layer(self.dropout(clips).flatten(1, 2), src_key_padding_mask=~there.flatten(1))
        return torch.unflatten(encoded, 1, there.shape[1:])


class _ModalityPooling(nn.Module):
    """Equation 5: each stream weighs the words for itself; (Q, Lq, D), (Q, Lq) bool to (Q, S, D)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.likelihood = nn.Linear(config.hidden_size, len(config.stream_sizes), bias=False)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        weights = self.likelihood(words).masked_fill(~mask[..., None], -torch.inf).softmax(dim=1)
        return torch.einsum("qws,qwd->qsd", weights, words)


class _MeanPooling(nn.Module):
    """The mean of the words, for every stream."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.streams = len(config.stream_sizes)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        mean = (words * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return mean[:, None].expand(-1, self.streams, -1)


class _MaxPooling(nn.Module):
    """The largest value of each feature over the words, for every stream."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.streams = len(config.stream_sizes)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        largest = words.masked_fill(~mask[..., None], -torch.inf).amax(1)
        return largest[:, None].expand(-1, self.streams, -1)


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
        self.layer = _transformer(config)
        self.score = nn.Sequential(
            nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 1)
        )

    def forward(self, fused: Tensor, clips: Tensor, row: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Logits (P,) of spans ``start..end`` (inclusive) of rows of ``fused`` (N, L, D)."""
        states = self.layer(fused, src_key_padding_mask=~clips)
        logits: Tensor = self.score(_span_maximum(states, row, start, end))
        return logits[:, 0].float()


_POOLINGS: dict[str, Callable[[PremConfig], nn.Module]] = {
    "modality": _ModalityPooling,
    "mean": _MeanPooling,
    "max": _MaxPooling,
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "pooling": tuple(_POOLINGS),
    "positives": ("strong+weak", "strong", "video"),
    "gate": ("rescaled", "literal", "none"),
}


def stream_mask(config: PremConfig, mask: Tensor, subtitles: Tensor | None) -> Tensor:
    """Which clips take part in which stream: (V, L) with 1 for a clip to (V, S, L) bool."""
    there = (mask > 0)[:, None].repeat(1, len(config.stream_sizes), 1)
    if config.mask_silent and subtitles is not None:
        there[:, 1] &= (subtitles != 0).any(-1)
    return there


def relevant_spans(
    labels: Tensor, lengths: Tensor, size: int, config: PremConfig
) -> tuple[Tensor, Tensor, Tensor]:
    """All spans that overlap the moment by more than ``config.adversarial_iou`` (section 3.4).

    The moment [5, 8] has [4, 8], [5, 7], [6, 8], [5, 9] and itself.

    Args:
        labels: (B, 2) int64, first and last clip, both inclusive.
        lengths: (B,) int64, clips of each video.
        size: L, clips of the longest.
        config: for the threshold.

    Returns:
        Pair, first and last clip of P spans, (P,) int64 each, ordered by pair, start and end.
    """
    first = torch.arange(size, device=labels.device)[:, None]
    last = first.T
    start, end = labels[:, 0, None, None], labels[:, 1, None, None]
    shared = (torch.minimum(last, end) - torch.maximum(first, start) + 1).clamp(min=0)
    union = (last - first + 1) + (end - start + 1) - shared
    # In double precision 7 / 10 is not above 0.7, as it must be.
    alike = (shared.double() / union.clamp(min=1) > config.adversarial_iou) & (last >= first)
    pair, begin, stop = (alike & (last < lengths[:, None, None])).nonzero(as_tuple=True)
    return pair, begin, stop


def suppress_spans(scores: Tensor, *, threshold: float, keep: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best spans of R videos together, without those too like a better one of the same video.

    Exact greedy suppression over all spans at once, one step a moment kept.

    Args:
        scores: (Q, R, L, W), of the span that starts at clip l and has w + 1 clips; -inf where there is none.
        threshold: an IoU above it is too like.
        keep: K.

    Returns:
        Place among the R videos, first clip, last clip, all (Q, K) int64, and score (Q, K), falling. Where
        fewer than K are left the place is -1, the span 0..-1 and the score -inf.
    """
    count, videos, length, width = scores.shape
    first = torch.arange(length, device=scores.device).repeat_interleave(width)
    size = torch.arange(1, width + 1, device=scores.device).repeat(length)
    stop = first + size
    left = scores.flatten(2).clone()
    best = left.amax(2)
    everyone = torch.arange(count, device=scores.device)
    kept = []
    for _ in range(min(keep, videos * length * width)):
        video = best.argmax(1)
        spans = left[everyone, video]
        score, pick = spans.max(1)
        pick = pick[:, None]
        shared = (torch.minimum(stop[pick], stop) - torch.maximum(first[pick], first)).clamp(min=0)
        spans = spans.masked_fill(shared / (size[pick] + size - shared) > threshold, -torch.inf)
        spans = spans.scatter(1, pick, -torch.inf)
        left[everyone, video] = spans
        best[everyone, video] = spans.amax(1)
        kept.append((video, first[pick[:, 0]], stop[pick[:, 0]] - 1, score))
    place, begin, last, score = (torch.stack(column, 1) for column in zip(*kept, strict=True))
    none = score == -torch.inf
    place, begin, last = place.masked_fill(none, -1), begin.masked_fill(none, 0), last.masked_fill(none, -1)
    rest = (0, keep - place.shape[1])
    return (
        F.pad(place, rest, value=-1),
        F.pad(begin, rest, value=0),
        F.pad(last, rest, value=-1),
        F.pad(score, rest, value=-torch.inf),
    )


def _streams(config: PremConfig, visual: Tensor, subtitles: Tensor | None) -> list[Tensor]:
    """The features of the streams that the model has, pictures first."""
    streams = [visual] if config.visual_size else []
    if config.subtitle_size:
        if subtitles is None:
            raise InvalidValue("subtitles None: this model reads them; give features, or set subtitle_size=0")
        streams.append(subtitles)
    return streams


def _similarity(queries: Tensor, units: Tensor) -> Tensor:
    """Cosine of every query and clip, stream by stream: (Q, S, D) and (V, S, L, D) to (Q, V, S, L).

    In full precision also under autocast: divided by t = 0.01, half a per cent is half a unit of a logit.
    """
    with torch.autocast(queries.device.type, enabled=False):
        return torch.einsum("qsd,vsld->qvsl", queries.float(), units.float())


def _best(similarity: Tensor, mask: Tensor) -> Tensor:
    """Best clip of each stream, (..., S, L), mean over the streams that have one at all (equation 6)."""
    best = similarity.masked_fill(~mask, -torch.inf).amax(-1)
    there = mask.any(-1)
    return best.masked_fill(~there, 0.0).sum(-1) / there.sum(-1).clamp(min=1)


def _inside(labels: Tensor, mask: Tensor) -> Tensor:
    """(B, L) bool, the clips of moments (B, 2), first and last inclusive, in videos with mask (B, L)."""
    start, end = labels.T
    wrong = (start < 0) | (end < start) | (end >= mask.sum(1))
    if bool(wrong.any()):
        pair = int(wrong.nonzero()[0, 0])
        raise InvalidValue(
            f"pair {pair}: moment {labels[pair].tolist()} does not lie in its video of "
            f"{int(mask[pair].sum())} clips; give first and last clip, both inclusive, counted from 0"
        )
    clip = torch.arange(mask.shape[1], device=mask.device)
    inside: Tensor = (clip >= start[:, None]) & (clip <= end[:, None])
    return inside


def _span_scores(start: Tensor, end: Tensor, shortest: int, longest: int) -> Tensor:
    """start + end of all spans: (N, L) twice to (N, L, longest), -inf unless shortest <= end - start."""
    ends = F.pad(end, (0, longest - 1), value=-torch.inf).unfold(1, longest, 1)
    scores = start[..., None] + ends
    scores[..., :shortest] = -torch.inf
    return scores


@torch.no_grad()
def _predictions(boundaries: Boundaries, rows: Tensor, config: PremConfig) -> tuple[Tensor, Tensor, Tensor]:
    """The best spans of these rows: row, first and last clip of each, (P,) int64."""
    spans = _span_scores(
        boundaries.start[rows], boundaries.end[rows], config.shortest_span, config.longest_span
    )
    flat = spans.flatten(1)
    best = flat.topk(min(config.adversarial_predictions, flat.shape[1]))
    there = best.values > -torch.inf
    first = best.indices // config.longest_span
    last = first + best.indices % config.longest_span
    return rows[:, None].expand_as(first)[there], first[there], last[there]


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


def _chunk(numbers: int) -> int:
    """Queries that may be worked on at once when one needs so many numbers."""
    return max(1, _LARGEST // max(1, numbers))
