"""What a training step is given and what ranking a corpus gives back."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

__all__ = ["PairBatch", "Ranked"]


@dataclass(frozen=True)
class PairBatch:
    """Pairs of a query and a moment; B pairs over V different videos (or windows of videos), V <= B.

    A video that several pairs ask for is held, and encoded, once: pair i belongs to row ``video[i]``. What a
    loss says about "the batch's videos" is meant pair by pair, so columns are taken as ``[:, video]``.

    Attributes:
        query: (B, Lq, dq) float32, features of the query's tokens, zero where padded.
        query_mask: (B, Lq) float32, 1 for a token and 0 for padding.
        visual: (V, L, dv) float32, features of the clips, zero where padded.
        mask: (V, L) float32, 1 for a clip and 0 for padding.
        subtitles: (V, L, ds) float32, features of what is said in each clip; None without that stream.
        video: (B,) int64, the row of each pair's video.
        labels: (B, 2) int64, clips of start and end, in the model's own convention.
        similarity: (B,) float32 in [0, 1], how well the moment's caption answers the query.
        positives: (B, B) bool, whether the moment of pair j (column) answers the query of pair i (row); the
            diagonal is True.
    """

    query: Tensor
    query_mask: Tensor
    visual: Tensor
    mask: Tensor
    subtitles: Tensor | None
    video: Tensor
    labels: Tensor
    similarity: Tensor
    positives: Tensor

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.query)

    def to(self, device: torch.device | str) -> PairBatch:
        """The same batch on another device."""
        tensors = {
            field.name: value.to(device)
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None
        }
        return replace(self, **tensors)


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
