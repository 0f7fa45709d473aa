"""Trained models opened with torch, by the plug-in of their architecture (group ``moviola.models``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from moviola.devices import require_torch
from moviola.errors import InvalidValue
from moviola.plugins import plugin
from moviola.retrieval.model_parts import Runner
from moviola.retrieval.saved.description import read_description

__all__ = ["OpenModel", "open_model"]


class OpenModel(Runner, Protocol):
    """A trained model in memory, as a plug-in of ``moviola.models`` opens it: runs its parts with torch."""

    def graph(self, name: str) -> Any:
        """The graph of a part, a model of OpenVINO's. The model is on the CPU."""


def open_model(folder: Path, device: str = "cpu", *, purpose: str) -> OpenModel:
    """The model in a folder, opened by the plug-in of its architecture.

    Args:
        folder: written by ``moviola train``, or by another trainer with a plug-in of its own.
        device: of torch.
        purpose: what it is opened for, for the error where torch is missing.

    Raises:
        NotFound, DataError: the folder or a file is missing, or damaged.
        InvalidValue: nothing that is installed runs its architecture.
        MissingDependency: torch is not installed.
        BrokenPlugin: the plug-in fails.
    """
    architecture = read_description(folder).architecture
    require_torch(purpose)
    added = plugin("moviola.models", architecture)
    if added is None:
        raise InvalidValue(
            f"{folder}: nothing that is installed runs models of architecture {architecture!r}; install the "
            "package that trained it"
        )
    found: OpenModel = added.make(OpenModel, folder, device)
    return found
