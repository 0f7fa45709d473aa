"""Batches of queries with windows of videos that hold an answer, for SPR's refiners (sections 3.3, 4.7).

A training window is a coarse proposal of the query that holds the pair's moment, widened like the proposals
that the model will refine. A strategy chooses what else a pair is compared with, see :data:`STRATEGIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.features import Integers, QueryFeatures, VideoFeatures
from moviola.retrieval import Proposals
from moviola.retrieval.encoded_windows import context_windows
from moviola.retrieval.refiners import CONTEXT
from moviola.retrieval.refiners.trained import WindowRefiner
from moviola.retrieval.saved.clip_windows import LABELS, ClipWindows
from moviola.study.models.batches import PairBatch
from moviola.study.models.checks import require_known, require_positive
from moviola.study.models.refining import Windows
from moviola.study.models.running import TorchRunner
from moviola.study.training.batches import padded, window_batch
from moviola.study.training.data import Lists, Pairs, batches_by_length

__all__ = ["STRATEGIES", "Drawn", "Examples", "WindowBatch", "WindowSampling", "WindowTask"]


@dataclass(frozen=True)
class WindowSampling:
    """Options of drawing windows and negatives.

    Attributes:
        context: seconds on both sides of a proposal.
        held_by_window: draw for a moment the proposals that hold it with their context, rather than without,
            as in the paper. Where proposals are shorter than moments, hardly any holds one without, and a
            model is trained on longer windows than it refines.
        segment_seconds: length of a segment, for moments that no proposal holds.
        strategy: a name in :data:`STRATEGIES`.
        strong: number of a query's first moments that are strong positives (N_s).
        weak: number of its last ones, besides the strong ones, that are weak positives (N_w).
        train_weak: with the strategy "strong-weak", the weak positive that is drawn for a query is trained as
            an answer as well, and not only kept below the strong one. The paper's "samples ranked between N_s
            and N - N_w are excluded in training" says so of those in between alone.
        hard_pool: number of a batch's hardest negatives from which the ranking losses draw.
        hard_negatives_from_epoch: the first epoch that does so; earlier ones draw from the whole batch.
    """

    context: float = CONTEXT
    held_by_window: bool = False
    segment_seconds: float = 4.0
    strategy: str = "standard"
    strong: int = 10
    weak: int = 20
    train_weak: bool = False
    hard_pool: int = 20
    hard_negatives_from_epoch: int = 10

    def __post_init__(self) -> None:
        require_known("strategy", self.strategy, STRATEGIES)
        if self.train_weak and self.strategy != "strong-weak":
            raise InvalidValue(
                f"train_weak: strategy {self.strategy!r} has no weak positives; set strategy 'strong-weak'"
            )
        require_positive(strong=self.strong, weak=self.weak, hard_pool=self.hard_pool)
        if self.context < 0 or self.segment_seconds <= 0:
            raise InvalidValue(
                f"context={self.context}, segment_seconds={self.segment_seconds}: "
                "give seconds, at least 0 of context and above 0 of a segment"
            )


@dataclass(frozen=True)
class Examples:
    """Pairs of a query and a moment with the query's coarse proposals; "a proposal" below is a row here."""

    features: VideoFeatures
    pairs: Pairs
    proposals: Proposals
    sampling: WindowSampling

    @cached_property
    def _compared(self) -> tuple[Lists, Lists]:
        """Of each pair the proposals that hold its moment; of each query those that touch no answer.

        Moments that the pseudo training set names as alike the query beyond the N that are learned from are
        answers too: many a "negative" would be one.
        """
        holding: list[Integers] = [np.empty(0, dtype=np.int64)] * len(self.pairs)
        free: list[Integers] = []
        context = self.sampling.context
        slack = context if self.sampling.held_by_window else 0.0
        beyond = self.pairs.beyond[np.argsort(self.pairs.beyond["query"], kind="stable")]
        for query in range(len(self.pairs.query_ids)):
            at, proposals = self.proposals.rows(query), self.proposals.of(query)
            own = np.arange(at.start, at.stop)
            rows = self.pairs.of_query.rows_of(query)
            video, start, end = (x[:, None] for x in self.moments(rows))
            there = proposals.video == video
            holds = there & (proposals.start - slack <= start) & (proposals.end + slack >= end)
            more = beyond[slice(*np.searchsorted(beyond["query"], [query, query + 1])), None]
            answers = {"video": video, "start": start, "end": end}
            videos, starts, ends = (np.concatenate([known, more[name]]) for name, known in answers.items())
            before, after = proposals.start - context < ends, proposals.end + context > starts
            touches = (proposals.video == videos) & before & after
            for row, held in zip(rows.tolist(), holds, strict=True):
                holding[row] = own[held]
            free.append(own[~touches.any(axis=0)])
        return Lists.of(holding), Lists.of(free)

    @property
    def holding(self) -> Lists:
        """The proposals of its query that hold each pair's moment whole, see ``held_by_window``."""
        return self._compared[0]

    @property
    def free(self) -> Lists:
        """The proposals of each query whose windows touch none of its answers, learned from or not."""
        return self._compared[1]

    def moments(self, rows: Integers) -> tuple[Integers, NDArray[np.float64], NDArray[np.float64]]:
        """Video, start and end (n,) of some pairs' moments, the end cut at the video's."""
        moment = self.pairs.moment[rows]
        video = self.pairs.video[moment]
        end = np.minimum(self.pairs.end[moment], self.features.durations[video])
        return video, self.pairs.start[moment], end

    def around(self, rows: Integers, draw: Generator, max_clips: int) -> ClipWindows:
        """A window for each of some pairs, with its moment inside.

        It is a proposal that holds the moment, drawn at random, or, if there is none, the moment widened to
        whole segments and by none or one more on each side; either way with the context.
        """
        video, start, end = self.moments(rows)
        length = self.sampling.segment_seconds
        more = draw.integers(0, 2, size=(2, len(rows)))
        first = (np.floor(start / length) - more[0]) * length
        last = (np.ceil(end / length) + more[1]) * length
        held = self.holding.counts[rows] > 0
        proposal = self.holding.draw(rows[held], draw)
        first[held], last[held] = self.proposals.start[proposal], self.proposals.end[proposal]
        return self._windows(video, first, last, max_clips)

    def beside(self, proposals: Integers, max_clips: int) -> ClipWindows:
        """The windows of some proposals, with the context."""
        own = self.proposals
        return self._windows(own.video[proposals], own.start[proposals], own.end[proposals], max_clips)

    def _windows(
        self, video: Integers, start: NDArray[np.float64], end: NDArray[np.float64], max_clips: int
    ) -> ClipWindows:
        context = self.sampling.context
        return context_windows(self.features, video, start, end, context=context, max_clips=max_clips)


