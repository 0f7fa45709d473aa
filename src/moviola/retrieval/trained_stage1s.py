"""Trained stages 1 by the architecture of their model: opened, run by torch or from graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from moviola.devices import require_torch
from moviola.errors import InvalidValue
from moviola.models.description import read_description
from moviola.retrieval.compiled_models import CompiledRoles, CompiledStage1, Graphs
from moviola.retrieval.stage1 import PooledStage1, TrainedStage1, TrainedVectors

__all__ = ["STAGE1S", "load_compiled_stage1", "load_stage1", "stage1_of"]


def _reel_stage1(model: Any, revision: str) -> PooledStage1:
    from moviola.retrieval.refiners.by_torch import TorchRoles

    return PooledStage1(TorchRoles(model), revision)


def _compiled_reel_stage1(folder: Path, revision: str, graphs: Graphs) -> PooledStage1:
    return PooledStage1(CompiledRoles(folder, revision, graphs), revision)


ByTorch = Callable[[Any, str], TrainedVectors]
Compiled = Callable[[Path, str, Graphs], TrainedVectors]

STAGE1S: dict[str, tuple[ByTorch, Compiled]] = {
    "spr-stage1": (TrainedStage1, CompiledStage1),
    "reel-stage1": (_reel_stage1, _compiled_reel_stage1),
}
"""What runs a trained stage 1: by torch, of a model and its revision; and from compiled graphs."""


def stage1_of(architecture: str, model: Any, revision: str) -> TrainedVectors:
    """The stage 1 that runs a model by torch.

    Args:
        architecture: a key of :data:`STAGE1S`.
        model: of that architecture, in evaluation mode.
    """
    by_torch, _ = STAGE1S[architecture]
    return by_torch(model, revision)


def load_stage1(folder: Path, revision: str, device: str = "cpu") -> TrainedVectors:
    """The stage 1 in a model's folder.

    Raises:
        InvalidValue: it holds a model of another kind; else as of
            :func:`moviola.models.pretrained.from_pretrained`.
        MissingDependency: torch, which runs it, is not installed.
    """
    architecture = _architecture(folder)
    require_torch(f"{folder} on {device}")
    from moviola.models.pretrained import from_pretrained

    return stage1_of(architecture, from_pretrained(folder, device), revision)


def load_compiled_stage1(folder: Path, revision: str, graphs: Graphs) -> TrainedVectors:
    """The same from compiled graphs, made where they are missing; errors as of :func:`load_stage1`."""
    _, compiled = STAGE1S[_architecture(folder)]
    return compiled(folder, revision, graphs)


def _architecture(folder: Path) -> str:
    architecture = read_description(folder).architecture
    if architecture not in STAGE1S:
        raise InvalidValue(
            f"{folder}: architecture {architecture!r} is no stage 1; give {' or '.join(STAGE1S)}"
        )
    return architecture
