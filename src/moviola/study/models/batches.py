"""Input of a training step, and result of ranking a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor

__all__ = ["Batch", "CandidateBatch", "PairBatch", "Ranked", "Rows", "Tensors", "rows_at_once"]

_LARGEST = 2**26
"""Numbers in the largest tensor of a ranking: 256 MiB of float32."""


def rows_at_once(numbers: int) -> int:
    """Rows (queries, videos) per batch of a ranking, by the numbers that each needs."""
    return max(1, _LARGEST // max(1, numbers))


@dataclass(frozen=True)
class Tensors:
    """A value of tensors, or tuples of them; None for one that is not there."""

    def to(self, device: torch.device | str) -> Self:
        """The same on another device."""
        return self._each(lambda tensor: tensor.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Self:
        def changed(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(changed, value))
            return None if value is None else change(value)

        return replace(self, **{field.name: changed(getattr(self, field.name)) for field in fields(self)})


@dataclass(frozen=True)
class Rows(Tensors):
    """Encoded queries, videos or windows, one for each row of every tensor."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def select(self, rows: Tensor | slice) -> Self:
        """Those at ``rows``: int64, whose shape takes the place of the first dimension, or a slice."""
        if isinstance(rows, slice):
            return self._each(lambda tensor: tensor[rows])
        return self._each(lambda tensor: tensor[rows.to(tensor.device)])


@dataclass(frozen=True)
class Batch(Tensors):
    """Common part of all batches: B queries and U different videos (or windows of videos).

    Attributes:
        query, query_mask: (B, Lq, dq) float32, features of the query's tokens, zero where padded, and (B, Lq)
            float32, 1 for a token.
        visual, mask: (U, L, dv) and (U, L) float32, of clips; the mask is 1 for a clip.
        subtitles: (U, L, ds) float32, features of what is said in each clip; None without that stream.
    """

    query: Tensor
    query_mask: Tensor
    visual: Tensor
    mask: Tensor
    subtitles: Tensor | None

    def __len__(self) -> int:
        return len(self.query)


@dataclass(frozen=True)
class PairBatch(Batch):
    """B pairs of a query and a moment, over V different videos (or windows of videos), V <= B.

    A video that several pairs ask for is held, and encoded, once. What a loss says about "the batch's videos"
    is meant pair by pair, so columns are taken as ``[:, video]``.

    Attributes:
        video: (B,) int64, the row of each pair's video.
        labels: (B, 2) int64, clips of start and end, in the model's own convention.
        similarity: (B,) float32 in [0, 1], how well the moment's caption answers the query.
        positives: (B, B) bool, the positive pair mask of TVR-Ranking, appendix C.1: whether the video of pair
            j (column) is related to the query of pair i (row) anywhere in the training set. So the diagonal
            is True, and pairs of one video have equal columns.
        spoken: (B,) bool, whether subtitles alone answer the query (type t); None where types are unknown.
        rows: (B,) int64, rows of the pairs in the training set; None where no loss reads them.
    """

    video: Tensor
    labels: Tensor
    similarity: Tensor
    positives: Tensor
    spoken: Tensor | None = None
    rows: Tensor | None = None


@dataclass(frozen=True)
class CandidateBatch(Batch):
    """B queries with C candidate videos each, out of U different videos, each held, and encoded, once.

    Attributes:
        candidates: (B, C) int64, rows of the videos; column 0 is the video that has the moment.
        labels: (B, 2) int64, first and last clip of the moment: floor(start / clip_seconds) and
            ceil(end / clip_seconds) - 1, both at most the video's last clip.
        similarity: (B,) float32 in [0, 1], how well the moment's caption answers the query.
        spoken: (B,) bool, whether subtitles alone answer the query (type t); None where types are unknown.
    """

    candidates: Tensor
    labels: Tensor
    similarity: Tensor
    spoken: Tensor | None = None


@dataclass(frozen=True)
class Ranked:
    """Ranked moments of Q queries, at most K each, best first.

    Attributes:
        video: (Q, K) int64, rows of the corpus; -1 where a query has fewer than K moments.
        start: (Q, K) float32, seconds from the start of the video (or window).
        end: (Q, K) float32, seconds, exclusive; not cut at the video's duration.
        score: (Q, K) float32, falling.
    """

    video: Tensor
    start: Tensor
    end: Tensor
    score: Tensor

    @classmethod
    def joined(cls, parts: Iterable[Ranked]) -> Ranked:
        """Those of some queries after those of others."""
        together = list(parts)
        columns = ([getattr(part, field.name) for part in together] for field in fields(cls))
        return cls(*map(torch.cat, columns))

    @classmethod
    def whole_videos(cls, rows: Tensor, scores: Tensor) -> Ranked:
        """Videos, by row and score (Q, K) each, as moments that end when their videos do."""
        return cls(rows, torch.zeros_like(scores), torch.full_like(scores, torch.inf), scores)