# ---- strategies ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """An epoch of E examples.

    Attributes:
        pairs: (E,) int64, rows.
        weak: (E,) int64, rows of pairs of the same queries that answer less well, -1 for a pair that is
            compared with none; None without.
        free: (E,) int64, rows of proposals that do not answer; None without.
    """

    pairs: Integers
    weak: Integers | None = None
    free: Integers | None = None


def standard(examples: Examples, draw: Generator) -> Drawn:
    """Every pair once."""
    return Drawn(np.arange(len(examples.pairs)))


def hard_negative(examples: Examples, draw: Generator) -> Drawn:
    """Every pair once, against a proposal of its query without any answer (HN).

    Queries whose proposals all have one are left out.
    """
    query = examples.pairs.query
    rows = np.flatnonzero(examples.free.counts[query])
    return Drawn(rows, free=examples.free.draw(query[rows], draw))


def strong_weak(examples: Examples, draw: Generator) -> Drawn:
    """Every query once, a strong positive against a weak one and against a proposal without any answer.

    With ``train_weak`` the weak one is a pair of the epoch, too, against another such proposal. Strong are a
    query's first moments, weak the last of the others (HN w. N_s++, N_w+ in table 5). Queries without a weak
    one, or whose proposals all have an answer, are left out.
    """
    own, sampling = examples.pairs.of_query, examples.sampling
    query = np.flatnonzero((own.counts > sampling.strong) & (examples.free.counts > 0))
    begin, stop = own.begin[query], own.begin[query + 1]
    strong = draw.integers(begin, begin + sampling.strong)
    weak = draw.integers(np.maximum(begin + sampling.strong, stop - sampling.weak), stop)
    drawn = Drawn(own.rows[strong], weak=own.rows[weak], free=examples.free.draw(query, draw))
    if not sampling.train_weak:
        return drawn
    return Drawn(
        np.concatenate([drawn.pairs, own.rows[weak]]),
        weak=np.concatenate([own.rows[weak], np.full(len(query), -1)]),
        free=np.concatenate([drawn.free, examples.free.draw(query, draw)]),
    )


STRATEGIES: dict[str, Callable[[Examples, Generator], Drawn]] = {
    "standard": standard,
    "hard-negative": hard_negative,
    "strong-weak": strong_weak,
}
"""Composition of an epoch, by name (SPR, section 4.7)."""


# ---- the task --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WindowBatch:
    """A batch of pairs over windows, with the windows that each pair is compared with.

    Attributes:
        pairs: over the windows that hold the pairs' moments.
        free, weak: for each pair a window without any answer, and one that answers less well (where
            ``weak.there``); None where the strategy draws none.
    """

    pairs: PairBatch
    free: Windows | None
    weak: Windows | None


@dataclass(frozen=True)
class WindowTask:
    """Training of a refiner, which also runs the model after it; ``evaluate`` measures the model on val."""

    refiner: WindowRefiner
    examples: Examples
    queries: QueryFeatures
    evaluate: Callable[[], Mapping[str, float]]
    batch_size: int = 256

    @property
    def model(self) -> nn.Module:
        """The network of the refiner."""
        return cast("nn.Module", cast("TorchRunner", self.refiner.model.runner).network)

    def _drawn(self, draw: Generator) -> Drawn:
        return STRATEGIES[self.examples.sampling.strategy](self.examples, draw)

    @cached_property
    def _epoch(self) -> int:
        size = len(self._drawn(np.random.default_rng(0)).pairs)
        if not size:
            raise InvalidValue(
                f"strategy {self.examples.sampling.strategy!r}: no query has enough for it; give more "
                "moments or proposals per query, fewer strong ones, or use the strategy 'standard'"
            )
        return size

    def batches_per_epoch(self) -> int:
        return -(-self._epoch // self.batch_size)

    def batches(self, epoch: int, draw: Generator) -> Iterator[WindowBatch]:
        """The batches of an epoch, with new windows, those of similar length together."""
        examples, most = self.examples, self.refiner.max_clips
        drawn = self._drawn(draw)
        video = examples.moments(drawn.pairs)[0]
        windows = examples.around(drawn.pairs, draw, most)
        weak = free = there = None
        if drawn.weak is not None:
            there = drawn.weak >= 0
            rows = np.where(there, drawn.weak, drawn.pairs)  # some window, which does not count
            weak = examples.moments(rows)[0], examples.around(rows, draw, most)
        if drawn.free is not None:
            free = examples.proposals.video[drawn.free], examples.beside(drawn.free, most)
        for at in batches_by_length(windows.clips, self.batch_size, draw):
            pairs = self._pairs(drawn.pairs[at], video[at], windows.take(at))
            yield WindowBatch(pairs, self._beside(free, at), self._beside(weak, at, there))

    def _pairs(self, rows: Integers, video: Integers, windows: ClipWindows) -> PairBatch:
        """The batch of some pairs in their windows; a shared one is in it once."""
        pairs = self.examples.pairs
        _, start, end = self.examples.moments(rows)
        place = np.stack([video, windows.first, windows.stop])
        _, first, which = np.unique(place, axis=1, return_index=True, return_inverse=True)
        own = pairs.query[rows].tolist()
        query, query_mask = padded([self.refiner.query_rows(self.queries, row) for row in own])
        labels = windows.labels(start, end, LABELS[self.refiner.labels])
        return PairBatch(
            query,
            query_mask,
            *self._read(video[first], windows.take(first)),
            video=torch.from_numpy(which.reshape(-1)),
            labels=torch.from_numpy(labels),
            similarity=torch.from_numpy(pairs.similarity[rows]),
            positives=pairs.positives(rows),
            spoken=pairs.spoken(rows),
        )

    def _beside(
        self,
        further: tuple[Integers, ClipWindows] | None,
        rows: Integers,
        there: NDArray[np.bool_] | None = None,
    ) -> Windows | None:
        compared = None if there is None or there.all() else torch.from_numpy(there[rows])
        return further and Windows(*self._read(further[0][rows], further[1].take(rows)), compared)

    def _read(self, video: Integers, windows: ClipWindows) -> tuple[Tensor, Tensor, Tensor | None]:
        return window_batch(self.refiner.streams(self.examples.features), video, windows)

    def losses(self, batch: WindowBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        device, sampling = next(self.model.parameters()).device, self.examples.sampling
        terms: Mapping[str, Tensor] = cast("Any", self.model).loss(
            batch.pairs.to(device),
            hard_pool=sampling.hard_pool if epoch >= sampling.hard_negatives_from_epoch else None,
            generator=generator,
            hard_negatives=batch.free and batch.free.to(device),
            weak_positives=batch.weak and batch.weak.to(device),
        )
        return terms
