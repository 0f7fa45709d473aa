"""Batches of queries with candidate videos, for CONQUER and PREM's localizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.features import Integers, QueryFeatures
from moviola.models.batches import CandidateBatch
from moviola.models.checks import require_positive
from moviola.retrieval.batches import token_batch
from moviola.retrieval.corpus import PooledVideos
from moviola.retrieval.video_scores import VideoScores, score_blocks
from moviola.training.data import Pairs, epoch_batches, epoch_parts

__all__ = ["CandidateSampling", "CandidateTask", "hardest_videos", "require_candidates", "without_answer"]


@dataclass(frozen=True)
class CandidateSampling:
    """Videos that a pair is compared with.

    Attributes:
        negatives: videos without an answer beside each pair's own.
        pool: number of the retriever's best videos from which they are drawn.
        even_types: an epoch has as many pairs of each type of query (v, t, vt), rare ones repeatedly, rather
            than each pair once.
    """

    negatives: int = 3
    pool: int = 100
    even_types: bool = False

    def __post_init__(self) -> None:
        require_positive(pool=self.pool)
        if self.negatives < 0:
            raise InvalidValue(f"negatives={self.negatives}: give at least 0")


@dataclass(frozen=True)
class CandidateTask:
    """Training on pairs, each with some videos that a retriever ranks high without an answer.

    Attributes:
        pairs: each is learned from once per epoch, or types are drawn evenly.
        hardest: (Q, K) int64, see :func:`hardest_videos`.
        negatives: number of them beside each pair's own video.
        loss: weighted terms of a batch on the model's device.
        evaluate: measures of the present model on val.
        even_types: see :class:`CandidateSampling`.
        by_stream: see :class:`~moviola.training.tasks.pairs.PairTask`.

    Raises:
        InvalidValue: see :func:`require_candidates`.
    """

    model: nn.Module
    videos: PooledVideos
    queries: QueryFeatures
    pairs: Pairs
    hardest: Integers
    negatives: int
    loss: Callable[[Any], Mapping[str, Tensor]]
    evaluate: Callable[[], Mapping[str, float]]
    batch_size: int = 16
    even_types: bool = False
    by_stream: bool = False

    def __post_init__(self) -> None:
        require_candidates(self.pairs, (self.hardest >= 0).sum(axis=1), self.negatives)

    def batches_per_epoch(self) -> int:
        return sum(-(-len(part) // self.batch_size) for part in self._parts(np.random.default_rng(0)))

    def batches(self, epoch: int, draw: Generator) -> Iterator[CandidateBatch]:
        """The batches of an epoch, videos of similar length together."""
        parts = self._parts(draw)
        for rows in epoch_batches(self.pairs, parts, self.videos.counts, self.batch_size, draw):
            yield self.batch(rows, draw)

    def _parts(self, draw: Generator) -> list[Integers]:
        return epoch_parts(self.pairs, draw, even_types=self.even_types, by_stream=self.by_stream)

    def batch(self, rows: Integers, draw: Generator) -> CandidateBatch:
        """The batch of some pairs; a shared video is in it once."""
        pairs = self.pairs
        query, moments = pairs.query[rows], pairs.moment[rows]
        own = pairs.video[moments]
        candidates = np.column_stack([own, self._drawn(query, draw)])
        videos, place = np.unique(candidates, return_inverse=True)
        labels = self.videos.labels(own, pairs.start[moments], pairs.end[moments])
        tokens, token_mask = token_batch(self.queries, query)
        return CandidateBatch(
            tokens,
            token_mask,
            *self.videos.batch(videos),
            candidates=torch.from_numpy(place.reshape(candidates.shape)),
            labels=torch.from_numpy(labels),
            similarity=torch.from_numpy(pairs.similarity[rows]),
            spoken=pairs.spoken(rows),
        )

    def _drawn(self, query: Integers, draw: Generator) -> Integers:
        """(B, negatives) videos, each once per row."""
        hardest = self.hardest[query]
        order = np.where(hardest < 0, 2.0, draw.random(hardest.shape))
        chosen = np.argpartition(order, self.negatives - 1, axis=1)[:, : self.negatives]
        return np.take_along_axis(hardest, chosen, axis=1)

    def losses(self, batch: CandidateBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        return self.loss(batch.to(next(self.model.parameters()).device))


def require_candidates(pairs: Pairs, candidates: Integers, negatives: int) -> None:
    """Check the numbers of each query's candidates, (Q,) int64.

    Raises:
        InvalidValue: a query of a pair has fewer than ``negatives``.
    """
    there = candidates[pairs.query]
    if (fewest := there.min()) < negatives:
        query = pairs.query[there.argmin()]
        remedy = "fewer negatives" if fewest else "leave the query out"
        raise InvalidValue(
            f"query {pairs.query_ids[query]!r} ({pairs.texts[query]!r:.80}): {fewest} videos without an "
            f"answer among its candidates, but sampling.negatives={negatives}; give more videos or {remedy}"
        )


def without_answer(pairs: Pairs, count: int) -> Integers:
    """(Q,) int64: number of videos that do not answer a query, ``count`` at most."""
    answering = np.unique(np.stack([pairs.query, pairs.video[pairs.moment]]), axis=1)
    answers = np.bincount(answering[0], minlength=len(pairs.query_ids))
    return np.minimum(len(pairs.videos) - answers, count)


def hardest_videos(scores: VideoScores, pairs: Pairs, count: int) -> Integers:
    """A retriever's best videos for each query that do not answer it; -inf of the scores leaves a video out.

    Returns:
        (Q, K) int64 places of videos, best first, -1 where a query has no more; K is ``count``, or all
        videos.
    """
    keep = min(count, len(pairs.videos))
    hardest = np.full((len(pairs.query_ids), keep), -1, dtype=np.int64)
    order = np.argsort(pairs.query, kind="stable")
    query, answering = pairs.query[order], pairs.video[pairs.moment[order]]
    for some, given in score_blocks(scores, len(hardest), len(pairs.videos)):
        table = np.array(given, dtype=np.float32)
        own = slice(*np.searchsorted(query, [some.start, some.stop]))
        table[query[own] - some.start, answering[own]] = -np.inf
        best = np.argsort(-table, axis=1, kind="stable")[:, :keep]
        hardest[some] = np.where(np.isneginf(np.take_along_axis(table, best, axis=1)), -1, best)
    return hardest
