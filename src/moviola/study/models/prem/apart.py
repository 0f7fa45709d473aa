"""Two PREMs, of pictures and of subtitles: each answers the queries of its types.

In the paper's model both streams share every encoder, and each reads the other. Where few queries are about
what is said, it does not learn to find it so (docs/benchmark). Here they share nothing, and the type of a
query, which is learned, chooses the one that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from moviola.errors import InvalidValue
from moviola.study.models.batches import CandidateBatch, PairBatch, Ranked
from moviola.study.models.layers import ModularQuery
from moviola.study.models.prem.config import PremConfig
from moviola.study.models.prem.model import Prem, PremContext

__all__ = ["PremApart"]

_ROUNDING = 1e-5
"""By which the weight of subtitles must be above a half: rounding must not decide between equal ones."""


class PremApart(nn.Module):
    """Both PREMs, and what chooses between them.

    Attributes:
        halves: the PREM of pictures, and that of subtitles.
        type_predictor: of a query's type, from its tokens.

    Raises:
        InvalidValue: a stream is missing.
    """

    def __init__(self, config: PremConfig) -> None:
        super().__init__()
        if len(config.stream_sizes) < 2:
            raise InvalidValue("prem-apart: needs pictures and subtitles; give both, or train `prem`")
        self.config = config
        self.halves = nn.ModuleList(
            (
                Prem(replace(config, subtitle_size=0, shared_encoder=False)),
                Prem(replace(config, visual_size=0)),
            )
        )
        self.type_predictor = ModularQuery(config.query_size)

    # ---- encoding ----------------------------------------------------------------------------------------

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> PremContext:
        """Encode videos, each once; as :meth:`Prem.encode_context`, with S = 2."""
        own = [half.encode_context(visual, mask, subtitles) for half in self._halves]
        columns = ([getattr(context, name) for context in own] for name in ("units", "content", "mask"))
        return PremContext(*(torch.cat(column, dim=1) for column in columns))

    def stream_of(self, query: Tensor, query_mask: Tensor) -> Tensor:
        """The half that answers each query, (Q,) int64: 0 by pictures, 1 by subtitles."""
        weights = self.type_predictor.stream_weights(query, query_mask)
        return (weights[:, 1] > 0.5 + _ROUNDING).long()

    # ---- ranking -----------------------------------------------------------------------------------------

    def video_scores(self, query: Tensor, query_mask: Tensor, context: PremContext) -> Tensor:
        """S^R (equation 6) of the half that answers, (Q, V)."""
        return self._answered(lambda half, *own: (half.video_scores(*own),), query, query_mask, context)[0]

    def rank_videos(
        self, query: Tensor, query_mask: Tensor, context: PremContext, *, keep: int
    ) -> tuple[Tensor, Tensor]:
        """Video retrieval, as :meth:`Prem.rank_videos`."""
        best, scores = self._answered(partial(Prem.rank_videos, keep=keep), query, query_mask, context)
        return best, scores

    def rank(self, query: Tensor, query_mask: Tensor, context: PremContext) -> Ranked:
        """Corpus search, as :meth:`Prem.rank`."""

        def ranked(half: Prem, *own: Any) -> tuple[Tensor, ...]:
            found = half.rank(*own)
            return found.video, found.start, found.end, found.score

        return Ranked(*self._answered(ranked, query, query_mask, context))

    def _answered(
        self,
        found: Callable[..., tuple[Tensor, ...]],
        query: Tensor,
        query_mask: Tensor,
        context: PremContext,
    ) -> tuple[Tensor, ...]:
        """What each half finds for its own queries, in the queries' order.

        ``found`` takes a half, its queries with their mask, and its stream of the context.
        """
        stream = self.stream_of(query, query_mask)
        order, parts = [], []
        for number, half in enumerate(self._halves):
            rows = (stream == number).nonzero()[:, 0]
            if len(rows):
                own = slice(number, number + 1)
                streams = PremContext(context.units[:, own], context.content[:, own], context.mask[:, own])
                order.append(rows)
                parts.append(found(half, query[rows], query_mask[rows], streams))
        place = torch.cat(order).argsort()
        return tuple(torch.cat(column)[place] for column in zip(*parts, strict=True))

    # ---- training ----------------------------------------------------------------------------------------

    @property
    def retriever(self) -> nn.Module:
        """Everything that the first phase of training learns."""
        return nn.ModuleList([*(half.retriever for half in self._halves), self.type_predictor])

    @property
    def localizer(self) -> nn.Module:
        """Everything that the second phase of training learns."""
        return nn.ModuleList(half.localizer for half in self._halves)

    def retriever_loss(self, batch: PairBatch) -> dict[str, Tensor]:
        """Terms of the half that a batch is for, and of the types: see :meth:`PremRetriever.loss`.

        Raises:
            InvalidValue: queries of a batch have no type, or are of both streams.
        """
        half, stream = self._half_of(batch)
        weights = self.type_predictor.stream_weights(batch.query, batch.query_mask)
        missed = functional.nll_loss(weights.clamp(min=1e-12).log(), stream.long())
        return {**half.retriever_loss(batch), "type": missed}

    def localizer_loss(self, batch: CandidateBatch) -> dict[str, Tensor]:
        """Terms of the half that a batch is for: see :meth:`PremLocalizer.loss`; errors as before."""
        return self._half_of(batch)[0].localizer_loss(batch)

    def _half_of(self, batch: PairBatch | CandidateBatch) -> tuple[Prem, Tensor]:
        """The half that learns from a batch, and the stream (B,) of its queries."""
        if batch.spoken is None:
            raise InvalidValue(
                "prem-apart: a training query has no type; give a pair file with the field 'type' (v, t or "
                "vt), or train `prem`"
            )
        said = bool(batch.spoken[0])
        if bool((batch.spoken != said).any()):
            raise InvalidValue("prem-apart: a batch has queries of both streams; give one of each stream")
        return self._halves[said], batch.spoken

    @property
    def _halves(self) -> Sequence[Prem]:
        return cast("Sequence[Prem]", self.halves)
