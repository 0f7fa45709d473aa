"""PREM as a whole: its retriever of videos (section 3.3), and how a corpus is ranked (section 3.5)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from moviola.errors import InvalidValue
from moviola.study.models.batches import CandidateBatch, PairBatch, Ranked, Rows, rows_at_once
from moviola.study.models.layers import ModularQuery, full_precision, start_aligned
from moviola.study.models.prem.config import PremConfig
from moviola.study.models.prem.encoders import POOLINGS, QueryEncoder, VideoEncoder, stream_mask
from moviola.study.models.prem.localizer import Boundaries, PremLocalizer
from moviola.study.models.prem.spans import span_scores, suppress_spans
from moviola.study.models.relevant_content import relevant_content_losses

__all__ = ["Prem", "PremContext", "PremQueries", "PremRetriever"]


class PremRetriever(nn.Module):
    """The multi-modal collaborative video retriever (section 3.3)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.config = config
        self.video_encoder = VideoEncoder(config)
        self.query_encoder = QueryEncoder(config)
        self.pooling = POOLINGS[config.pooling](config)
        if config.aligned_start:
            start_aligned(self, config.query_size)

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        """Clips at length 1, (V, S, L, D), of (V, L, dv), (V, L) with 1 for a clip, (V, L, ds) or None."""
        return F.normalize(self.video_encoder(visual, mask, subtitles), dim=-1)

    def encode_query(self, query: Tensor, query_mask: Tensor) -> Tensor:
        """Query vectors at length 1, (Q, S, D), of (Q, Lq, dq) and (Q, Lq) with 1 for a token."""
        mask = query_mask > 0
        pooled: Tensor = self.pooling(self.query_encoder(query, mask, self.video_encoder), mask)
        return F.normalize(pooled, dim=-1)

    def token_weights(self, query: Tensor, query_mask: Tensor) -> Tensor:
        """Weight of each token in each stream's query vector, (Q, S, Lq), sum 1 (alpha of equation 5).

        Arguments as for :meth:`encode_query`.

        Raises:
            InvalidValue: the configured pooling has no weights.
        """
        if not isinstance(self.pooling, ModularQuery):
            raise InvalidValue(f"pooling {self.config.pooling!r}: has no weights; 'modality' has")
        mask = query_mask > 0
        tokens = self.query_encoder(query, mask, self.video_encoder)
        return self.pooling.token_weights(tokens, mask).transpose(1, 2)

    def score(self, queries: Tensor, units: Tensor, mask: Tensor) -> Tensor:
        """S^R (equation 6), (Q, V), of (Q, S, D), (V, S, L, D) and (V, S, L) bool."""
        at_once = rows_at_once(len(queries) * mask[0].numel())  # videos
        blocks = zip(torch.split(units, at_once), torch.split(mask, at_once), strict=True)
        return torch.cat([_best(_similarity(queries, block), valid) for block, valid in blocks], dim=1)

    def loss(self, batch: PairBatch) -> dict[str, Tensor]:
        """:func:`~moviola.study.models.relevant_content.relevant_content_losses` of its own scores."""
        mask = stream_mask(self.config, batch.mask, batch.subtitles)
        units = self.encode_context(batch.visual, batch.mask, batch.subtitles)
        queries = self.encode_query(batch.query, batch.query_mask)
        similarity = _similarity(queries, units)  # (B, V, S, L)
        own = similarity[torch.arange(len(batch), device=mask.device), batch.video]  # (B, S, L)
        return relevant_content_losses(
            self.config, batch, _best(similarity, mask), lambda clips: _best(own, clips), mask[batch.video]
        )


def _similarity(queries: Tensor, units: Tensor) -> Tensor:
    """Cosine of every query and clip, stream by stream: (Q, S, D) and (V, S, L, D) to (Q, V, S, L).

    In full precision also under autocast: divided by t = 0.01, half a per cent is half a unit of a logit.
    """
    with full_precision(queries):
        return torch.einsum("qsd,vsld->qvsl", queries.float(), units.float())


def _best(similarity: Tensor, mask: Tensor) -> Tensor:
    """Best clip of each stream, (..., S, L), mean over the streams that have one at all (equation 6)."""
    best = similarity.masked_fill(~mask, -torch.inf).amax(-1)
    valid = mask.any(-1)
    return best.masked_fill(~valid, 0.0).sum(-1) / valid.sum(-1).clamp(min=1)


@dataclass(frozen=True)
class PremContext(Rows):
    """PREM's encodings of V videos, independent of the query: compute once, keep, :meth:`select` from.

    Attributes:
        units: (V, S, L, D), the retriever's clips at length 1.
        content: (V, S, L, D), the localizer's clips. (Ŵ of the gate is not applied ahead: that would spare
            a twentieth of the localizer's work and cost half as much memory again.)
        mask: (V, S, L) bool, True for a clip that takes part.
    """

    units: Tensor
    content: Tensor
    mask: Tensor


@dataclass(frozen=True)
class PremQueries(Rows):
    """Encoded queries.

    Attributes:
        units, focus: (Q, S, D), vectors of the retriever at length 1, and of the localizer, for its gates.
        tokens, mask: (Q, Lq, D), the localizer's tokens, and (Q, Lq) bool.
    """

    units: Tensor
    tokens: Tensor
    focus: Tensor
    mask: Tensor


