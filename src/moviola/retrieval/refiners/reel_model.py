"""Reel by torch, on any device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from moviola.models.reel import Reel
from moviola.retrieval.refiners.reel import ReelRefiner
from moviola.retrieval.refiners.trained import Decoded

__all__ = ["TorchReel", "reel_refiner"]

Floats = NDArray[np.float32]


def reel_refiner(model: Reel, revision: str, **options: Any) -> ReelRefiner:
    """A refiner that runs a model in evaluation mode; for the rest see :class:`ReelRefiner`."""
    return ReelRefiner(TorchReel(model), revision, **options)


@dataclass(frozen=True)
class TorchReel:
    """A model as :class:`moviola.retrieval.refiners.reel.ReelParts`."""

    reel: Reel

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of a query."""
        return self.reel.config.max_tokens

    @property
    def reads_subtitles(self) -> bool:
        """Whether it has a stream of subtitles."""
        return self.reel.config.subtitle_size > 0

    def encode_clips(self, visual: Floats, subtitles: Floats | None) -> Floats:
        """(L, 3, h) of a video's clips."""
        given = None if subtitles is None else self._tensor(subtitles)[None]
        with torch.inference_mode():
            context = self.reel.encode_context(
                self._tensor(visual)[None], self._tensor(np.ones((1, len(visual)), np.float32)), given
            )
            return _array(context.clips[0])

    def encode_query(self, tokens: Floats) -> Floats:
        """(3, h) of a query's tokens."""
        with torch.inference_mode():
            mask = self._tensor(np.ones((1, len(tokens)), np.float32))
            return _array(self.reel.encode_query(self._tensor(tokens)[None], mask)[0])

    def best_spans(self, similarity: Floats, mask: Floats) -> Decoded:
        """Logits, first and last clip of the best span of each window."""
        with torch.inference_mode():
            score, first, last = self.reel.best_spans(self._tensor(similarity), self._tensor(mask))
            return _array(score), _array(first), _array(last)

    def _tensor(self, array: Floats) -> torch.Tensor:
        return torch.from_numpy(array).to(next(self.reel.parameters()).device)


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.cpu().numpy()
    return array
