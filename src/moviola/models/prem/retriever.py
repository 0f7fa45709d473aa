"""PREM's multi-modal collaborative video retriever (section 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from moviola.models.batches import PairBatch, rows_at_once
from moviola.models.layers import full_precision
from moviola.models.prem.config import PremConfig
from moviola.models.prem.encoders import POOLINGS, QueryEncoder, VideoEncoder, stream_mask
from moviola.models.prem.spans import clips_inside

__all__ = ["PremRetriever"]


class PremRetriever(nn.Module):
    """The multi-modal collaborative video retriever (section 3.3)."""

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        self.config = config
        self.video_encoder = VideoEncoder(config)
        self.query_encoder = QueryEncoder(config)
        self.pooling = POOLINGS[config.pooling](config)

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        """Clips at length 1, (V, S, L, D), of (V, L, dv), (V, L) with 1 for a clip, (V, L, ds) or None."""
        return F.normalize(self.video_encoder(visual, mask, subtitles), dim=-1)

    def encode_query(self, query: Tensor, query_mask: Tensor) -> Tensor:
        """Query vectors at length 1, (Q, S, D), of (Q, Lq, dq) and (Q, Lq) with 1 for a token."""
        mask = query_mask > 0
        pooled: Tensor = self.pooling(self.query_encoder(query, mask, self.video_encoder), mask)
        return F.normalize(pooled, dim=-1)

    def score(self, queries: Tensor, units: Tensor, mask: Tensor) -> Tensor:
        """S^R (equation 6), (Q, V), of (Q, S, D), (V, S, L, D) and (V, S, L) bool."""
        at_once = rows_at_once(len(queries) * mask[0].numel())  # videos
        blocks = zip(torch.split(units, at_once), torch.split(mask, at_once), strict=True)
        return torch.cat([_best(_similarity(queries, block), valid) for block, valid in blocks], dim=1)

    def loss(self, batch: PairBatch) -> dict[str, Tensor]:
        """Relevant content-enhanced contrastive learning (equations 7 and 8, and L^q).

        ``batch.labels`` are first and last clip, both inclusive. Negatives are the other videos of the batch,
        each once however many pairs share it, and the queries of the other pairs, without those that
        ``batch.positives`` marks.

        Returns:
            Weighted terms, each a mean over pairs: ``strong`` (``video`` where the positive is the best of
            the whole video), ``weak``, ``query``, as configured.
        """
        config = self.config
        mask = stream_mask(config, batch.mask, batch.subtitles)
        units = self.encode_context(batch.visual, batch.mask, batch.subtitles)
        queries = self.encode_query(batch.query, batch.query_mask)
        similarity = _similarity(queries, units)  # (B, V, S, L)
        against = _best(similarity, mask) / config.temperature  # (B, V)
        own = similarity[torch.arange(len(batch), device=mask.device), batch.video]  # (B, S, L)
        own_mask = mask[batch.video]
        inside = clips_inside(batch.labels, batch.mask[batch.video])[:, None]
        pair_of = F.one_hot(batch.video, len(batch.mask)).to(against.dtype)
        negative = (batch.positives.to(against.dtype) @ pair_of) == 0  # (B, V): a video counts once

        def contrast(positive: Tensor, scores: Tensor, others: Tensor) -> Tensor:
            """InfoNCE of one (B,) positive against the others of its row: (B,)."""
            scores = torch.cat([positive[:, None], scores.masked_fill(~others, -torch.inf)], dim=1)
            return batch.similarity * (scores.logsumexp(1) - positive)

        clips = own_mask if config.positives == "video" else own_mask & inside
        positive = _best(own, clips) / config.temperature
        terms = {"video" if config.positives == "video" else "strong": contrast(positive, against, negative)}
        if config.positives == "strong+weak":
            outside = own_mask & ~inside
            any_outside = outside.any(-1).any(-1)
            weak = _best(own, outside) / config.temperature
            terms["weak"] = config.weak_weight * contrast(weak, against, negative) * any_outside
        if config.video_to_query:
            terms["query"] = contrast(positive, against[:, batch.video].T, ~batch.positives.T)
        return {name: term.mean() for name, term in terms.items()}


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
