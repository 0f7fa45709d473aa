"""Trained models as torch runs them, in parts, on any device: what the hook ``moviola.models`` opens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from moviola.study.models.graphs import convert_part
from moviola.study.models.parts import Part, parts_of
from moviola.study.models.pretrained import from_pretrained
from moviola.threads import ONE

__all__ = ["TorchRunner", "open_model"]


@dataclass(frozen=True)
class TorchRunner:
    """A model in evaluation mode, a :class:`moviola.retrieval.opening.OpenModel`."""

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

    def graph(self, name: str) -> Any:
        """The graph of a part, a model of OpenVINO's."""
        return convert_part(self.network, name)

    def run(self, name: str, *inputs: NDArray[np.float32] | None, threads: int = ONE) -> tuple[Any, ...]:
        """The outputs of a part; torch has its own number of threads."""
        device = next(self.network.parameters()).device
        given = [torch.from_numpy(each).to(device) for each in inputs if each is not None]
        with torch.inference_mode():
            found = self._parts[name].module(*given)
        outputs = found if isinstance(found, tuple) else (found,)
        return tuple(each.cpu().numpy() for each in outputs)


def open_model(folder: Path, device: str) -> TorchRunner:
    """The model in a folder, in evaluation mode; errors of :func:`from_pretrained`."""
    return TorchRunner(from_pretrained(folder, device))
