"""Trained stages 1 by the architecture of their model: opened, run by torch or from graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moviola.devices import require_torch
from moviola.errors import InvalidValue
from moviola.models.description import read_description
from moviola.retrieval.compiled_models import CompiledRunner, CompiledStage1, Graphs
from moviola.retrieval.model_parts import RoleParts
from moviola.retrieval.stage1 import PooledStage1, TrainedStage1, TrainedVectors

__all__ = ["STAGE1S", "load_compiled_stage1", "load_stage1", "stage1_of"]


STAGE1S = ("spr-stage1", "reel-stage1")
"""Architectures of trained stages 1."""


def stage1_of(architecture: str, model: Any, revision: str) -> TrainedVectors:
    """The stage 1 that runs a model by torch.

    Args:
        architecture: one of :data:`STAGE1S`.
        model: of that architecture, in evaluation mode.
    """
    if architecture == "spr-stage1":
        return TrainedStage1(model, revision)
    from moviola.retrieval.refiners.by_torch import TorchRunner

    return PooledStage1(RoleParts(TorchRunner(model)), revision)


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
    runner = CompiledRunner(folder, revision, graphs)
    if _architecture(folder) == "spr-stage1":
        return CompiledStage1(runner, revision)
    return PooledStage1(RoleParts(runner), revision)


def _architecture(folder: Path) -> str:
    architecture = read_description(folder).architecture
    if architecture not in STAGE1S:
        raise InvalidValue(
            f"{folder}: architecture {architecture!r} is no stage 1; give {' or '.join(STAGE1S)}"
        )
    return architecture
