"""Parts of trained models as modules of their own, so that each can be converted for itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from moviola.study.models.reel import Reel, ReelStage1, RoleEncoder
from moviola.study.models.reloclnet import Context, ReLoCLNet
from moviola.study.models.spr import SegmentRetriever, SprClip, SprClipContext

__all__ = ["Part", "parts_of"]

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Part:
    """A part, and the shapes of its inputs, which are float32; None: an axis of any length."""

    module: nn.Module
    shapes: tuple[Shape, ...]


class _Step(nn.Module):
    def __init__(self, model: nn.Module, run: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.run = model, run

    def forward(self, *inputs: Tensor) -> Any:
        return self.run(*inputs)


def parts_of(model: nn.Module) -> dict[str, Part]:
    """The parts of a model in evaluation mode, by name; none of a kind that is not run in parts."""
    return _PARTS[type(model)](model) if type(model) in _PARTS else {}


def _stage1_parts(model: SegmentRetriever) -> dict[str, Part]:
    """Embeddings, not normalised: ``queries`` of (Q, d), ``segments`` of whole ones (S, T, d), (S, d)."""
    size = model.config.hidden_size
    segments = _Step(model, lambda frames: model.encode_segments(frames, torch.ones_like(frames[..., 0])))
    return {
        "queries": Part(model.qfeat_proj, ((None, size),)),
        "segments": Part(segments, ((None, None, size),)),
    }


def _role_parts(model: RoleEncoder) -> dict[str, Part]:
    """``clips`` of one video (1, L, d), and of subtitles (1, L, d') where it reads them: (1, L, R, h).

    ``query``: (1, R, h) of tokens (1, n, d) with their mask (1, n).
    """
    config = model.config

    def clips(visual: Tensor, subtitles: Tensor | None = None) -> Tensor:
        return model.encode_clips(visual, torch.ones_like(visual[..., 0]), subtitles)

    sizes = [size for size in (config.visual_size, config.subtitle_size) if size]
    query = ((1, config.max_tokens, config.query_size), (1, config.max_tokens))
    return {
        "clips": Part(_Step(model, clips), tuple((1, None, size) for size in sizes)),
        "query": Part(_Step(model, model.encode_query), query),
    }


def _reel_parts(model: Reel) -> dict[str, Part]:
    """Those of its encoder, and ``spans``: score, first and last clip (N,) of the best span of windows, and
    the log odds that they hold an answer where the model gives them.

    From dot products (N, R, L), the mask (N, L) and, where the model reads them, the cuts (N, L).
    """
    windows: tuple[Shape, ...] = ((None, len(model.query_roles), None), (None, None))
    shapes = (*windows, (None, None)) if model.config.cuts else windows
    return {**_role_parts(model), "spans": Part(_Step(model, model.best_spans), shapes)}


def _spr_clip_parts(model: SprClip) -> dict[str, Part]:
    """``windows``: encodings (N, L, d) of windows (N, L, d) with their mask (N, L).

    ``answers``: score, first and last clip (N,) of the best span of kept windows for one query (1, 1, d).
    """
    size = model.config.hidden_size
    windows = _Step(model, lambda visual, mask: model.encode_context(visual, mask).frames)
    answers = _Step(
        model,
        lambda query, query_mask, kept, mask: model.refine(query, query_mask, SprClipContext(kept, mask)),
    )
    return {
        "windows": Part(windows, ((None, None, size), (None, None))),
        "answers": Part(answers, ((1, 1, size), (1, 1), (None, None, size), (None, None))),
    }


def _reloclnet_parts(model: ReLoCLNet) -> dict[str, Part]:
    """The same, of tokens (1, n, d); subtitles (N, L, d') besides where it reads them: (N, L, streams, h)."""
    config = model.config

    def windows(visual: Tensor, mask: Tensor, subtitles: Tensor | None = None) -> Tensor:
        return torch.stack(model.encode_context(visual, mask, subtitles).clips, dim=2)

    def answers(query: Tensor, query_mask: Tensor, kept: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        return model.refine(query, query_mask, Context(mask, tuple(kept.unbind(2))))

    heard: tuple[Shape, ...] = ((None, None, config.subtitle_size),) if config.subtitle_size else ()
    kept = (None, None, 1 + len(heard), config.hidden_size)
    query = ((1, None, config.query_size), (1, None))
    return {
        "windows": Part(_Step(model, windows), ((None, None, config.visual_size), (None, None), *heard)),
        "answers": Part(_Step(model, answers), (*query, kept, (None, None))),
    }


_PARTS: dict[type[nn.Module], Callable[[Any], dict[str, Part]]] = {
    SegmentRetriever: _stage1_parts,
    Reel: _reel_parts,
    ReelStage1: _role_parts,
    SprClip: _spr_clip_parts,
    ReLoCLNet: _reloclnet_parts,
}
