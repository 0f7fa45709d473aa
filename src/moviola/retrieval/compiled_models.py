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
from moviola.retrieval.refiners.reel import ReelRefiner
from moviola.retrieval.refiners.trained import Decoded
from moviola.retrieval.refiners.windowed import WindowRefiner
from moviola.retrieval.segments import normalised, whole_segments
from moviola.retrieval.stage1 import PooledStage1, TrainedVectors
from moviola.threads import ONE, compute_threads

__all__ = [
    "CompiledModel", "CompiledReel", "CompiledRoles", "CompiledStage1", "CompiledWindows", "Graphs",
    "compiled_reel", "compiled_reel_stage1", "compiled_windows",
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
    """A model's folder, with the graphs of its parts.

    Attributes:
        folder: written by :func:`moviola.models.pretrained.save_pretrained`.
        revision: changes with the model's weights and settings.
        graphs: folders of the graphs.
    """

    folder: Path
    revision: str
    graphs: Graphs

    @abstractmethod
    def make(self) -> None:
        """Make the missing graphs."""

    @cached_property
    def _config(self) -> dict[str, Any]:
        return read_description(self.folder).config

    def _number(self, name: str) -> int:
        try:
            return int(self._config[name])
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
        """Numbers in a vector, as many as in a clip."""
        return self._number("hidden_size")

    def segments(self, clips: Floats, segment_clips: int) -> Floats:
        """(ceil(n / T), d) float32, L2-normalised, of the n >= 1 clips (n, d) of a video."""
        whole = whole_segments(clips, segment_clips)
        part = self._part("segments", ONE if len(whole) <= _FEW else compute_threads())
        parts = [part(whole[begin : begin + _BATCH])[0] for begin in range(0, len(whole), _BATCH)]
        return normalised(np.concatenate(parts))

    def queries(self, queries: QueryFeatures) -> Floats:
        """(Q, d) float32, L2-normalised."""
        return normalised(self._part("queries")(queries.vectors)[0])

    def make(self) -> None:
        """Make the missing graphs."""
        size = self._number("hidden_size")
        self.segments(np.eye(_SOME, size, dtype=np.float32), 1)
        self._part("queries")(np.eye(_SOME, size, dtype=np.float32))


def compiled_reel(folder: Path, revision: str, graphs: Graphs, **options: Any) -> ReelRefiner:
    """A refiner that runs a model's graphs; for the rest see :class:`ReelRefiner`."""
    return ReelRefiner(CompiledReel(folder, revision, graphs), revision, **options)


def compiled_reel_stage1(folder: Path, revision: str, graphs: Graphs) -> PooledStage1:
    """A stage 1 that runs the graphs of Reel's."""
    return PooledStage1(CompiledRoles(folder, revision, graphs), revision)


@dataclass(frozen=True)
class CompiledRoles(CompiledModel):
    """Vectors of clips and queries, :class:`moviola.retrieval.stage1.ClipAndQueryParts`."""

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of a query."""
        return self._number("max_tokens")

    @property
    def hidden_size(self) -> int:
        """Numbers in a vector."""
        return self._number("hidden_size")

    @property
    def reads_subtitles(self) -> bool:
        """Whether it has a stream of subtitles."""
        return bool(self._number("subtitle_size"))

    def encode_clips(self, visual: Floats, subtitles: Floats | None) -> Floats:
        """(L, R, h) of a video's clips."""
        streams = [visual[None]] if subtitles is None else [visual[None], subtitles[None]]
        encoded: Floats = self._part("clips")(*streams)[0][0]
        return encoded

    def encode_query(self, tokens: Floats) -> Floats:
        """(R, h) of a query's tokens, which are padded to as many as the model takes."""
        padded = np.zeros((1, self.max_tokens, tokens.shape[1]), np.float32)
        padded[0, : len(tokens)] = tokens
        mask = np.arange(self.max_tokens)[None] < len(tokens)
        encoded: Floats = self._part("query")(padded, mask.astype(np.float32))[0][0]
        return encoded

    def make(self) -> None:
        """Make the missing graphs."""
        self._dots()

    def _dots(self) -> Floats:
        """(R, L), dot products of some clips with some query."""
        draw = np.random.default_rng(0)
        names = ("visual_size", "subtitle_size") if self.reads_subtitles else ("visual_size",)
        sizes = [self._number(name) for name in names]
        streams = [draw.normal(size=(_SOME, size)).astype(np.float32) for size in sizes]
        clips = self.encode_clips(streams[0], streams[1] if self.reads_subtitles else None)
        tokens = draw.normal(size=(_SOME, self._number("query_size"))).astype(np.float32)
        return cast("Floats", np.einsum("rh,nrh->rn", self.encode_query(tokens), clips))


@dataclass(frozen=True)
class CompiledReel(CompiledRoles):
    """Reel's parts, :class:`moviola.retrieval.refiners.reel.ReelParts`."""

    @property
    def reads_cuts(self) -> bool:
        """Whether scores depend on where videos are cut; models of earlier versions say nothing of it."""
        return bool(self._config.get("cuts", False))

    def best_spans(self, similarity: Floats, mask: Floats, cuts: Floats | None) -> Decoded:
        """Logits, first and last clip of the best span of each window."""
        count, length = mask.shape
        around = ((0, -count % _WINDOWS), (0, -length % _CLIPS))
        inputs = [np.pad(similarity, (around[0], (0, 0), around[1])), np.pad(mask, around)]
        if cuts is not None:
            inputs.append(np.pad(cuts, around))
        score, first, last = self._part("spans")(*inputs)
        return score[:count], first[:count], last[:count]

    def make(self) -> None:
        """Make the missing graphs."""
        cuts = np.zeros((1, _SOME), np.float32) if self.reads_cuts else None
        self.best_spans(self._dots()[None], np.ones((1, _SOME), np.float32), cuts)


def compiled_windows(folder: Path, revision: str, graphs: Graphs, **options: Any) -> WindowRefiner:
    """One of SPR's refiners that runs a model's graphs; for the rest see :class:`WindowRefiner`."""
    return WindowRefiner(CompiledWindows(folder, revision, graphs), revision, **options)


@dataclass(frozen=True)
class CompiledWindows(CompiledModel):
    """The parts of one of SPR's refiners, :class:`moviola.retrieval.refiners.windowed.WindowParts`."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The model's."""
        return self._config

    def encode(self, visual: Floats, mask: Floats, subtitles: Floats | None) -> Floats:
        """Encodings of N windows, (N, L, ...)."""
        streams = (visual, mask) if subtitles is None else (visual, mask, subtitles)
        return cast("Floats", self._part("windows")(*streams)[0])

    def best_spans(self, query: Floats, kept: Floats, mask: Floats) -> Decoded:
        """Scores, first and last clip of the best span of each window for a query (n, d)."""
        count, length = mask.shape
        # Where padding leaks into the model, it is as long as it has to be.
        clips = 0 if self._config.get("reference_padding") else -length % _CLIPS
        around = ((0, -count % _WINDOWS), (0, clips))
        wider = np.pad(kept, (*around, *((0, 0),) * (kept.ndim - 2)))
        score, first, last = self._part("answers")(
            query[None], np.ones((1, len(query)), np.float32), wider, np.pad(mask, around)
        )
        return score[:count], first[:count], last[:count]

    def make(self) -> None:
        """Make the missing graphs."""
        draw, config = np.random.default_rng(0), self._config
        reads_tokens = "query_size" in config
        size = self._number("visual_size" if reads_tokens else "hidden_size")
        heard = self._number("subtitle_size") if reads_tokens else 0
        visual, subtitles = (draw.normal(size=(1, _SOME, each)).astype(np.float32) for each in (size, heard))
        mask = np.ones((1, _SOME), np.float32)
        kept = self.encode(visual, mask, subtitles if heard else None)
        query = draw.normal(size=(1, config.get("query_size", size))).astype(np.float32)
        self.best_spans(query, kept, mask)
