"""Batches of pairs of a query and a moment, for XML, ReLoCLNet and PREM's retriever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from moviola.features import Integers
from moviola.models.batches import PairBatch
from moviola.retrieval.batches import token_batch
from moviola.training.tasks.epochs import EpochsOfPairs

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


class PairTask(EpochsOfPairs[PairStep]):
    """Training on pairs of a query and a moment; the rest of the batch are their negatives.

    ``loss`` is a :data:`PairLoss`.
    """

    def batch(self, rows: Integers, draw: Generator) -> PairStep:
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
