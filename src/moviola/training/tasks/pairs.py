"""Pairs of a query and a moment: what XML, ReLoCLNet and PREM's retriever learn from."""

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
from moviola.training.data import Pairs, batches_by_length

__all__ = ["PairLoss", "PairSampling", "PairStep", "PairTask"]


@dataclass(frozen=True)
class PairSampling:
    """Negatives of the ranking losses: any of the batch, later the hardest.

    Attributes:
        hard_from: the epoch, counted from 0, from which they are drawn out of the hardest.
        hard_pool: out of how many.
    """

    hard_from: int = 20
    hard_pool: int = 20

    def pool(self, epoch: int) -> int | None:
        """From how many of the hardest to draw in an epoch; None for the whole batch."""
        return self.hard_pool if epoch >= self.hard_from else None


@dataclass(frozen=True)
class PairStep:
    """A batch, and which queries and moments (B,) it is about, as rows of :class:`Pairs`."""

    pairs: PairBatch
    queries: Integers
    moments: Integers


PairLoss = Callable[[PairStep, int, torch.Generator], Mapping[str, Tensor]]
"""The weighted terms of a batch in an epoch."""


@dataclass(frozen=True)
class PairTask:
    """Training on pairs of a query and a moment; whatever else is in the batch is their negatives.

    Attributes:
        model: what learns.
        videos: as the model takes them.
        queries: of the pairs.
        pairs: each is learned from once per epoch.
        loss: see :data:`PairLoss`; the batch is on the model's device.
        judge: measures on val of the model as it is.
        batch_size: pairs of a batch.
    """

    model: nn.Module
    videos: PooledVideos
    queries: QueryFeatures
    pairs: Pairs
    loss: PairLoss
    judge: Callable[[], Mapping[str, float]]
    batch_size: int = 128

    def batches_per_epoch(self) -> int:
        """How many batches an epoch has; the last one may be smaller."""
        return -(-len(self.pairs) // self.batch_size)

    def batches(self, epoch: int, draw: Generator) -> Iterator[PairStep]:
        """The batches of an epoch, videos of alike length together."""
        lengths = self.videos.counts[self.pairs.video[self.pairs.moment]]
        for rows in batches_by_length(lengths, self.batch_size, draw):
            yield self.batch(rows)

    def batch(self, rows: Integers) -> PairStep:
        """The batch of some pairs; a video that several of them ask for is in it once."""
        pairs = self.pairs
        queries, moments = pairs.query[rows], pairs.moment[rows]
        videos, place = np.unique(pairs.video[moments], return_inverse=True)
        tokens, token_mask = token_batch(self.queries, queries)
        visual, mask, subtitles = self.videos.batch(videos)
        labels = self.videos.labels(pairs.video[moments], pairs.start[moments], pairs.end[moments])
        batch = PairBatch(
            query=tokens,
            query_mask=token_mask,
            visual=visual,
            mask=mask,
            subtitles=subtitles,
            video=torch.from_numpy(place),
            labels=torch.from_numpy(labels),
            similarity=torch.from_numpy(pairs.similarity[rows]),
            positives=pairs.positives(rows),
        )
        return PairStep(batch, queries, moments)

    def losses(self, batch: PairStep, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """The terms of :attr:`loss`."""
        device = next(self.model.parameters()).device
        return self.loss(replace(batch, pairs=batch.pairs.to(device)), epoch, generator)

    def evaluate(self) -> Mapping[str, float]:
        """What :attr:`judge` finds."""
        return self.judge()
