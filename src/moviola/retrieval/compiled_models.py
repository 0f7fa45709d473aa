"""Trained models on the CPU: their parts as compiled graphs, without torch.

Each part is one graph of the model's folder (:mod:`moviola.models.graphs`), planned for this CPU on first use
and kept (:mod:`moviola.compiled`); in 32 bits, since these nets are small.
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
from moviola.devices import require_torch
from moviola.errors import DataError
from moviola.features import QueryFeatures
from moviola.models.description import read_description
from moviola.models.graphs import convert_part, has_graphs, read_graph
from moviola.retrieval.segments import normalised, whole_segments
from moviola.retrieval.stage1 import TrainedVectors
from moviola.threads import ONE, compute_threads

__all__ = ["CompiledRunner", "CompiledStage1", "Graphs"]

Floats = NDArray[np.float32]

# Segments per batch of a stage 1; small enough for one thread, like those of one query.
_BATCH, _FEW = 1024, 64
# Length of free axes in the arrays for planning.
_SOME = 3


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

    def run(self, name: str, *inputs: Floats | None) -> tuple[Any, ...]:
        return self.part(name)(*(each for each in inputs if each is not None))

    @cached_property
    def _planned(self) -> dict[tuple[str, int], Compiled]:
        return {}

    def part(self, name: str, threads: int = ONE) -> Compiled:
        """A part of the model; see :func:`moviola.models.parts.parts_of`."""

        def build() -> Any:
            if has_graphs(self.folder):
                return read_graph(self.folder, name)
            require_torch(f"{self.folder}: has no graphs of these weights; making them")
            from moviola.models.pretrained import from_pretrained

            return convert_part(from_pretrained(self.folder), name)

        if (name, threads) not in self._planned:
            source = Source(f"{self.revision} {name}", self.revision, build, threads)
            self._planned[name, threads] = self.graphs.compiled(source)
        return self._planned[name, threads]


@dataclass(frozen=True)
class CompiledStage1(TrainedVectors):
    """A trained segment retriever (SPR, section 3.1.2), a :class:`moviola.retrieval.stage1.Stage1`."""

    model: CompiledRunner
    revision: str

    @property
    def dim(self) -> int:
        return self.model.number("hidden_size")

    def segments(self, clips: Floats, segment_clips: int) -> Floats:
        whole = whole_segments(clips, segment_clips)
        part = self.model.part("segments", ONE if len(whole) <= _FEW else compute_threads())
        parts = [part(whole[begin : begin + _BATCH])[0] for begin in range(0, len(whole), _BATCH)]
        return normalised(np.concatenate(parts))

    def queries(self, queries: QueryFeatures) -> Floats:
        return normalised(self.model.run("queries", queries.vectors)[0])

    def make(self) -> None:
        """Make the missing graphs, by running both parts once."""
        rows = np.eye(_SOME, self.dim, dtype=np.float32)
        self.segments(rows, 1)
        self.model.run("queries", rows)
