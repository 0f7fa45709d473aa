"""Trained models on the CPU: their parts as compiled graphs, without torch.

Each part is one graph of the model's folder (:mod:`moviola.retrieval.saved.graphs`), planned for this CPU on
first use and kept (:mod:`moviola.compiled`); in 32 bits, since these nets are small.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import Compiled, Source
from moviola.errors import DataError
from moviola.retrieval.opening import open_model
from moviola.retrieval.saved.description import read_description
from moviola.retrieval.saved.graphs import WITHOUT_GRAPHS, has_graphs, read_graph
from moviola.threads import ONE

__all__ = ["CompiledRunner", "Graphs"]

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Graphs:
    """Folders of compiled graphs.

    Attributes:
        folder: the first place to look.
        spare: second place for missing or damaged graphs, where they are also made; None: the first.
    """

    folder: Path
    spare: Path | None = None

    def compiled(self, source: Source) -> Compiled:
        """A graph from either folder, made if missing."""
        graphs = Compiled(self.folder, source)
        return graphs if self.spare is None or graphs.kept else Compiled(self.spare, source)

    def keep_only(self, revisions: Collection[str]) -> None:
        """Delete the graphs of models of other revisions."""
        for path in self.folder.glob("*"):
            if path.name.partition("-")[0] not in revisions:
                shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class CompiledRunner:
    """A model's folder, with the graphs of its parts, a :class:`moviola.retrieval.model_parts.Runner`; its
    revision changes with weights and settings.
    """

    folder: Path
    revision: str
    graphs: Graphs
    is_compiled = True

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        return read_description(self.folder).config

    def number(self, name: str) -> int:
        try:
            return int(self.settings[name])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{self.folder / 'config.json'}: {name} is missing or no number; save the model again"
            ) from error

    def run(self, name: str, *inputs: Floats | None, threads: int = ONE) -> tuple[Any, ...]:
        return self.part(name, threads)(*(each for each in inputs if each is not None))

    @cached_property
    def _planned(self) -> dict[tuple[str, int], Compiled]:
        return {}

    def part(self, name: str, threads: int = ONE) -> Compiled:
        """A part of the model by its name."""

        def build() -> Any:
            if has_graphs(self.folder):
                return read_graph(self.folder, name)
            return open_model(self.folder, purpose=f"{self.folder}: {WITHOUT_GRAPHS}").graph(name)

        if (name, threads) not in self._planned:
            source = Source(f"{self.revision} {name}", self.revision, build, threads)
            self._planned[name, threads] = self.graphs.compiled(source)
        return self._planned[name, threads]
