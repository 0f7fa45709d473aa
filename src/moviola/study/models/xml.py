"""XML: ranks the moments of a whole corpus from the cosine of its best clip and two curves of boundaries.

Lei et al., "TVR: A Large-Scale Dataset for Video-Subtitle Moment Retrieval" (ECCV 2020), section 4, as
TVR-Ranking (appendix C) trains it for ranked retrieval; with the potentially relevant pairs of Maeoki et al.
(:mod:`moviola.study.models.relevant_pairs`) it is also the backbone of that paper.

A query becomes one vector per stream (pictures, and subtitles where there are any). A video becomes two
vectors per clip and stream: the first finds the video, the second, which has read the other stream, the
moment.

Where it departs from the texts:

- A video of which some moment in the batch answers a query is no negative of it, as TVR-Ranking says and the
  release does not have it; ``positive_mask=False`` gives the release's numbers.
- A moment ends with the clip before its label, as the labels mean it. The release adds a clip when decoding,
  one more than its labels have; ``release_end=True`` gives the release's spans.
- Padding changes nothing; ``reference_padding=True`` gives the release's numbers
  (:mod:`moviola.study.models.layers`).
- With one stream alone the score and the curve are that stream's, and nothing attends across streams.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from moviola.errors import InvalidValue
from moviola.study.models.batches import PairBatch, Rows
from moviola.study.models.checks import require_odd
from moviola.study.models.layers import (
    Attention,
    AttentionBlock,
    InputProjection,
    LearnedPositions,
    best_clip_score,
    best_present,
    full_precision,
    present,
    self_attention_bias,
)
from moviola.study.models.losses import in_batch_ranking_loss, span_cross_entropy
from moviola.study.models.relevant_content import RelevantContent, relevant_content_losses
from moviola.study.models.relevant_pairs import RelevantPairsConfig, relevant_pair_losses
from moviola.study.models.streams import TwoStreams, TwoStreamsConfig

__all__ = ["XML", "XMLConfig", "XMLContext", "XMLQueries", "with_endpoints"]

ENDPOINTS = 2
"""Numbers that :func:`with_endpoints` appends to a clip's features."""


@dataclass(frozen=True)
class XMLConfig(TwoStreamsConfig):
    """Everything that fixes an XML; the defaults are those of TVR-Ranking.

    Those of Charades-STA and DiDeMo are in :mod:`moviola.study.training.data_sets`. Both sizes of a clip's
    features count the two endpoints of :func:`with_endpoints`.

    Attributes:
        kernel: width of the convolutions that predict boundaries; odd.
        positive_mask: leave the videos that are related to a query out of its negatives.
        relevant_pairs: the terms of Maeoki et al. that are added; None for none.
        relevant_content: PREM's losses of videos in place of XML's ranking of videos and queries, as its
            paper tunes another retriever with them; None for XML's own.
        release_end: decode the end one clip later than the labels mean it.
    """

    kernel: int = 5
    positive_mask: bool = True
    relevant_pairs: RelevantPairsConfig | None = None
    relevant_content: RelevantContent | None = None
    release_end: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_odd(self.kernel)
        if self.relevant_content is not None and self.relevant_pairs is not None:
            raise InvalidValue("relevant_content and relevant_pairs: both replace XML's ranking; give one")


@dataclass(frozen=True)
class XMLContext(Rows):
    """V encoded videos, free of any query.

    Attributes:
        retrieval: (V, S, L, D) float32, what finds the video; S streams, pictures before subtitles. A zero
            vector is a clip that takes no part in its stream.
        localisation: (V, L, S * D) float32, what finds the moment; streams side by side.
        mask: (V, L) float32, 1 for a clip.
    """

    retrieval: Tensor
    localisation: Tensor
    mask: Tensor


@dataclass(frozen=True)
class XMLQueries(Rows):
    """Q encoded queries.

    Attributes:
        retrieval: (Q, S, D) float32, one vector per stream, to compare with a context's ``retrieval``.
        localisation: (Q, S * D) float32, the same for its ``localisation``.
        weights: (Q, S) float32, how much each stream counts, sum 1.
    """

    retrieval: Tensor
    localisation: Tensor
    weights: Tensor