class Prem(nn.Module):
    """Retriever and localizer together: ranks the moments of a corpus (section 3.5)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        if config.shared_encoder and config.visual_size:
            raise InvalidValue(
                "prem: shared_encoder is for subtitles alone, or for `prem-apart`; leave it out"
            )
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
        tokens, focus = self.localizer.encode_query(query, query_mask)
        return PremQueries(self.retriever.encode_query(query, query_mask), tokens, focus, query_mask > 0)

    def video_scores(self, query: Tensor, query_mask: Tensor, context: PremContext) -> Tensor:
        """S^R (equation 6), (Q, V), of all videos for all queries."""
        return self.retriever.score(
            self.retriever.encode_query(query, query_mask), context.units, context.mask
        )

    def rank_videos(
        self, query: Tensor, query_mask: Tensor, context: PremContext, *, keep: int
    ) -> tuple[Tensor, Tensor]:
        """Video retrieval: rows (Q, K) int64 and S^R (Q, K), best first, K = min(keep, V)."""
        return self._rank_videos(self.retriever.encode_query(query, query_mask), context, keep)

    def rank(self, query: Tensor, query_mask: Tensor, context: PremContext) -> Ranked:
        """Corpus search: S = S^R / t + start + end in the best videos (equation 13), suppressed per video.

        Args:
            query, query_mask: (Q, Lq, dq) float32, and (Q, Lq), 1 for a token.

        Returns:
            ``config.top_moments`` moments per query.
        """
        queries = self.encode_query(query, query_mask)
        rows, similarity = self._rank_videos(queries.units, context, self.config.top_videos)
        return self._localize(queries, context, rows, similarity / self.config.temperature)

    def rank_given(
        self, query: Tensor, query_mask: Tensor, context: PremContext, *, first_stage: Tensor
    ) -> Ranked:
        """Corpus search in the best videos of another first stage, PREM† of Table 4; else as :meth:`rank`.

        Args:
            query, query_mask: (Q, Lq, dq) float32, and (Q, Lq), 1 for a token.
            first_stage: (Q, V) float32 scores above 0, whose logarithms take the place of S^R: what search
                gives is the exponential of a cosine.
        """
        found = first_stage.log().topk(min(self.config.top_videos, first_stage.shape[1]))
        queries = self.encode_query(query, query_mask)
        return self._localize(queries, context, found.indices, found.values / self.config.temperature)

    def boundaries(self, queries: PremQueries, context: PremContext, video: Tensor) -> Boundaries:
        """Scores of first and last clip in one given video per query, by the localizer (section 3.4).

        Args:
            queries: Q encoded queries.
            context: V encoded videos.
            video: (Q,) int64, rows of the context.
        """
        content, mask = context.content[video], context.mask[video]
        found: Boundaries = self.localizer(queries.tokens, queries.mask, queries.focus, content, mask)
        return found

    def retriever_loss(self, batch: PairBatch) -> dict[str, Tensor]:
        """Terms of the first phase of training: :meth:`PremRetriever.loss`."""
        return self.retriever.loss(batch)

    def localizer_loss(self, batch: CandidateBatch) -> dict[str, Tensor]:
        """Terms of the second phase of training: :meth:`PremLocalizer.loss`."""
        return self.localizer.loss(batch)

    def _rank_videos(self, units: Tensor, context: PremContext, keep: int) -> tuple[Tensor, Tensor]:
        """:meth:`rank_videos` of the retriever's query vectors (Q, S, D)."""
        videos = len(context.mask)
        best = [
            self.retriever.score(chunk, context.units, context.mask).topk(min(keep, videos))
            for chunk in torch.split(units, rows_at_once(videos))
        ]
        return torch.cat([found.indices for found in best]), torch.cat([found.values for found in best])

    def _localize(self, queries: PremQueries, context: PremContext, rows: Tensor, prior: Tensor) -> Ranked:
        """The best moments in videos ``rows`` (Q, R), whose spans all get ``prior`` (Q, R) on top."""
        config, length = self.config, context.mask.shape[-1]
        widest = max(config.feed_forward_size, config.heads * length, config.longest_span)
        at_once = rows_at_once(rows.shape[1] * length * widest)
        localized = []
        for part in torch.split(torch.arange(len(rows), device=rows.device), at_once):
            query = queries.select(part.repeat_interleave(rows.shape[1]))
            boundaries = self.boundaries(query, context, rows[part].flatten())
            spans = span_scores(
                boundaries.start, boundaries.end, shortest=config.shortest_span, longest=config.longest_span
            )
            spans = torch.unflatten(spans, 0, (len(part), -1)) + prior[part, :, None, None]
            localized.append(suppress_spans(spans, threshold=config.nms, keep=config.top_moments))
        place, first, last, score = (torch.cat(column) for column in zip(*localized, strict=True))
        return Ranked(
            torch.where(place < 0, place, rows.gather(1, place.clamp(min=0))),
            first * config.clip_seconds,
            (last + 1) * config.clip_seconds,
            score,
        )
