"""ReLoCLNet: ranks the moments of a whole corpus, or refines the windows that SPR proposes.

Zhang et al., "Video Corpus Moment Retrieval with Contrastive Learning" (SIGIR 2021), as TVR-Ranking
(appendix C) trains it for ranked retrieval with imprecise queries, and SPR (section 3.3) to refine proposals.

A query becomes one vector for each stream, pictures and subtitles. A video becomes one vector per clip
and stream, after the streams attended to each other. A video scores the cosine of its best clip, and the
similarities of its clips become probabilities of the moment's start and end; both are means of the streams.

Where it departs from the texts:

- Under TVR-Ranking's positive pair mask all of a query's positives are summed in the numerator of the loss on
  videos and none of them is a negative. Neither release does the first; ``sum_positives`` and
  ``count_pair_twice`` lead to their numbers.
- The mask is one of queries and videos: where two pairs share a video, it is no negative for either query.
- Padding changes nothing; ``reference_padding`` gives the releases' numbers (see
``moviola.study.models.layers``).
- The loss between strong and weak positives (SPR, section 4.7) was never released; it follows the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.study.models.batches import PairBatch, Rows
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
from moviola.study.models.losses import (
    PAIRWISE_LOSSES,
    frame_contrast,
    in_batch_ranking_loss,
    span_cross_entropy,
    video_contrast,
)
from moviola.study.models.refining import WindowModel, Windows
from moviola.study.models.streams import TwoStreams, TwoStreamsConfig

__all__ = ["SPR_LARGE", "SPR_SMALL", "Context", "Queries", "ReLoCLNet", "ReLoCLNetConfig"]


@dataclass(frozen=True)
class ReLoCLNetConfig(TwoStreamsConfig):
    """Sizes, loss and decoding; the defaults are TVR-Ranking's, appendix C and release: I3D and RoBERTa.

    Attributes:
        frame_weight: of the contrastive loss on the clips of the pair's own video (FCL).
        video_weight: of the contrastive loss on videos (VCL).
        hard_negative_weight: of the hinge against a window without any answer (SPR's HN; 0.5 in its release).
        weak_weight: of the hinge of a strong against a weak positive (SPR).
        weigh_by_similarity: multiply FCL, VCL and span loss of a pair by its similarity.
        sum_positives, count_pair_twice: see :func:`~moviola.study.models.losses.video_contrast`.
    """

    visual_size: int = 1024
    subtitle_size: int = 768
    hidden_size: int = 384
    heads: int = 8
    frame_weight: float = 0.03
    video_weight: float = 0.03
    hard_negative_weight: float = 1.0
    weak_weight: float = 1.0
    weigh_by_similarity: bool = True
    sum_positives: bool = True
    count_pair_twice: bool = False
    labels: str = "tvr_ranking"
    alpha: float = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count_pair_twice and self.sum_positives:
            raise InvalidValue("count_pair_twice is for parity and needs sum_positives=False")


SPR_SMALL = ReLoCLNetConfig(
    labels="spr", shortest_span=1, span_weight=0.02, weigh_by_similarity=False, sum_positives=False
)
"""SPR_ReLo-S: refines windows of proposals (SPR, section 4.1)."""

SPR_LARGE = replace(SPR_SMALL, hidden_size=768)
"""SPR_ReLo-L."""


@dataclass(frozen=True)
class Context(Rows):
    """V encoded videos or windows; knows no query, so it may be stored.

    Attributes:
        mask: (V, L) float32, 1 for a clip.
        clips: for each stream (V, L, H) float32; a zero vector is a clip that takes no part in its stream.
    """

    mask: Tensor
    clips: tuple[Tensor, ...]


@dataclass(frozen=True)
class Queries(Rows):
    """Q encoded queries.

    Attributes:
        vectors: (Q, S, H) float32, one for each stream.
        weights: (Q, S) float32, how much each stream counts, sum 1.
    """

    vectors: Tensor
    weights: Tensor


class ReLoCLNet(WindowModel, TwoStreams):
    """The model; parameters bear the names of the published checkpoints."""

    def __init__(self, config: ReLoCLNetConfig) -> None:
        super().__init__(config)
        size, heads, dropout = config.hidden_size, config.heads, config.dropout
        self.query_pos_embed = LearnedPositions(config.max_tokens, size, dropout)
        self.query_input_proj = InputProjection(config.query_size, size, dropout)
        self.query_encoder = AttentionBlock(size, heads, dropout)
        self.query_encoder1 = AttentionBlock(size, heads, dropout)
        self.ctx_pos_embed = LearnedPositions(config.max_clips, size, dropout)
        for stream, features in self.stream_sizes.items():
            self.add_module(f"{stream}_input_proj", InputProjection(features, size, dropout))
            for depth in (1, 2, 3):
                self.add_module(f"{stream}_encoder{depth}", AttentionBlock(size, heads, dropout))
            if len(self.stream_sizes) > 1 and not self.apart:
                self.add_module(f"{stream}_cross_att", Attention(size, heads, dropout))
                self.add_module(f"{stream}_cross_layernorm", nn.LayerNorm(size))
            self.add_module(f"{stream}_query_linear", nn.Linear(size, size))
        self.complete()

    # ---- encoding ----------------------------------------------------------------------------------------

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Context:
        """Encodes V videos or windows; arguments and errors as in :meth:`attended_streams`."""
        return self._encode(Windows(visual, mask, subtitles))[1]

    def _encode(self, clips: PairBatch | Windows) -> tuple[Context, Context]:
        """The context after the second block, which the contrastive losses read, and the final one."""
        _, crossed, masks = self.attended_streams(clips.visual, clips.mask, clips.subtitles)
        middle = self.attend("encoder2", crossed, masks)
        final = self.attend("encoder3", middle, masks)
        first, second = (
            Context(clips.mask, tuple(self.without_silence(own, masks))) for own in (middle, final)
        )
        return first, second

    def encode_query(self, query: Tensor, query_mask: Tensor) -> Queries:
        """Encodes queries: tokens (Q, Lq, query_size) float32 and their mask (Q, Lq); Lq <= max_tokens."""
        bias = self_attention_bias(query_mask, reference_padding=self.reference_padding)
        tokens = self.query_tokens(query, bias, "query_encoder", "query_encoder1")
        return Queries(self.pooled(tokens, query_mask), self.weights_of(tokens[0], query_mask))

    # ---- scores ------------------------------------------------------------------------------------------

    def video_scores(self, queries: Queries, context: Context) -> Tensor:
        """(Q, V) float32 in [-1, 1]: cosine of the best clip, the weighted sum of the streams."""
        return _sum_of_streams(lambda q, clips: best_clip_score(q, clips, context.mask), queries, context)

    def pair_scores(self, queries: Queries, context: Context) -> Tensor:
        """(N,) float32, :meth:`video_scores` of query i with window i; one query may stand for all."""
        return _sum_of_streams(
            lambda q, clips: _best_along(F.normalize(q, dim=-1), F.normalize(clips, dim=-1), context.mask),
            queries,
            context,
        )

    def span_logits(self, queries: Queries, context: Context) -> tuple[Tensor, Tensor]:
        """Logits of start and end, (N, L) each, of query i with window i; one query may stand for all."""
        mapped = [
            self.part(stream, "query_linear", vector)
            for stream, vector in zip(self.stream_sizes, queries.vectors.unbind(1), strict=True)
        ]
        curves = _streams(_along, replace(queries, vectors=torch.stack(mapped, dim=1)), context)
        if self.apart:
            return self.boundaries(curves[..., 0], context.mask, said=curves[..., 1])
        return self.boundaries(curves.sum(dim=-1), context.mask)

    def boundaries_in(self, queries: Queries, context: Context, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of start and end of each query in its own T videos, ``rows`` (Q, T): (Q, T, L) each."""
        pairs = torch.arange(len(queries), device=rows.device).repeat_interleave(rows.shape[1])
        start, end = self.span_logits(queries.select(pairs), context.select(rows.flatten()))
        return start.view(*rows.shape, -1), end.view(*rows.shape, -1)

    # ---- training ----------------------------------------------------------------------------------------

    def loss(
        self,
        batch: PairBatch,
        *,
        hard_pool: int | None,
        generator: torch.Generator | None,
        hard_negatives: Windows | None = None,
        weak_positives: Windows | None = None,
    ) -> dict[str, Tensor]:
        """The weighted terms of the loss, whose sum is to be minimised.

        Args:
            batch: B pairs.
            hard_pool, generator: of the ranking losses' negatives, see
                :func:`~moviola.study.models.losses.draw_ranks`.
            hard_negatives: a window without any answer to each pair's query (SPR's HN). It is also one more
                negative of the loss on videos, as in SPR's release.
            weak_positives: a window that answers each pair's query less well than the pair's own (SPR).

        Returns:
            ``frame``, ``video``, ``span``, ``context``, ``query`` and, where their windows are given,
            ``hard_negative`` and ``weak``, and ``type`` where weights of streams are learned from types; each
            a float32 scalar.
        """
        config = self.config
        queries, weighing = self.weighed_by_type(self.encode_query(batch.query, batch.query_mask), batch)
        middle, final = self._encode(batch)
        scores = self.video_scores(queries, final)[:, batch.video]
        weight = batch.similarity if config.weigh_by_similarity else torch.ones_like(batch.similarity)
        hard_middle = harder = weaker = None
        if hard_negatives is not None:
            hard_middle, hard = self._encode(hard_negatives)
            harder = self.pair_scores(queries, hard)
        if weak_positives is not None:
            weaker = self.pair_scores(queries, self._encode(weak_positives)[1])
        frame, video = self._contrasts(batch, queries, middle, hard_middle)
        span = span_cross_entropy(*self.span_logits(queries, final.select(batch.video)), batch.labels)
        ranking = in_batch_ranking_loss(
            scores, batch.positives, margin=config.margin, pool=hard_pool, generator=generator,
            pairwise=config.ranking_loss,
        )  # fmt: skip
        terms = self.weighted(weight * frame, weight * video, weight * span, *ranking)
        there = None if weak_positives is None else weak_positives.there
        loss = PAIRWISE_LOSSES[config.ranking_loss]
        return terms | weighing | self.compared(scores, harder, weaker, there, loss)

    def _contrasts(
        self, batch: PairBatch, queries: Queries, middle: Context, hard: Context | None
    ) -> tuple[Tensor, Tensor]:
        """FCL and VCL of each pair, (B,) each, on what the second block says of videos and hard negatives."""
        own = middle.select(batch.video)
        frame = _sum_of_streams(
            lambda q, clips: frame_contrast(_along(q, clips), batch.labels, present(clips, own.mask).float()),
            queries,
            own,
        )
        scores = _sum_of_streams(lambda q, clips: _best_dot(q, clips, middle.mask), queries, middle)
        more = None
        if hard is not None:
            more = _sum_of_streams(lambda q, clips: _best_along(q, clips, hard.mask), queries, hard)
        video = video_contrast(
            scores[:, batch.video],
            batch.positives,
            more=more,
            sum_positives=self.config.sum_positives,
            count_pair_twice=self.config.count_pair_twice,
        )
        return frame, video


def _along(vector: Tensor, clips: Tensor) -> Tensor:
    """Dot product of a vector (N, H) or (1, H) with its own clips (N, L, H), as (N, L)."""
    return (clips @ vector[:, :, None]).squeeze(-1)


def _best_along(vector: Tensor, clips: Tensor, mask: Tensor) -> Tensor:
    """Largest of :func:`_along` where the mask (N, L) is 1, as (N,)."""
    return best_present(_along(vector, clips), present(clips, mask))


def _best_dot(query: Tensor, clips: Tensor, mask: Tensor) -> Tensor:
    """Largest dot product of a query (Q, H) with the valid clips of a video (V, L, H), as (Q, V)."""
    return best_present(torch.einsum("qd,vld->qvl", query, clips), present(clips, mask))


def _sum_of_streams(score: Callable[[Tensor, Tensor], Tensor], queries: Queries, context: Context) -> Tensor:
    """Weighted sum over the streams of a score, see :func:`_streams`."""
    return _streams(score, queries, context).sum(dim=-1)


def _streams(score: Callable[[Tensor, Tensor], Tensor], queries: Queries, context: Context) -> Tensor:
    """Weighted score (..., S) of each stream's query vectors (Q, H) and clips (V, L, H), to be summed.

    A score has a row for each query, or one for each pair of one query.

    In full precision under autocast too: alpha = 30 makes a rounded cosine a wrong order.
    """
    with full_precision(queries.vectors):
        streams = zip(queries.vectors.unbind(1), context.clips, strict=True)
        scores = torch.stack([score(query.to(clips.dtype), clips) for query, clips in streams], dim=-1)
        weights = queries.weights.to(scores.dtype)
        return scores * weights.view(len(weights), *[1] * (scores.ndim - 2), -1)
