"""Parts of trained models as modules of their own, so that each can be compiled for itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from moviola.models.reel import Reel
from moviola.models.spr import SegmentRetriever

__all__ = ["BestSpans", "Clips", "Query", "Segments"]


class Segments(nn.Module):
    """Embeddings (S, d) of whole segments (S, T, d) by SPR's stage 1."""

    def __init__(self, model: SegmentRetriever) -> None:
        super().__init__()
        self.model = model

    def forward(self, frames: Tensor) -> Tensor:
        """(S, T, d) to (S, d), not normalised."""
        return self.model.encode_segments(frames, torch.ones_like(frames[..., 0]))


class Clips(nn.Module):
    """Reel's clips (1, L, 3, h) of a video: (1, L, d), and (1, L, d') where it reads subtitles."""

    def __init__(self, model: Reel) -> None:
        super().__init__()
        self.model = model

    def forward(self, visual: Tensor, subtitles: Tensor | None = None) -> Tensor:
        """All clips are there."""
        return self.model.encode_context(visual, torch.ones_like(visual[..., 0]), subtitles).clips


class Query(nn.Module):
    """Reel's query (1, 3, h) of tokens (1, n, d) with their mask (1, n)."""

    def __init__(self, model: Reel) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """(1, n, d) and (1, n) to (1, 3, h) of length 1."""
        return self.model.encode_query(tokens, mask)


class BestSpans(nn.Module):
    """Reel's best spans of windows from dot products (N, 3, L) and the mask (N, L)."""

    def __init__(self, model: Reel) -> None:
        super().__init__()
        self.model = model

    def forward(self, similarity: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Score (N,), first and last clip (N,)."""
        return self.model.best_spans(similarity, mask)