class XML(TwoStreams):
    """Encodes, trains and ranks as section 4 of TVR says; keys of the state dict are those of the release."""

    def __init__(self, config: XMLConfig) -> None:
        super().__init__(config, endpoints=ENDPOINTS, later=int(config.release_end))
        size, heads, dropout = config.hidden_size, config.heads, config.dropout
        self.query_pos_embed = LearnedPositions(config.max_tokens, size, dropout)
        self.ctx_pos_embed = LearnedPositions(config.max_clips, size, dropout)
        self.query_input_proj = InputProjection(config.query_size, size, dropout)
        self.query_encoder = AttentionBlock(size, heads, dropout)
        for stream, features in self.stream_sizes.items():
            self.add_module(f"{stream}_input_proj", InputProjection(features, size, dropout))
            self.add_module(f"{stream}_encoder1", AttentionBlock(size, heads, dropout))
            self.add_module(f"{stream}_encoder2", AttentionBlock(size, heads, dropout))
            self.add_module(f"{stream}_query_linear", nn.Linear(size, size))
            if len(self.stream_sizes) > 1 and not self.apart:
                self.add_module(f"{stream}_cross_att", Attention(size, heads, dropout))
                self.add_module(f"{stream}_cross_layernorm", nn.LayerNorm(size))
        self.complete(config.kernel)

    # ---- encoding ----------------------------------------------------------------------------------------

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None = None) -> XMLContext:
        """Encodes V videos; arguments and errors as in :meth:`attended_streams`."""
        first, crossed, masks = self.attended_streams(visual, mask, subtitles)
        second = self.attend("encoder2", crossed, masks)
        retrieval = torch.stack(self.without_silence(first, masks), dim=1)
        localisation = torch.cat(self.without_silence(second, masks), dim=-1)
        return XMLContext(retrieval.float(), localisation.float(), mask)

    def encode_query(self, query: Tensor, query_mask: Tensor) -> XMLQueries:
        """Encodes tokens (Q, Lq, query_size) float32 and their mask (Q, Lq); Lq <= ``max_tokens``."""
        bias = self_attention_bias(query_mask, reference_padding=self.reference_padding)
        tokens = [own.float() for own in self.query_tokens(query, bias, "query_encoder")]
        with full_precision(query):
            pooled = self.pooled(tokens, query_mask)
            weights = self.weights_of(tokens[0], query_mask)
            mapped = [
                self.part(stream, "query_linear", pooled[:, number])
                for number, stream in enumerate(self.stream_sizes)
            ]
        return XMLQueries(pooled, torch.cat(mapped, dim=-1), weights)

    # ---- scores ------------------------------------------------------------------------------------------

    def video_scores(self, queries: XMLQueries, context: XMLContext) -> Tensor:
        """Cosine with the best clip, the weighted sum of the streams: (Q, V) in [-1, 1]."""
        with full_precision(context.mask):
            scores = [
                best_clip_score(queries.retrieval[:, stream], context.retrieval[:, stream], context.mask)
                for stream in range(len(self.stream_sizes))
            ]
            return torch.einsum("sqv,qs->qv", torch.stack(scores), queries.weights)

    def boundary_logits(self, queries: XMLQueries, context: XMLContext) -> tuple[Tensor, Tensor]:
        """Logits of start and end of every query in every video, (Q, V, L) each, about -1e10 where padded."""
        return self._boundaries("qd,vld->qvl", queries, context.localisation, context.mask)

    def boundaries_in(self, queries: XMLQueries, context: XMLContext, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of start and end of each query in its own T videos, ``rows`` (Q, T): (Q, T, L) each."""
        return self._boundaries("qd,qtld->qtl", queries, context.localisation[rows], context.mask[rows])

    def _boundaries(
        self, product: str, queries: XMLQueries, clips: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        with full_precision(clips):
            streams = torch.unflatten(queries.localisation, -1, (len(self.stream_sizes), -1))
            weighted = streams * queries.weights[..., None]
            if self.apart:
                curves = [
                    torch.einsum(product, own, part)
                    for own, part in zip(weighted.unbind(-2), clips.chunk(2, dim=-1), strict=True)
                ]
                return self.boundaries(curves[0], mask, said=curves[1])
            return self.boundaries(torch.einsum(product, weighted.flatten(-2), clips), mask)

    # ---- training ----------------------------------------------------------------------------------------

    def loss(
        self,
        batch: PairBatch,
        *,
        hard_pool: int | None,
        generator: torch.Generator | None = None,
        relevance: Tensor | None = None,
        confidence: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Weighted terms of the training loss; their sum is to be minimised.

        Args:
            batch: B pairs; labels as ``config.labels`` has them.
            hard_pool, generator: of negatives, see :func:`~moviola.study.models.losses.draw_ranks`.
            relevance: (B, B) bool, potentially relevant pairs; needed where ``relevant_pairs.pairs``.
            confidence: (B, B) float32 in [0, 1]; needed where, besides, ``relevant_pairs.confidence``.

        Returns:
            ``span``, ``context`` (negative videos), ``query`` (negative queries), ``type`` where weights of
            streams are learned from types, and the terms of
            :func:`~moviola.study.models.relevant_pairs.relevant_pair_losses`, scalars; or those of
            :func:`~moviola.study.models.relevant_content.relevant_content_losses` in place of the two
            negative ones.

        Raises:
            InvalidValue: relevance or confidence is needed and missing.
        """
        config, extra, video = self.config, self.config.relevant_pairs, batch.video
        queries = self.encode_query(batch.query, batch.query_mask)
        context = self.encode_context(batch.visual, batch.mask, batch.subtitles)
        queries, weighing = self.weighed_by_type(queries, batch)
        scores = self.video_scores(queries, context)[:, video]
        own = torch.eye(len(batch), dtype=torch.bool, device=scores.device)
        relevant, weight = _relevant(extra, relevance, confidence, own)
        excluded = batch.positives if config.positive_mask else own
        if extra is not None and extra.pairs:
            # A video is no negative of a query wherever one of its moments in the batch is relevant.
            same_video = video[:, None] == video
            excluded = ((excluded | relevant).float() @ same_video.float()) > 0

        if extra is None:
            start, end = self.boundaries_in(queries, context, video[:, None])
            own_start, own_end = start[:, 0], end[:, 0]
        else:
            start, end = self.boundary_logits(queries, context)
            pair = torch.arange(len(batch), device=scores.device)
            own_start, own_end = start[pair, video], end[pair, video]
        missed = span_cross_entropy(own_start, own_end, batch.labels)
        span = {"span": config.span_weight * (batch.similarity * missed).mean(), **weighing}
        if config.relevant_content is not None:
            return span | self._content_losses(config.relevant_content, batch, queries, context, excluded)
        negative_context, negative_query = in_batch_ranking_loss(
            scores, excluded, margin=config.margin, pool=hard_pool, generator=generator,
            pairwise=config.ranking_loss,
        )  # fmt: skip
        terms = {
            **span,
            "context": config.context_weight * negative_context,
            "query": config.query_weight * negative_query,
        }
        if extra is not None:
            terms |= relevant_pair_losses(
                extra, video_scores=scores, start=start, end=end, video=video, labels=batch.labels,
                negatives=~excluded, relevance=relevant, confidence=weight, alpha=config.alpha,
                span_weight=config.span_weight, pool=hard_pool, generator=generator,
            )  # fmt: skip
        return terms

    def _content_losses(
        self,
        content: RelevantContent,
        batch: PairBatch,
        queries: XMLQueries,
        context: XMLContext,
        excluded: Tensor,
    ) -> dict[str, Tensor]:
        """PREM's terms of XML's own scores of videos: a stream counts by its weight for the query."""
        own = context.select(batch.video)
        cosines, there = [], []
        for stream in range(len(self.stream_sizes)):
            clips = own.retrieval[:, stream]
            vector = F.normalize(queries.retrieval[:, stream], dim=-1)
            cosines.append(torch.einsum("bd,bld->bl", vector, F.normalize(clips, dim=-1)))
            there.append(present(clips, own.mask))
        similarity, mask = torch.stack(cosines, dim=1), torch.stack(there, dim=1)

        def best_of(clips: Tensor) -> Tensor:
            best: Tensor = (best_present(similarity, clips) * queries.weights).sum(-1)
            return best

        scores = self.video_scores(queries, context)
        return relevant_content_losses(content, batch, scores, best_of, mask, positives=excluded)


def _relevant(
    extra: RelevantPairsConfig | None, relevance: Tensor | None, confidence: Tensor | None, own: Tensor
) -> tuple[Tensor, Tensor]:
    """Relevant pairs but for each query's own, (B, B) bool, and what each counts, (B, B) float32."""
    if extra is None or not extra.pairs:
        return torch.zeros_like(own), own.float()
    if relevance is None or (extra.confidence and confidence is None):
        raise InvalidValue(
            f"{'relevance' if relevance is None else 'confidence'} of the batch is missing, and the model "
            "trains with potentially relevant pairs; give what RelevantPairs.among returns, or configure "
            "relevant_pairs without them"
        )
    if not extra.confidence or confidence is None:
        confidence = torch.ones_like(own, dtype=torch.float32)
    return relevance & ~own, confidence


def with_endpoints(features: Tensor, mask: Tensor) -> Tensor:
    """Features (V, L, d + 2) with where each clip i of n starts and ends in its video: i / n and (i + 1) / n.

    They are appended to (V, L, d) float32 after features were normalised (XML, section 4), and zero at
    padding; the mask (V, L) float32 has n ones, then zeros.
    """
    clip = torch.arange(features.shape[1], device=features.device)
    bounds = torch.stack([clip, clip + 1], dim=-1) / mask.sum(dim=1)[:, None, None]
    return torch.cat([features, bounds * mask[..., None]], dim=-1)
