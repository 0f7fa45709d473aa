"""Batches of queries with segments, for stage 1 of SPR (SPR, section 3.1.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.features import Integers, VideoFeatures
from moviola.retrieval import Hits, Retrieval, Stage1, TrainedStage1, segment_index
from moviola.retrieval.segments import segment_counts, whole_segments
from moviola.study.measures.matching import spread
from moviola.study.models.checks import require_positive
from moviola.study.models.running import TorchRunner
from moviola.study.models.spr import SegmentRetriever
from moviola.study.training.data import Pairs, Split, largest

__all__ = [
    "DEPTHS", "NAMES", "SegmentBatch", "SegmentGrid", "SegmentSampling", "SegmentTask", "recall",
    "segment_recall",
]  # fmt: skip

DEPTHS = (10, 50, 100, 200)
"""Numbers of best segments at which recall is measured."""

NAMES = tuple(f"recall@{k}" for k in DEPTHS)
"""Names of the measures of :func:`segment_recall`."""


@dataclass(frozen=True)
class SegmentSampling:
    """Options of segments.

    Attributes:
        segment_clips: T, clips of a segment.
        least_share: a segment answers a query if at least this share of it lies in an answer (SPR, section
            3.1.2 and Table 7).
    """

    segment_clips: int = 4
    least_share: float = 0.3

    def __post_init__(self) -> None:
        require_positive(segment_clips=self.segment_clips)


@dataclass(frozen=True)
class SegmentGrid:
    """All S segments of T clips of some videos, in order; the last one of a video may hold fewer."""

    features: VideoFeatures
    segment_clips: int

    @cached_property
    def begin(self) -> Integers:
        """(V + 1,) int64; the segments of video v are rows ``begin[v]`` to ``begin[v + 1]``."""
        return np.concatenate([[0], np.cumsum(segment_counts(self.features, self.segment_clips))])

    @cached_property
    def video(self) -> Integers:
        """(S,) int64, the place of each segment's video."""
        return np.repeat(np.arange(len(self.features)), np.diff(self.begin))

    @cached_property
    def position(self) -> Integers:
        """(S,) int64, of each segment in its video."""
        return np.arange(len(self)) - self.begin[self.video]

    def __len__(self) -> int:
        return int(self.begin[-1])

    @property
    def seconds(self) -> float:
        """Length of a segment."""
        return self.segment_clips * self.features.clip_seconds

    def clips(self, rows: Integers) -> NDArray[np.float32]:
        """(B, T, d) float32, the clips of some segments; a short one repeats its last clip, as in SPR."""
        length = self.segment_clips
        places = zip(self.video[rows].tolist(), self.position[rows].tolist(), strict=True)
        own = (self.features.read(v, place * length, (place + 1) * length) for v, place in places)
        return np.concatenate([whole_segments(clips, length) for clips in own])

    def rows_of(self, hits: Hits) -> Integers:
        """(Q, K) int64, the segments that hits are."""
        return cast("Integers", self.begin[hits.video] + hits.position)

    def shares(self, pairs: Pairs) -> sparse.csr_array:
        """(Q, S) float32: the share of each segment that lies in an answer of each query, where above 0.

        Moments of relevance 0 are no answers.
        """
        answers = np.flatnonzero(pairs.relevance > 0)
        query, moment = pairs.query[answers], pairs.moment[answers]
        video, start, end = pairs.video[moment], pairs.start[moment], pairs.end[moment]
        first = self.begin[video] + np.floor(start / self.seconds).astype(np.int64)
        stop = self.begin[video] + np.ceil(end / self.seconds).astype(np.int64)
        count = np.maximum(np.minimum(stop, self.begin[video + 1]) - first, 0)
        pair = np.repeat(np.arange(len(answers)), count)
        segment = spread(count) + first[pair]
        left = self.position[segment] * self.seconds
        inside = np.minimum(left + self.seconds, end[pair]) - np.maximum(left, start[pair])
        some = np.flatnonzero(inside > 0)
        cells = query[pair[some]] * len(self) + segment[some]
        cells, share = largest(cells, (inside[some] / self.seconds).astype(np.float32))
        return sparse.csr_array((share, np.divmod(cells, len(self))), shape=(len(pairs.query_ids), len(self)))


