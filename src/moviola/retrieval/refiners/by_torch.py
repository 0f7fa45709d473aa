"""Parts of trained refiners, and of Reel's stage 1, run by torch on any device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from moviola.models.parts import Part, parts_of

__all__ = ["TorchRunner"]


@dataclass(frozen=True)
class TorchRunner:
    """A model in evaluation mode, a :class:`moviola.retrieval.model_parts.Runner`."""

    network: Any
    is_compiled = False

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        return asdict(self.network.config)

    def number(self, name: str) -> int:
        return int(self.settings[name])

    @cached_property
    def _parts(self) -> dict[str, Part]:
        return parts_of(self.network)

    def run(self, name: str, *inputs: NDArray[np.float32] | None) -> tuple[Any, ...]:
        device = next(self.network.parameters()).device
        given = [torch.from_numpy(each).to(device) for each in inputs if each is not None]
        with torch.inference_mode():
            found = self._parts[name].module(*given)
        outputs = found if isinstance(found, tuple) else (found,)
        return tuple(each.cpu().numpy() for each in outputs)
