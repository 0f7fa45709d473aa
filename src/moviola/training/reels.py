"""Training of Reel: queries with all their answers in the videos of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from moviola.measures import Run, temporal_nms
from moviola.models.reel import AnswerBatch, Reel, ReelContext
from moviola.models.spans import ClipWindows
from moviola.training.data import Clips, Pairs, Queries, Rows
from moviola.training.loop import LoopConfig
from moviola.training.optimizers import OptimizerConfig
from moviola.training.recipes import Phase, Settings, Sizes, Split, judge
from moviola.training.windows import refined_run

__all__ = ["REEL", "ReelRecipe", "ReelTask", "encoded_clips", "reel_run"]


@dataclass(frozen=True)
class ReelTask:
    """Training of :class:`Reel`.

    A batch is some queries and, for each, one of its answers; the videos of these answers are the batch's
    videos, and every answer of every query in any of them counts.

    Attributes:
        judge: measures on val of the model as it is.
    """

    model: Reel
    clips: Clips
    queries: Queries
    pairs: Pairs
    judge: Callable[[], Mapping[str, float]]
    batch_size: int = 64

    def batches_per_epoch(self) -> int:
        """See :class:`moviola.training.loop.Task`; each query is asked once an epoch."""
        return -(-len(self._asked) // self.batch_size)

    @cached_property
    def _asked(self) -> Rows:
        return np.unique(self.pairs.query)

    @cached_property
    def _by_query(self) -> tuple[Rows, Rows]:
        """Pairs ordered by query, and where each query's pairs begin (Q + 1)."""
        order = np.argsort(self.pairs.query, kind="stable")
        counts = np.bincount(self.pairs.query, minlength=len(self.pairs.query_ids))
        return order, np.concatenate([[0], np.cumsum(counts)])

    def batches(self, epoch: int, draw: Generator) -> Iterator[AnswerBatch]:
        """See :class:`moviola.training.loop.Task`."""
        order = draw.permutation(self._asked)
        for begin in range(0, len(order), self.batch_size):
            yield self.batch(order[begin : begin + self.batch_size], draw)

    def batch(self, queries: Rows, draw: Generator) -> AnswerBatch:
        """The batch of some queries (rows)."""
        order, begin = self._by_query
        chosen = order[draw.integers(begin[queries], begin[queries + 1])]
        videos = np.unique(self.pairs.video[self.pairs.moment[chosen]])
        pairs = np.concatenate([order[begin[q] : begin[q + 1]] for q in queries])
        rows = np.repeat(np.arange(len(queries)), begin[queries + 1] - begin[queries])
        video = self.pairs.video[self.pairs.moment[pairs]]
        there = np.isin(video, videos)
        pairs, rows, video = pairs[there], rows[there], video[there]
        moments = self.pairs.moment[pairs]
        spans = (
            np.stack([self.pairs.start[moments], self.pairs.end[moments]], axis=1) / self.clips.clip_seconds
        )
        tokens, token_mask = self.queries.tokens(queries)
        visual, mask, heard = self.clips.batch(videos)
        return AnswerBatch(
            query=tokens,
            query_mask=token_mask,
            visual=visual,
            mask=mask,
            subtitles=heard,
            answer=torch.from_numpy(np.stack([rows, np.searchsorted(videos, video)], axis=1)),
            span=torch.from_numpy(spans.astype(np.float32)),
            similarity=torch.from_numpy(self.pairs.similarity[pairs]),
        )

    def losses(self, batch: AnswerBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """See :class:`moviola.training.loop.Task`."""
        return self.model.loss(batch.to(next(self.model.parameters()).device))

    def evaluate(self) -> Mapping[str, float]:
        """See :class:`moviola.training.loop.Task`."""
        return self.judge()


def encoded_clips(model: Reel, clips: Clips, *, batch: int = 32) -> list[Tensor]:
    """What Reel stores of each video: (n, 3, h) float32 each."""
    device = next(model.parameters()).device
    order = np.argsort(clips.counts, kind="stable")
    stored: list[Tensor] = [torch.empty(0)] * len(order)
    with torch.inference_mode():
        for begin in range(0, len(order), batch):
            rows = order[begin : begin + batch]
            visual, mask, heard = clips.batch(rows)
            context = model.encode_context(
                visual.to(device), mask.to(device), None if heard is None else heard.to(device)
            )
            for row, encoded in zip(rows.tolist(), context.clips, strict=True):
                stored[row] = encoded[: clips.counts[row]]
    return stored


def reel_run(model: Reel, split: Split, *, context: float = 8.0, nms: float | None = 0.5) -> Run:
    """Proposals refined and re-ranked by Reel.

    Args:
        model: a trained one.
        split: with proposals.
        context: padding on both sides of a proposal in seconds.
        nms: of two refined moments of a video that overlap more than this (IoU), the better one stays; None
            keeps all.
    """
    assert split.proposals is not None
    stored = encoded_clips(model, split.clips)
    device = stored[0].device
    with torch.inference_mode():
        tokens, token_mask = split.queries.tokens(np.arange(len(split.queries)))
        queries = model.encode_query(tokens.to(device), token_mask.to(device))

        def refine(row: int, video: Rows, windows: ClipWindows) -> tuple[Tensor, Tensor, Tensor]:
            parts = [
                stored[v][a:b]
                for v, a, b in zip(video.tolist(), windows.first.tolist(), windows.stop.tolist(), strict=True)
            ]
            return _refined(model, queries[row : row + 1], parts)

        run = refined_run(
            refine, split.proposals, split.clips, split.queries, context=context, longest=1 << 30
        )
    return run if nms is None else temporal_nms(run, nms)


def _refined(model: Reel, query: Tensor, parts: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Windows (n_i, 3, h) of one query, those of like length together so that little is padded."""
    lengths = np.array([len(part) for part in parts])
    found = [torch.empty(len(parts)), *(torch.empty(len(parts), dtype=torch.int64) for _ in range(2))]
    for rows in np.array_split(np.argsort(lengths, kind="stable"), -(-len(parts) // 32)):
        padded = nn.utils.rnn.pad_sequence([parts[row] for row in rows.tolist()], batch_first=True)
        there = torch.arange(padded.shape[1]) < torch.from_numpy(lengths[rows])[:, None]
        decoded = model.refine(query, ReelContext(padded, there.float().to(padded.device)))
        for column, values in zip(found, decoded, strict=True):
            column[torch.from_numpy(rows)] = values.cpu()
    return found[0], found[1], found[2]


@dataclass(frozen=True)
class ReelRecipe:
    """Our own refiner; see :mod:`moviola.models.reel`."""

    architecture: str = "reel"
    needs: frozenset[str] = frozenset({"proposals"})

    @property
    def settings(self) -> Settings:
        """Chosen on gridhouse's val."""
        optimizer = OptimizerConfig(
            name="adamw", lr=1e-3, eps=1e-8, weight_decay=1e-2, warmup=0.05, schedule="cosine", clip_norm=1.0
        )
        loop = LoopConfig(
            epochs=30, batch_size=32, optimizer=optimizer, patience=0, select="nDCG@20,IoU>=0.5"
        )
        return Settings(loops={"train": loop})

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """See :class:`moviola.training.recipes.Recipe`."""
        return {
            "visual_size": sizes.visual,
            "subtitle_size": sizes.subtitle,
            "query_size": sizes.query,
            "clip_seconds": sizes.clip_seconds,
        }

    def phases(self, model: nn.Module, train: Split, val: Split, settings: Settings) -> Iterable[Phase]:
        """See :class:`moviola.training.recipes.Recipe`."""
        loop = settings.loops["train"]
        yield Phase(
            ReelTask(
                cast("Reel", model),
                train.clips,
                train.queries,
                train.pairs,
                lambda: judge(self.run(model, val), val),
                loop.batch_size,
            ),
            loop,
        )

    def run(self, model: nn.Module, split: Split) -> Run:
        """See :class:`moviola.training.recipes.Recipe`."""
        return reel_run(cast("Reel", model), split)


REEL = ReelRecipe()
