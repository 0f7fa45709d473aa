"""Epochs of pairs of a query and a moment; batches of them, for XML, ReLoCLNet and PREM's retriever."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.features import Integers, QueryFeatures
from moviola.study.models.batches import PairBatch
from moviola.study.training.batches import token_batch
from moviola.study.training.corpus import PooledVideos
from moviola.study.training.data import Pairs, batches_by_length

__all__ = ["EpochsOfPairs", "PairLoss", "PairSampling", "PairTask"]


Batch = TypeVar("Batch")
PairLoss = Callable[[Any, int, torch.Generator], Mapping[str, Tensor]]
"""The weighted terms of a batch in an epoch."""


@dataclass(frozen=True)
class EpochsOfPairs(ABC, Generic[Batch]):
    """Training on pairs, each once per epoch, or types drawn evenly.

    Attributes:
        videos: in the model's form.
        loss: weighted terms of a batch, which is on the model's device, in an epoch.
        evaluate: measures of the present model on val.
        batch_size: pairs per batch.
        even_types: an epoch has as many pairs of each type of query (v, t, vt), rare ones repeatedly, rather
            than each pair once.
        by_stream: every batch is of queries that subtitles alone answer (type t), or of others, so that a
            query's negatives are of its own stream.
    """

    model: nn.Module
    videos: PooledVideos
    queries: QueryFeatures
    pairs: Pairs
    loss: PairLoss
    evaluate: Callable[[], Mapping[str, float]]
    batch_size: int
    even_types: bool = False
    by_stream: bool = False

    def batches_per_epoch(self) -> int:
        """Number of batches, in every epoch the same."""
        return sum(-(-len(part) // self.batch_size) for part in self.parts(np.random.default_rng(0)))

    def batches(self, epoch: int, draw: Generator) -> Iterator[Batch]:
        """The batches of an epoch, videos of similar length together."""
        parts = self.parts(draw)
        lengths = self.videos.counts[self.pairs.video[self.pairs.moment]]
        batches = [
            part[rows] for part in parts for rows in batches_by_length(lengths[part], self.batch_size, draw)
        ]
        order = draw.permutation(len(batches)) if len(parts) > 1 else range(len(batches))
        for place in order:
            yield self.batch(batches[place], draw)

    def parts(self, draw: Generator) -> list[Integers]:
        """Rows of an epoch's pairs, in parts that no batch mixes; each part is as long whatever is drawn.

        Raises:
            InvalidValue: types are to be even, and a query has none.
        """
        pairs = self.pairs
        rows = np.arange(len(pairs))
        if self.even_types:
            if not pairs.types or "" in pairs.types:
                raise InvalidValue(
                    "sampling.even_types: a training query has no type; give a pair file with the field "
                    "'type' (v, t or vt), or leave the setting out"
                )
            of_pair = np.unique(pairs.types, return_inverse=True)[1][pairs.query]
            kinds = np.unique(of_pair)
            share = -(-len(pairs) // len(kinds))
            drawn = [np.resize(draw.permutation(np.flatnonzero(of_pair == kind)), share) for kind in kinds]
            rows = np.concatenate(drawn)[: len(pairs)]
        spoken = pairs.spoken(rows) if self.by_stream else None
        return [rows] if spoken is None else [rows[~spoken.numpy()], rows[spoken.numpy()]]

    @abstractmethod
    def batch(self, rows: Integers, draw: Generator) -> Batch:
        """The batch of some pairs; a shared video is in it once."""

    def losses(self, batch: Any, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """Weighted terms of the loss."""
        return self.loss(batch.to(next(self.model.parameters()).device), epoch, generator)


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


class PairTask(EpochsOfPairs[PairBatch]):
    """Training on pairs of a query and a moment; the rest of the batch are their negatives."""

    def batch(self, rows: Integers, draw: Generator) -> PairBatch:
        pairs = self.pairs
        moments = pairs.moment[rows]
        videos, place = np.unique(pairs.video[moments], return_inverse=True)
        labels = self.videos.labels(pairs.video[moments], pairs.start[moments], pairs.end[moments])
        tokens, token_mask = token_batch(self.queries, pairs.query[rows])
        return PairBatch(
            tokens,
            token_mask,
            *self.videos.batch(videos),
            video=torch.from_numpy(place),
            labels=torch.from_numpy(labels),
            similarity=torch.from_numpy(pairs.similarity[rows]),
            positives=pairs.positives(rows),
            spoken=pairs.spoken(rows),
            rows=torch.from_numpy(rows),
        )
