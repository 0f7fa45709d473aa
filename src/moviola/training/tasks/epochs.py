"""Epochs of pairs of a query and a moment: what :mod:`.pairs` and :mod:`.candidates` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from moviola.features import Integers, QueryFeatures
from moviola.retrieval.corpus import PooledVideos
from moviola.training.data import Pairs, epoch_batches, epoch_parts

__all__ = ["EpochsOfPairs"]

Batch = TypeVar("Batch")


@dataclass(frozen=True)
class EpochsOfPairs(ABC, Generic[Batch]):
    """Training on pairs, each once per epoch, or types drawn evenly.

    Attributes:
        videos: in the model's form.
        loss: weighted terms of a batch, which is on the model's device.
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
    loss: Callable[..., Mapping[str, Tensor]]
    evaluate: Callable[[], Mapping[str, float]]
    batch_size: int
    even_types: bool = False
    by_stream: bool = False

    def batches_per_epoch(self) -> int:
        """Number of batches, in every epoch the same."""
        return sum(-(-len(part) // self.batch_size) for part in self._parts(np.random.default_rng(0)))

    def batches(self, epoch: int, draw: Generator) -> Iterator[Batch]:
        """The batches of an epoch, videos of similar length together."""
        parts = self._parts(draw)
        for rows in epoch_batches(self.pairs, parts, self.videos.counts, self.batch_size, draw):
            yield self.batch(rows, draw)

    def _parts(self, draw: Generator) -> list[Integers]:
        return epoch_parts(self.pairs, draw, even_types=self.even_types, by_stream=self.by_stream)

    @abstractmethod
    def batch(self, rows: Integers, draw: Generator) -> Batch:
        """The batch of some pairs; a shared video is in it once."""

    def losses(self, batch: Any, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """Weighted terms of the loss."""
        return self.loss(batch.to(next(self.model.parameters()).device))
