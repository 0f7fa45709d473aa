"""Parts of trained refiners, and of Reel's stage 1, run by torch on any device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from moviola.models.parts import Part, parts_of
from moviola.retrieval.refiners.trained import Decoded

__all__ = ["TorchReel", "TorchRoles", "TorchWindows"]

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class _TorchParts:
    """A model in evaluation mode, run part by part (:mod:`moviola.models.parts`)."""

    network: Any

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        return asdict(self.network.config)

    @cached_property
    def _parts(self) -> dict[str, Part]:
        return parts_of(self.network)

    def _run(self, name: str, *inputs: Floats | None) -> tuple[Any, ...]:
        """The outputs of a part for those of its inputs that are there."""
        device = next(self.network.parameters()).device
        given = [torch.from_numpy(each).to(device) for each in inputs if each is not None]
        with torch.inference_mode():
            found = self._parts[name].module(*given)
        outputs = found if isinstance(found, tuple) else (found,)
        return tuple(each.cpu().numpy() for each in outputs)


class TorchRoles(_TorchParts):
    """A model as :class:`moviola.retrieval.stage1.ClipAndQueryParts`."""

    def encode_clips(self, visual: Floats, subtitles: Floats | None) -> Floats:
        given = None if subtitles is None else subtitles[None]
        return cast("Floats", self._run("clips", visual[None], given)[0][0])

    def encode_query(self, tokens: Floats) -> Floats:
        seen = np.ones((1, len(tokens)), np.float32)
        return cast("Floats", self._run("query", tokens[None], seen)[0][0])


class TorchReel(TorchRoles):
    """A model as :class:`moviola.retrieval.refiners.reel.ReelParts`."""

    def best_spans(self, similarity: Floats, mask: Floats, cuts: Floats | None) -> Decoded:
        return cast("Decoded", self._run("spans", similarity, mask, cuts))


class TorchWindows(_TorchParts):
    """A model as :class:`moviola.retrieval.refiners.windowed.WindowParts`."""

    def encode(self, visual: Floats, mask: Floats, subtitles: Floats | None) -> Floats:
        return cast("Floats", self._run("windows", visual, mask, subtitles)[0])

    def best_spans(self, query: Floats, kept: Floats, mask: Floats) -> Decoded:
        seen = np.ones((1, len(query)), np.float32)
        return cast("Decoded", self._run("answers", query[None], seen, kept, mask))
