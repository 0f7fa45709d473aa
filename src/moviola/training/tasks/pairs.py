"""Batches of pairs of a query and a moment, for XML, ReLoCLNet and PREM's retriever."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from moviola.features import Integers, QueryFeatures
from moviola.models.batches import PairBatch
from moviola.retrieval.batches import token_batch
from moviola.retrieval.corpus import PooledVideos
from moviola.training.data import Pairs, epoch_batches, epoch_parts

__all__ = ["PairLoss", "PairSampling", "PairStep", "PairTask"]


@dataclass(frozen=True)
class PairSampling:
    """Pairs of an epoch, and negatives of the ranking losses: any of the batch, later the hardest.

    Attributes:
        hard_from: the epoch, counted from 0, from which negatives are drawn from the hardest.
        hard_pool: number of the hardest.
        first_pool: number of the hardest before that; None: any of the batch, as in XML. The paper on
            potentially relevant pairs has 1 (appendix A: N_pool is 1 for 20 epochs, then 20).
        even_types: an epoch has as many pairs of each type of query (v, t, vt), rare ones repeatedly, rather
            than each pair once.
    """

    hard_from: int = 20
    hard_pool: int = 20
    first_pool: int | None = None
    even_types: bool = False

    def pool(self, epoch: int) -> int | None:
        """Number of the hardest from which an epoch draws; None for the whole batch."""
        return self.hard_pool if epoch >= self.hard_from else self.first_pool


@dataclass(frozen=True)
class PairStep:
    """A batch, with the rows of its queries and moments (B,) in :class:`Pairs`."""

    pairs: PairBatch
    queries: Integers
    moments: Integers


PairLoss = Callable[[PairStep, int, torch.Generator], Mapping[str, Tensor]]
"""The weighted terms of a batch in an epoch."""


@dataclass(frozen=True)
class PairTask:
    """Training on pairs of a query and a moment; the rest of the batch are their negatives.

    Attributes:
        videos: in the model's form.
        loss: the batch is on the model's device.
        evaluate: measures of the present model on val.
        sampling: pairs of an epoch.
        by_stream: every batch is of queries that subtitles alone answer (type t), or of others, so that a
            query's negatives are of its own stream.
    """

    model: nn.Module
    videos: PooledVideos
    queries: QueryFeatures
    pairs: Pairs
    loss: PairLoss
    evaluate: Callable[[], Mapping[str, float]]
    batch_size: int = 128
    sampling: PairSampling = PairSampling()
    by_stream: bool = False

    def batches_per_epoch(self) -> int:
        return sum(-(-len(part) // self.batch_size) for part in self._parts(np.random.default_rng(0)))

    def batches(self, epoch: int, draw: Generator) -> Iterator[PairStep]:
        """The batches of an epoch, videos of similar length together."""
        parts = self._parts(draw)
        for rows in epoch_batches(self.pairs, parts, self.videos.counts, self.batch_size, draw):
            yield self.batch(rows)

    def _parts(self, draw: Generator) -> list[Integers]:
        return epoch_parts(self.pairs, draw, even_types=self.sampling.even_types, by_stream=self.by_stream)

    def batch(self, rows: Integers) -> PairStep:
        """The batch of some pairs; a shared video is in it once."""
        pairs = self.pairs
        queries, moments = pairs.query[rows], pairs.moment[rows]
        videos, place = np.unique(pairs.video[moments], return_inverse=True)
        labels = self.videos.labels(pairs.video[moments], pairs.start[moments], pairs.end[moments])
        tokens, token_mask = token_batch(self.queries, queries)
        batch = PairBatch(
            tokens,
            token_mask,
            *self.videos.batch(videos),
            video=torch.from_numpy(place),
            labels=torch.from_numpy(labels),
            similarity=torch.from_numpy(pairs.similarity[rows]),
            positives=pairs.positives(rows),
            spoken=pairs.spoken(rows),
        )
        return PairStep(batch, queries, moments)

    def losses(self, batch: PairStep, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        device = next(self.model.parameters()).device
        return self.loss(replace(batch, pairs=batch.pairs.to(device)), epoch, generator)
