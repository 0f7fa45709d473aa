"""Batches of queries with all their answers in the batch's videos, for Reel and its stage 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from moviola.features import Integers, QueryFeatures, VideoFeatures
from moviola.study.models.reel import AnswerBatch, RoleEncoder
from moviola.study.training.batches import cut_batch, token_batch, video_batch
from moviola.study.training.data import Pairs

__all__ = ["AnswerTask"]


@dataclass(frozen=True)
class AnswerTask:
    """Training of Reel, or of its stage 1: ``loss`` of a batch; ``evaluate`` measures the model on val.

    A batch is some queries and, for each, one of its answers; the videos of these answers are the batch's
    videos, and every answer of every query in any of them counts.

    Attributes:
        unanswered: whether batches have queries that nothing answers, too, each with some video.
    """

    model: RoleEncoder
    loss: Callable[[AnswerBatch], Mapping[str, Tensor]]
    features: VideoFeatures
    queries: QueryFeatures
    pairs: Pairs
    evaluate: Callable[[], Mapping[str, float]]
    batch_size: int = 64
    unanswered: bool = False

    def batches_per_epoch(self) -> int:
        return -(-len(self._query_rows) // self.batch_size)

    @cached_property
    def _query_rows(self) -> Integers:
        own = self.pairs.query
        return np.unique(np.concatenate([own, self.pairs.unanswered]) if self.unanswered else own)

    def batches(self, epoch: int, draw: Generator) -> Iterator[AnswerBatch]:
        """The batches of an epoch, in a new order."""
        order = draw.permutation(self._query_rows)
        for begin in range(0, len(order), self.batch_size):
            yield self.batch(order[begin : begin + self.batch_size], draw)

    def batch(self, queries: Integers, draw: Generator) -> AnswerBatch:
        """The batch of some queries by place."""
        return self.of_videos(queries, np.unique(self.videos(queries, draw)))

    def videos(self, queries: Integers, draw: Generator) -> Integers:
        """Videos (n,) for a batch of queries, by place: the video of one answer of each, or any without."""
        pairs, answered = self.pairs, self.pairs.of_query.counts[queries] > 0
        videos = np.empty(len(queries), np.int64)
        videos[answered] = pairs.video[pairs.moment[pairs.of_query.draw(queries[answered], draw)]]
        videos[~answered] = draw.integers(len(pairs.videos), size=int((~answered).sum()))
        return videos

    def of_videos(self, queries: Integers, videos: Integers) -> AnswerBatch:
        """The batch of some queries and some videos (n,), rising, by place."""
        pairs, own = self.pairs, self.pairs.of_query
        held = np.concatenate([own.rows_of(query) for query in queries.tolist()])
        rows = np.repeat(np.arange(len(queries)), own.counts[queries])
        video = pairs.video[pairs.moment[held]]
        there = np.isin(video, videos)
        held, rows, video = held[there], rows[there], video[there]
        moments = pairs.moment[held]
        spans = np.stack([pairs.start[moments], pairs.end[moments]], axis=1) / self.features.clip_seconds
        tokens, token_mask = token_batch(self.queries, queries)
        return AnswerBatch(
            tokens,
            token_mask,
            *video_batch(self.features, videos),
            cuts=cut_batch(self.features, videos),
            answer=torch.from_numpy(np.stack([rows, np.searchsorted(videos, video)], axis=1)),
            span=torch.from_numpy(spans.astype(np.float32)),
            similarity=torch.from_numpy(pairs.similarity[held]),
            answered=torch.from_numpy((~np.isin(queries, pairs.unanswered)).astype(np.float32)),
        )

    def losses(self, batch: AnswerBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        return self.loss(batch.to(next(self.model.parameters()).device))
