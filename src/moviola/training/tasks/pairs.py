"""Batches of pairs of a query and a moment, for XML, ReLoCLNet and PREM's retriever."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.features import Integers, QueryFeatures
from moviola.models.batches import PairBatch
from moviola.retrieval.batches import token_batch
from moviola.retrieval.corpus import PooledVideos
from moviola.training.data import Pairs, batches_by_length

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

    def drawn(self, pairs: Pairs, draw: Generator) -> Integers:
        """Rows of an epoch's pairs, as many as there are pairs.

        Raises:
            InvalidValue: types are to be even, and a query has none.
        """
        if not self.even_types:
            return np.arange(len(pairs))
        if not pairs.types or "" in pairs.types:
            raise InvalidValue(
                "sampling.even_types: a training query has no type; give a pair file with the field 'type' "
                "(v, t or vt), or leave the setting out"
            )
        of_pair = np.unique(pairs.types, return_inverse=True)[1][pairs.query]
        kinds = np.unique(of_pair)
        share = -(-len(pairs) // len(kinds))
        drawn = [np.resize(draw.permutation(np.flatnonzero(of_pair == kind)), share) for kind in kinds]
        return np.concatenate(drawn)[: len(pairs)]


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
        batches: list[Integers] = []
        parts = self._parts(draw)
        for part in parts:
            lengths = self.videos.counts[self.pairs.video[self.pairs.moment[part]]]
            batches += [part[rows] for rows in batches_by_length(lengths, self.batch_size, draw)]
        order = draw.permutation(len(batches)) if len(parts) > 1 else range(len(batches))
        for place in order:
            yield self.batch(batches[place])

    def _parts(self, draw: Generator) -> list[Integers]:
        """Rows of an epoch's pairs, in parts that no batch mixes; each as long whatever is drawn."""
        chosen = self.sampling.drawn(self.pairs, draw)
        spoken = self.pairs.spoken(chosen) if self.by_stream else None
        return [chosen] if spoken is None else [chosen[~spoken.numpy()], chosen[spoken.numpy()]]

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
