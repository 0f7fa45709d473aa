"""CONQUER as a whole: encodes, matches, and ranks moments in candidate videos."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.retrieval.saved.clip_windows import LABELS
from moviola.study.models.batches import CandidateBatch, Ranked, Rows
from moviola.study.models.checks import require_subtitles
from moviola.study.models.conquer.config import SIMILARITIES, ConquerConfig
from moviola.study.models.conquer.encoders import FusionWeights, QueryEncoder, VideoEncoder
from moviola.study.models.conquer.heads import ContextualProjection, MomentHead, QueryAwareFeatures, VideoHead
from moviola.study.models.layers import initialise
from moviola.study.models.losses import span_cross_entropy
from moviola.study.models.spans import SUM, corpus_spans, ranked_spans, span_band, top_scores
from moviola.temporal import suppress

__all__ = ["Conquer", "Context", "Queries", "Scores"]

PAIRS_AT_ONCE = 64
"""Pairs of a query and a video that are matched at once, which bounds the memory."""


@dataclass(frozen=True)
class Context(Rows):
    """V encoded videos, whatever the query: (V, L, D) float32 (None without that stream), (V, L) float32."""

    visual: Tensor
    subtitles: Tensor | None
    mask: Tensor


@dataclass(frozen=True)
class Queries(Rows):
    """Encoded queries: tokens (Q, Lq, D) with their mask (Q, Lq) float32.

    ``fusion`` (Q, 2) float32 says how much pictures and subtitles count, sum 1; None without subtitles.
    """

    tokens: Tensor
    mask: Tensor
    fusion: Tensor | None


@dataclass(frozen=True)
class Scores:
    """Logits of Q queries in V candidate videos each, float32.

    Attributes:
        start, end: (Q, V, L), of a moment's first and last clip (both belong to it), -1e10 at padding.
        video: (Q, V); None without a video head.
    """

    start: Tensor
    end: Tensor
    video: Tensor | None


class Conquer(nn.Module):
    """CONQUER; how it works is said in :mod:`moviola.study.models.conquer`."""

    def __init__(self, config: ConquerConfig) -> None:
        super().__init__()
        self.config = config
        self.similarity = SIMILARITIES[config.similarity]
        self.encoder = nn.ModuleDict(
            {"videoEncoder": VideoEncoder(config), "queryEncoder": QueryEncoder(config)}
        )
        if config.subtitle_size:
            self.query_weight = FusionWeights(config)
        self.query_aware_feature_learning_layer = QueryAwareFeatures(config)
        self.contextual_QAL_feature_learning = ContextualProjection(4 * config.hidden_size, config)
        self.moment_localization_head = MomentHead(config)
        if self.similarity.video_head:
            self.video_scoring_head = VideoHead(config)
        initialise(self, config.initial_std)

    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None = None) -> Context:
        """Encodes videos without any query; what comes out may be kept.

        Args:
            visual: (V, L, dv) float32, zero where padded.
            mask: (V, L), 1 for a clip and 0 for padding; each video has a clip.
            subtitles: (V, L, ds) float32; None for a model without that stream.

        Returns:
            Videos of L clips, of ``max_clips`` clips with ``reference_padding``.

        Raises:
            InvalidValue: L is more than ``max_clips``, or subtitles are missing or not wanted.
        """
        require_subtitles(subtitles, self.config.subtitle_size)
        visual, mask = self._fit(visual, mask, self.config.max_clips, "video", "clips")
        if subtitles is not None:
            subtitles, _ = self._fit(subtitles, mask, self.config.max_clips, "video", "clips")
        pictures, words = self.encoder["videoEncoder"](visual, subtitles, mask)
        return Context(pictures, words, mask)

    def encode_query(self, query: Tensor, query_mask: Tensor) -> Queries:
        """Encodes queries (Q, Lq, dq) float32 with their mask (Q, Lq), and finds their fusion weights.

        Raises:
            InvalidValue: Lq is more than ``max_tokens``.
        """
        query, query_mask = self._fit(query, query_mask, self.config.max_tokens, "query", "tokens")
        tokens = self.encoder["queryEncoder"](query, query_mask)
        fusion = self.query_weight(tokens, query_mask) if self.config.subtitle_size else None
        return Queries(tokens, query_mask, fusion)

    def match(self, queries: Queries, videos: Context) -> Scores:
        """Compares Q queries with V videos each: the part that has to be run for every pair.

        Args:
            videos: encoded videos with the two first dimensions (Q, V), see :meth:`Context.select`.
        """
        clips = videos.visual
        if queries.fusion is not None and videos.subtitles is not None:
            weights = queries.fusion[:, :, None, None, None]
            clips = weights[:, 0] * videos.visual + weights[:, 1] * videos.subtitles
        aware = self.query_aware_feature_learning_layer(clips, videos.mask, queries.tokens, queries.mask)
        aware, mask = aware.flatten(0, 1), videos.mask.flatten(0, 1)
        contextual = self.contextual_QAL_feature_learning(aware, mask)
        start, end = self.moment_localization_head(aware, contextual, mask)
        pairs = videos.mask.shape[:2]
        video = None
        if self.similarity.video_head:
            video = self.video_scoring_head(aware, contextual, mask).unflatten(0, pairs)
        return Scores(start.unflatten(0, pairs), end.unflatten(0, pairs), video)

    def loss(self, batch: CandidateBatch) -> dict[str, Tensor]:
        """Weighted terms of the loss, whose sum is to be minimised.

        ``span``: cross entropy of start and end, each normalised over all clips of all candidates of a
        query together. ``video``, with a video head: cross entropy of the right video among the candidates.
        Each query counts as much as its ``similarity``.
        """
        queries = self.encode_query(batch.query, batch.query_mask)
        context = self.encode_context(batch.visual, batch.mask, batch.subtitles)
        scores = self.match(queries, context.select(batch.candidates))
        # The right video is the first one, so a label of its clips is one of all candidates' clips.
        span = span_cross_entropy(scores.start.flatten(1), scores.end.flatten(1), batch.labels)
        terms = {"span": self.config.span_weight * (batch.similarity * span).mean()}
        if scores.video is not None:
            first = torch.zeros_like(batch.labels[:, 0])
            video = F.cross_entropy(scores.video, first, reduction="none")
            terms["video"] = self.config.video_weight * (batch.similarity * video).mean()
        return terms

    @torch.no_grad()
    def rank(self, query: Tensor, query_mask: Tensor, context: Context, *, first_stage: Tensor) -> Ranked:
        """Finds each query's best moments in the videos that another retriever thinks best for it.

        Args:
            query, query_mask: (Q, Lq, dq) float32, and (Q, Lq), 1 for a token.
            context: V encoded videos; they may lie on another device than the model.
            first_stage: (Q, V) float32 scores of that retriever. The best ``config.candidates`` videos of
                each query are looked into; -inf marks a video that must not be.

        Returns:
            ``config.top_moments`` moments per query; their ``video`` is a row of ``context``.

        Raises:
            InvalidValue: a candidate's first-stage score is negative under the general similarity, which
                multiplies by it, or ``first_stage`` is not (Q, V).
        """
        parts = []
        for candidates, first_scores, scores in self._matched(query, query_mask, context, first_stage):
            spans = self.decode(scores, first_scores)
            video = candidates.gather(1, spans.video.clamp(min=0)).masked_fill(spans.video < 0, -1)
            parts.append(replace(spans, video=video))
        return Ranked.joined(parts)

    @torch.no_grad()
    def rank_videos(
        self,
        query: Tensor,
        query_mask: Tensor,
        context: Context,
        *,
        first_stage: Tensor,
        keep: int,
    ) -> tuple[Tensor, Tensor]:
        """The best videos of each query out of its candidates, as :meth:`video_terms` ranks them.

        Args and errors as in :meth:`rank`. Returns rows of ``context`` (Q, K <= ``keep``) int64, best first,
        -1 where a query has no more candidates, and their scores (Q, K) float32.
        """
        parts = []
        for candidates, first_scores, scores in self._matched(query, query_mask, context, first_stage):
            best, place = top_scores(self.video_terms(scores, first_scores), keep)
            video = candidates.gather(1, place).masked_fill(best == -math.inf, -1)
            parts.append((video, self.similarity.finish(best)))
        return torch.cat([video for video, _ in parts]), torch.cat([score for _, score in parts])

    def _matched(
        self, query: Tensor, query_mask: Tensor, context: Context, first_stage: Tensor
    ) -> Iterator[tuple[Tensor, Tensor, Scores]]:
        """For some queries at a time: rows of their candidates (q, V), their first-stage scores, and ours."""
        if first_stage.shape != (len(query), len(context.mask)):
            raise InvalidValue(
                f"first-stage scores of shape {tuple(first_stage.shape)}: {len(query)} queries and "
                f"{len(context.mask)} videos were given; one score for each pair of them is needed"
            )
        first_scores, candidates = top_scores(first_stage, self.config.candidates)
        at_once = max(1, PAIRS_AT_ONCE // max(1, candidates.shape[1]))
        for first in range(0, len(query), at_once):
            rows = slice(first, first + at_once)
            queries = self.encode_query(query[rows], query_mask[rows])
            scores = self._match_in_parts(queries, context, candidates[rows])
            yield candidates[rows], first_scores[rows], scores

    def decode(self, scores: Scores, first_stage: Tensor) -> Ranked:
        """The best moments of Q queries in their V candidates, by the configured similarity and span limits.

        ``first_stage`` is (Q, V) float32, -inf for a video that is no candidate; ``video`` of the ranked
        moments is a place among the candidates.
        """
        config, finish = self.config, self.similarity.finish
        start, end = self.similarity.clips(scores.start), self.similarity.clips(scores.end)
        added = self._added_by_video(scores, first_stage)
        if config.top_videos < added.shape[1]:
            best = top_scores(self.video_terms(scores, first_stage), config.top_videos)[1]
            added = torch.full_like(added, -math.inf).scatter(1, best, added.gather(1, best))
        video, spans = corpus_spans(
            added,
            start,
            end,
            shortest=config.shortest_span,
            longest=config.longest_span,
            k=config.top_moments if config.nms is None else config.moments_before_nms,
            combine=SUM,
        )
        stop = LABELS["conquer"].end_clip(spans.end)
        ranked = ranked_spans(video, spans, stop, config.clip_seconds)
        ranked = replace(ranked, score=finish(ranked.score).masked_fill(video < 0, -math.inf))
        return ranked if config.nms is None else _suppress(ranked, config.nms, config.top_moments)

    def video_terms(self, scores: Scores, first_stage: Tensor) -> Tensor:
        """(Q, V), by which the candidates rank as videos; arguments as for :meth:`decode`.

        ``similarity.finish`` makes scores of them.
        """
        added = self._added_by_video(scores, first_stage)
        if self.similarity.videos is not None:
            return added
        start, end = self.similarity.clips(scores.start), self.similarity.clips(scores.end)
        band = span_band(
            start, end, shortest=self.config.shortest_span, longest=self.config.longest_span, combine=SUM
        )
        return added + band.flatten(-2).amax(dim=-1)

    def _match_in_parts(self, queries: Queries, context: Context, rows: Tensor) -> Scores:
        """:meth:`match` of Q queries with the (Q, V) rows of the context, some pairs at a time."""
        device = queries.tokens.device
        owner = torch.arange(len(rows), device=device).repeat_interleave(rows.shape[1])
        pairs = zip(*(torch.split(part, PAIRS_AT_ONCE) for part in (owner, rows.flatten())), strict=True)
        parts = [self.match(queries.select(q), context.select(v[:, None]).to(device)) for q, v in pairs]
        start, end, video = zip(*((part.start, part.end, part.video) for part in parts), strict=True)
        return Scores(
            torch.cat(start).view(*rows.shape, -1),
            torch.cat(end).view(*rows.shape, -1),
            torch.cat(video).view(rows.shape) if self.similarity.video_head else None,
        )

    def _added_by_video(self, scores: Scores, first_stage: Tensor) -> Tensor:
        videos = self.similarity.videos
        added = torch.zeros_like(first_stage) if videos is None else videos(first_stage, scores.video)
        return added.masked_fill(first_stage == -math.inf, -math.inf)

    def _fit(self, features: Tensor, mask: Tensor, most: int, what: str, unit: str) -> tuple[Tensor, Tensor]:
        """Checks the length and, as the release, pads to the greatest one."""
        length = features.shape[1]
        if length > most:
            raise InvalidValue(
                f"{what} of {length} {unit}: this model takes {most}; cut or pool it to that many"
            )
        mask = mask.to(features.dtype)
        if not self.config.reference_padding:
            return features, mask
        return F.pad(features, (0, 0, 0, most - length)), F.pad(mask, (0, most - mask.shape[1]))


def _suppress(ranked: Ranked, threshold: float, k: int) -> Ranked:
    """The k best moments of each query of which no two in one video overlap more (IoU) than the threshold."""
    columns = (ranked.start, ranked.end, ranked.score, ranked.video)
    kept = []
    for start, end, score, video in zip(*(column.cpu().numpy() for column in columns), strict=True):
        there = np.flatnonzero(video >= 0)
        places = suppress(start[there], end[there], score[there], threshold, k, video=video[there])
        kept.append(torch.from_numpy(there[places]))
    place = nn.utils.rnn.pad_sequence(kept, batch_first=True, padding_value=-1).to(ranked.video.device)
    found, none = (column.gather(1, place.clamp(min=0)) for column in columns), place < 0
    start, end, score, video = (
        column.masked_fill(none, nothing)
        for column, nothing in zip(found, (0, 0, -math.inf, -1), strict=True)
    )
    return Ranked(video, start, end, score)
