"""Trained models on the CPU: their parts as compiled graphs, without torch.

Each part is one graph of the model's folder (:mod:`moviola.models.graphs`), planned for this CPU on first use
and kept (:mod:`moviola.compiled`); in 32 bits, since these nets are small. Methods ``make`` plan all of them.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import Compiled, Source
from moviola.devices import require_torch
from moviola.errors import DataError
from moviola.features import QueryFeatures
from moviola.models.description import read_description
from moviola.models.graphs import convert_part, has_graphs, read_graph
from moviola.retrieval.encoded_windows import padded_rows
from moviola.retrieval.refiners.trained import Decoded
from moviola.retrieval.segments import normalised, whole_segments
from moviola.retrieval.stage1 import TrainedVectors
from moviola.threads import ONE, compute_threads

__all__ = [
    "CompiledModel", "CompiledReel", "CompiledRoles", "CompiledStage1", "CompiledWindows", "Graphs",
]  # fmt: skip

Floats = NDArray[np.float32]

# Segments per batch of a stage 1; small enough for one thread, like those of one query.
_BATCH, _FEW = 1024, 64
# Windows and their clips are padded to multiples of these: the runtime plans again for every new shape.
_WINDOWS, _CLIPS = 32, 8
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
class CompiledModel(ABC):
    """A model's folder, with the graphs of its parts; its revision changes with weights and settings."""

    folder: Path
    revision: str
    graphs: Graphs

    @abstractmethod
    def make(self) -> None:
        """Make the missing graphs, by running all parts once."""

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        return read_description(self.folder).config

    def _number(self, name: str) -> int:
        try:
            return int(self.settings[name])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{self.folder / 'config.json'}: {name} is missing or no number; save the model again"
            ) from error

    @cached_property
    def _planned(self) -> dict[tuple[str, int], Compiled]:
        return {}

    def _part(self, name: str, threads: int = ONE) -> Compiled:
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
class CompiledStage1(TrainedVectors, CompiledModel):
    """A trained segment retriever (SPR, section 3.1.2), a :class:`moviola.retrieval.stage1.Stage1`."""

    @property
    def dim(self) -> int:
        return self._number("hidden_size")

    def segments(self, clips: Floats, segment_clips: int) -> Floats:
        whole = whole_segments(clips, segment_clips)
        part = self._part("segments", ONE if len(whole) <= _FEW else compute_threads())
        parts = [part(whole[begin : begin + _BATCH])[0] for begin in range(0, len(whole), _BATCH)]
        return normalised(np.concatenate(parts))

    def queries(self, queries: QueryFeatures) -> Floats:
        return normalised(self._part("queries")(queries.vectors)[0])

    def make(self) -> None:
        size = self._number("hidden_size")
        self.segments(np.eye(_SOME, size, dtype=np.float32), 1)
        self._part("queries")(np.eye(_SOME, size, dtype=np.float32))


@dataclass(frozen=True)
class CompiledRoles(CompiledModel):
    """Vectors of clips and queries, :class:`moviola.retrieval.stage1.ClipAndQueryParts`."""

    def encode_clips(self, visual: Floats, subtitles: Floats | None) -> Floats:
        streams = [each[None] for each in (visual, subtitles) if each is not None]
        return cast("Floats", self._part("clips")(*streams)[0][0])

    def encode_query(self, tokens: Floats) -> Floats:
        inputs = padded_rows([tokens], self._number("max_tokens"))  # the graph takes that many
        return cast("Floats", self._part("query")(*inputs)[0][0])

    def make(self) -> None:
        self._dots()

    def _dots(self) -> Floats:
        """(R, L), dot products of a query with clips."""
        draw = np.random.default_rng(0)
        seen, said = (
            draw.normal(size=(_SOME, self._number(name))).astype(np.float32)
            for name in ("visual_size", "subtitle_size")
        )
        clips = self.encode_clips(seen, said if said.size else None)
        tokens = draw.normal(size=(_SOME, self._number("query_size"))).astype(np.float32)
        return cast("Floats", np.einsum("rh,nrh->rn", self.encode_query(tokens), clips))


@dataclass(frozen=True)
class CompiledReel(CompiledRoles):
    """Reel's parts, :class:`moviola.retrieval.refiners.reel.ReelParts`."""

    def best_spans(self, similarity: Floats, mask: Floats, cuts: Floats | None) -> Decoded:
        count, length = mask.shape
        around = ((0, -count % _WINDOWS), (0, -length % _CLIPS))
        inputs = [np.pad(similarity, (around[0], (0, 0), around[1])), np.pad(mask, around)]
        if cuts is not None:
            inputs.append(np.pad(cuts, around))
        score, first, last = self._part("spans")(*inputs)
        return score[:count], first[:count], last[:count]

    def make(self) -> None:
        cuts = np.zeros((1, _SOME), np.float32) if self.settings.get("cuts") else None
        self.best_spans(self._dots()[None], np.ones((1, _SOME), np.float32), cuts)


@dataclass(frozen=True)
class CompiledWindows(CompiledModel):
    """The parts of one of SPR's refiners, :class:`moviola.retrieval.refiners.windowed.WindowParts`."""

    def encode(self, visual: Floats, mask: Floats, subtitles: Floats | None) -> Floats:
        streams = (visual, mask) if subtitles is None else (visual, mask, subtitles)
        return cast("Floats", self._part("windows")(*streams)[0])

    def best_spans(self, query: Floats, kept: Floats, mask: Floats) -> Decoded:
        count, length = mask.shape
        # Where padding leaks into the model, it is as long as it has to be.
        clips = 0 if self.settings.get("reference_padding") else -length % _CLIPS
        around = ((0, -count % _WINDOWS), (0, clips))
        wider = np.pad(kept, (*around, *((0, 0),) * (kept.ndim - 2)))
        score, first, last = self._part("answers")(
            query[None], np.ones((1, len(query)), np.float32), wider, np.pad(mask, around)
        )
        return score[:count], first[:count], last[:count]

    def make(self) -> None:
        draw, config = np.random.default_rng(0), self.settings
        reads_tokens = "query_size" in config
        size = self._number("visual_size" if reads_tokens else "hidden_size")
        heard = self._number("subtitle_size") if reads_tokens else 0
        visual, subtitles = (draw.normal(size=(1, _SOME, each)).astype(np.float32) for each in (size, heard))
        mask = np.ones((1, _SOME), np.float32)
        kept = self.encode(visual, mask, subtitles if heard else None)
        query = draw.normal(size=(1, config.get("query_size", size))).astype(np.float32)
        self.best_spans(query, kept, mask)