def recall(best: Integers, shares: sparse.csr_array, k: int) -> float:
    """Weighted recall of the answers' segments among the k best; mean over queries, NaN without an answer.

    ``best`` is (Q, K) segments, best first, ``shares`` (Q, S) as in :meth:`SegmentGrid.shares`; queries
    without an answer do not count.
    """
    recalls = np.array([shares[[query]][:, row].sum() for query, row in enumerate(best[:, :k])])
    whole = shares.sum(axis=1)
    answered = whole > 0
    return float((recalls[answered] / whole[answered]).mean()) if answered.any() else math.nan


@dataclass(frozen=True)
class SegmentBatch:
    """B pairs of a query (B, d) and a segment (B, T, d); ``relevance`` (B, B) marks matching ones."""

    queries: Tensor
    clips: Tensor
    relevance: Tensor


@dataclass(frozen=True)
class SegmentTask:
    """Training of a :class:`SegmentRetriever` (SPR, section 3.1.2) on pairs of a query and a segment.

    Every segment of which at least ``least_share`` lies in an answer of the query is one pair; every such
    pair in the batch is a positive.

    Raises:
        InvalidValue: there is no such pair; on first use.
    """

    model: SegmentRetriever
    train: Split
    val: Split
    sampling: SegmentSampling = SegmentSampling()
    batch_size: int = 256

    @cached_property
    def grid(self) -> SegmentGrid:
        """The segments of the training videos."""
        return SegmentGrid(self.train.features, self.sampling.segment_clips)

    @cached_property
    def _relevant(self) -> sparse.csr_array:
        shares = self.grid.shares(self.train.pairs)
        shares.data = np.where(shares.data >= self.sampling.least_share, 1, 0).astype(np.float32)
        shares.eliminate_zeros()
        return shares

    @cached_property
    def _examples(self) -> tuple[Integers, Integers]:
        query, segment = self._relevant.nonzero()
        if not len(query):
            raise InvalidValue(
                f"no segment has a share of {self.sampling.least_share} or more in an answer; give other "
                "pairs, or lower sampling.least_share"
            )
        return query.astype(np.int64), segment.astype(np.int64)

    def batches_per_epoch(self) -> int:
        """Number of batches per epoch; an incomplete last one is left out."""
        return max(1, len(self._examples[0]) // self.batch_size)

    def batches(self, epoch: int, draw: Generator) -> Iterator[SegmentBatch]:
        """The batches of an epoch, in a new order."""
        query, segment = self._examples
        order = draw.permutation(len(query))
        for number in range(self.batches_per_epoch()):
            rows = order[number * self.batch_size : (number + 1) * self.batch_size]
            relevance = self._relevant[query[rows]][:, segment[rows]].toarray()
            yield SegmentBatch(
                torch.from_numpy(self.train.queries.vectors[query[rows]]),
                torch.from_numpy(self.grid.clips(segment[rows])),
                torch.from_numpy(relevance),
            )

    def losses(self, batch: SegmentBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        device = self.model.pt_clip_logit_scale.device
        clips = batch.clips.to(device)
        mask = torch.ones(clips.shape[:2], device=device)
        return self.model.loss(clips, mask, batch.queries.to(device), batch.relevance.to(device))

    def evaluate(self) -> Mapping[str, float]:
        """:func:`segment_recall` on val."""
        return segment_recall(
            TrainedStage1(TorchRunner(self.model), "val"), self.val, self.sampling.segment_clips
        )


def segment_recall(stage1: Stage1, split: Split, segment_clips: int) -> dict[str, float]:
    """Recall at :data:`DEPTHS` segments of T clips, weighted by overlap; by :data:`NAMES`."""
    index = segment_index(stage1, split.features, segment_clips)
    retrieval = Retrieval(split.features, index, stage1, None, segment_clips, segments=max(DEPTHS))
    grid = SegmentGrid(split.features, segment_clips)
    best, shares = grid.rows_of(retrieval.hits(split.queries)), grid.shares(split.pairs)
    return {name: recall(best, shares, k) for name, k in zip(NAMES, DEPTHS, strict=True)}
