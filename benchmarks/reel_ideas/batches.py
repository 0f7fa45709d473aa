"""What a variant of Reel learns from: further negatives, and changed videos."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from moviola.features import Integers
from moviola.retrieval import Proposals
from moviola.study.models.reel import AnswerBatch
from moviola.study.training.tasks.answers import AnswerTask
from reel_ideas.models import UnknownBatch

__all__ = ["Change", "IdeaTask", "clips_repeated", "time_stretched"]

Change = Callable[[AnswerBatch, torch.Generator], AnswerBatch]
"""A batch as it is learned from; the generator is the only source of randomness."""

_BEST = 10  # proposals of a query, of which one is drawn


@dataclass(frozen=True)
class IdeaTask(AnswerTask):
    """Training of a variant.

    Attributes:
        changes: made one after the other, on the CPU.
        proposals: of each query, by stage 1: the video of one of the best ten is in its batch too.
        unknown: with the moments that the pair file lists after the first N of a query, for the model.
    """

    changes: tuple[Change, ...] = ()
    proposals: Proposals | None = None
    unknown: bool = False

    def videos(self, queries: Integers, draw: Generator) -> Integers:
        """Those of answers, and of proposals."""
        own = super().videos(queries, draw)
        if self.proposals is None:
            return own
        begin, count = self.proposals.offsets[queries], np.diff(self.proposals.offsets)[queries]
        drawn = begin + draw.integers(0, np.minimum(count, _BEST))
        return np.concatenate([own, self.proposals.video[drawn]])

    def of_videos(self, queries: Integers, videos: Integers) -> AnswerBatch:
        """The batch of some queries and some videos (n,), rising, by place."""
        batch = super().of_videos(queries, videos)
        if not self.unknown:
            return batch
        row = np.full(len(self.pairs.query_ids), -1)
        row[queries] = np.arange(len(queries))
        beyond = self.pairs.beyond
        own = beyond[(row[beyond["query"]] >= 0) & np.isin(beyond["video"], videos)]
        place = np.stack([row[own["query"]], np.searchsorted(videos, own["video"])], axis=1)
        spans = np.stack([own["start"], own["end"]], axis=1) / self.features.clip_seconds
        return UnknownBatch(
            **{field.name: getattr(batch, field.name) for field in fields(batch)},
            unknown=torch.from_numpy(place),
            unknown_span=torch.from_numpy(spans.astype(np.float32)),
        )

    def losses(self, batch: AnswerBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        for change in self.changes:
            batch = change(batch, generator)
        return super().losses(batch, epoch, generator)


# ---- changes ---------------------------------------------------------------------------------------------


def clips_repeated(batch: AnswerBatch, generator: torch.Generator) -> AnswerBatch:
    """One clip in ten is the one before it once more."""
    dropped = torch.rand(batch.mask.shape, generator=generator) < 0.1
    dropped[:, 0] = False
    place = torch.arange(batch.mask.shape[1]) - dropped.long()
    rows = torch.arange(len(batch.mask))[:, None]
    return replace(batch, visual=batch.visual[rows, place])


def time_stretched(batch: AnswerBatch, generator: torch.Generator) -> AnswerBatch:
    """All videos are slower or faster by one factor of 3/4 to 4/3."""
    factor = float(4 / 3) ** float(2 * torch.rand((), generator=generator) - 1)
    count = max(1, round(batch.mask.shape[1] * factor))
    place = ((torch.arange(count) + 0.5) / factor).floor().long().clamp(max=batch.mask.shape[1] - 1)
    heard = None if batch.subtitles is None else batch.subtitles[:, place]
    return replace(
        batch, visual=batch.visual[:, place], mask=batch.mask[:, place], subtitles=heard,
        cuts=batch.cuts[:, place], span=batch.span * factor,
    )  # fmt: skip
