"""PREM as a whole: ranks the moments of a corpus (section 3.5)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.models.batches import CandidateBatch, PairBatch, Ranked, Rows, rows_at_once
from moviola.models.prem.config import PremConfig
from moviola.models.prem.encoders import stream_mask
from moviola.models.prem.localizer import PremLocalizer
from moviola.models.prem.retriever import PremRetriever
from moviola.models.prem.spans import span_scores, suppress_spans

__all__ = ["Prem", "PremContext", "PremQueries"]


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

    def rank_within(self, query: Tensor, query_mask: Tensor, context: PremContext, video: Tensor) -> Ranked:
        """Moments in one given video per query, ``video`` (Q,) int64 rows, by start + end (SVMR)."""
        rows = video[:, None]
        prior = torch.zeros_like(rows, dtype=query.dtype)
        return self._localize(self.encode_query(query, query_mask), context, rows, prior)

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
            videos = rows[part].flatten()
            query = queries.select(part.repeat_interleave(rows.shape[1]))
            boundaries = self.localizer(
                query.tokens, query.mask, query.focus, context.content[videos], context.mask[videos]
            )
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
