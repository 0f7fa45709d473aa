"""Parts of trained models as modules of their own, so that each can be converted for itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from moviola.models.reel import Reel
from moviola.models.reloclnet import Context, ReLoCLNet
from moviola.models.spr import SegmentRetriever, SprClip, SprClipContext

__all__ = ["BestSpans", "Clips", "Part", "Query", "Segments", "WindowClips", "WindowSpans", "parts_of"]

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Part:
    """A part, and the shapes of its inputs, which are float32; None: an axis of any length."""

    module: nn.Module
    shapes: tuple[Shape, ...]


def parts_of(model: nn.Module) -> dict[str, Part]:
    """The parts of a model in evaluation mode, by name; none of a kind that is not run in parts."""
    return _PARTS[type(model)](model) if type(model) in _PARTS else {}


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


class WindowClips(nn.Module):
    """SPR's encodings of windows (N, L, d) with their mask (N, L), (N, L, ...)."""

    def __init__(self, model: SprClip | ReLoCLNet) -> None:
        super().__init__()
        self.model = model

    def forward(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None = None) -> Tensor:
        """Subtitles (N, L, d') where the model reads them."""
        if isinstance(self.model, SprClip):
            return self.model.encode_context(visual, mask).frames
        return torch.stack(self.model.encode_context(visual, mask, subtitles).clips, dim=2)


class WindowSpans(nn.Module):
    """The best spans of kept windows for one query, by SPR's refiners."""

    def __init__(self, model: SprClip | ReLoCLNet) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, query: Tensor, query_mask: Tensor, kept: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Of a query (1, n, d) and windows (N, L, ...) the score, first and last clip (N,)."""
        if isinstance(self.model, SprClip):
            return self.model.refine(query, query_mask, SprClipContext(kept, mask))
        return self.model.refine(query, query_mask, Context(mask, tuple(kept.unbind(2))))


def _stage1_parts(model: SegmentRetriever) -> dict[str, Part]:
    size = model.config.hidden_size
    return {
        "queries": Part(model.qfeat_proj, ((None, size),)),
        "segments": Part(Segments(model), ((None, None, size),)),
    }


def _reel_parts(model: Reel) -> dict[str, Part]:
    config = model.config
    sizes = [size for size in (config.visual_size, config.subtitle_size) if size]
    return {
        "clips": Part(Clips(model), tuple((1, None, size) for size in sizes)),
        "query": Part(Query(model), ((1, config.max_tokens, config.query_size), (1, config.max_tokens))),
        "spans": Part(BestSpans(model), ((None, 3, None), (None, None))),
    }


def _spr_clip_parts(model: SprClip) -> dict[str, Part]:
    size = model.config.hidden_size
    return {
        "windows": Part(WindowClips(model), ((None, None, size), (None, None))),
        "answers": Part(WindowSpans(model), ((1, 1, size), (1, 1), (None, None, size), (None, None))),
    }


def _reloclnet_parts(model: ReLoCLNet) -> dict[str, Part]:
    config = model.config
    heard: tuple[Shape, ...] = ((None, None, config.subtitle_size),) if config.subtitle_size else ()
    kept = (None, None, 1 + len(heard), config.hidden_size)
    return {
        "windows": Part(WindowClips(model), ((None, None, config.visual_size), (None, None), *heard)),
        "answers": Part(WindowSpans(model), ((1, None, config.query_size), (1, None), kept, (None, None))),
    }


_PARTS: dict[type[nn.Module], Callable[[Any], dict[str, Part]]] = {
    SegmentRetriever: _stage1_parts,
    Reel: _reel_parts,
    SprClip: _spr_clip_parts,
    ReLoCLNet: _reloclnet_parts,
}
