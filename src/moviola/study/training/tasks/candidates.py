"""Batches of queries with candidate videos, for CONQUER and PREM's localizer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.random import Generator

from moviola.errors import InvalidValue
from moviola.features import Integers
from moviola.retrieval.stage1 import VideoScores, score_blocks
from moviola.study.models.batches import CandidateBatch
from moviola.study.models.checks import require_positive
from moviola.study.training.batches import token_batch
from moviola.study.training.data import Pairs
from moviola.study.training.tasks.pairs import EpochsOfPairs

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
class CandidateTask(EpochsOfPairs[CandidateBatch]):
    """Training on pairs, each with some videos that a retriever ranks high without an answer.

    Attributes:
        hardest: (Q, K) int64, see :func:`hardest_videos`.
        negatives: number of them beside each pair's own video.

    Raises:
        InvalidValue: see :func:`require_candidates`.
    """

    hardest: Integers = field(kw_only=True)
    negatives: int = field(kw_only=True)

    def __post_init__(self) -> None:
        require_candidates(self.pairs, (self.hardest >= 0).sum(axis=1), self.negatives)

    def batch(self, rows: Integers, draw: Generator) -> CandidateBatch:
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
