"""Trained models that are searched with on the CPU: their parts as compiled graphs, without torch.

Each part is one graph (:mod:`moviola.compiled`), made by torch from the model's folder when it is first used
and kept; in 32 bits, since these nets are small. :meth:`CompiledStage1.make` and its like make all of them.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import Compiled, Source
from moviola.errors import DataError
from moviola.features import QueryFeatures
from moviola.models.description import read_description
from moviola.retrieval.refiners.reel import ReelRefiner
from moviola.retrieval.refiners.trained import Decoded
from moviola.retrieval.segments import normalised, whole_segments
from moviola.retrieval.stage1 import TrainedVectors
from moviola.threads import ONE, compute_threads

if TYPE_CHECKING:
    from torch import nn

    from moviola.models.reel import Reel
    from moviola.models.spr import SegmentRetriever

__all__ = ["CompiledModel", "CompiledReel", "CompiledStage1", "Graphs", "compiled_reel"]

Floats = NDArray[np.float32]
Shape = tuple[int | None, ...]

# Segments that pass through a stage 1 together; so few are computed by one thread, as those of one query.
_BATCH, _FEW = 1024, 64
# Windows and their clips are padded to multiples of these: the runtime plans for every shape anew.
_WINDOWS, _CLIPS = 32, 8
# Of free axes, in the arrays that graphs are traced with.
_SOME = 3


@dataclass(frozen=True)
class Graphs:
    """Where graphs are kept.

    Attributes:
        folder: where they are looked for.
        spare: where those are looked for, and made, that are not there; None: there.
    """

    folder: Path
    spare: Path | None = None

    def compiled(self, source: Source) -> Compiled:
        """A graph from wherever it is, or is to be made."""
        found = Compiled(self.folder, source)
        return found if self.spare is None or found.path.is_dir() else Compiled(self.spare, source)

    def keep_only(self, revisions: Collection[str]) -> None:
        """Delete the graphs of models of other revisions."""
        for path in self.folder.glob("*"):
            if path.name.partition("-")[0] not in revisions:
                shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class CompiledModel(ABC):
    """A model's folder, and the graphs of its parts.

    Attributes:
        folder: what :func:`moviola.models.pretrained.save_pretrained` wrote.
        revision: changes with the model's weights and settings.
        graphs: where they are.
    """

    folder: Path
    revision: str
    graphs: Graphs

    @abstractmethod
    def make(self) -> None:
        """Make the graphs that are not there."""

    @cached_property
    def _config(self) -> dict[str, Any]:
        return read_description(self.folder).config

    def _setting(self, name: str, kind: Callable[[Any], Any]) -> Any:
        try:
            return kind(self._config[name])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{self.folder / 'config.json'}: {name} is missing or no number; save the model again"
            ) from error

    def _part(
        self, name: str, build: Callable[[Any], nn.Module], shapes: Sequence[Shape], threads: int = ONE
    ) -> Compiled:
        """A part of the model: ``build`` makes it of the model in torch; inputs are float32."""

        def built() -> nn.Module:
            from moviola.models.pretrained import from_pretrained

            return build(from_pretrained(self.folder))

        draw = np.random.default_rng(0)
        examples = [
            draw.random([_SOME if side is None else side for side in shape], np.float32) for shape in shapes
        ]
        return self.graphs.compiled(
            Source(f"{self.revision} {name}", self.revision, built, examples, shapes, threads)
        )


@dataclass(frozen=True)
class CompiledStage1(TrainedVectors, CompiledModel):
    """A trained segment retriever (SPR, section 3.1.2), a :class:`moviola.retrieval.stage1.Stage1`."""

    def segments(self, clips: Floats, segment_clips: int) -> Floats:
        """(ceil(n / T), d) float32, L2-normalised, of the n >= 1 clips (n, d) of a video."""
        whole = whole_segments(clips, segment_clips)
        part = self._few_segments if len(whole) <= _FEW else self._many_segments
        found = [part(whole[begin : begin + _BATCH])[0] for begin in range(0, len(whole), _BATCH)]
        return normalised(np.concatenate(found))

    def queries(self, queries: QueryFeatures) -> Floats:
        """(Q, d) float32, L2-normalised."""
        return normalised(self._queries(queries.vectors)[0])

    def make(self) -> None:
        """Make the graphs that are not there."""
        size = self._size
        self.segments(np.eye(_SOME, size, dtype=np.float32), 1)
        self._queries(np.eye(_SOME, size, dtype=np.float32))

    @property
    def _size(self) -> int:
        return cast("int", self._setting("hidden_size", int))

    @cached_property
    def _queries(self) -> Compiled:
        def build(model: SegmentRetriever) -> nn.Module:
            return model.qfeat_proj

        return self._part("queries", build, [(None, self._size)])

    @cached_property
    def _few_segments(self) -> Compiled:
        return self._segments(ONE)

    @cached_property
    def _many_segments(self) -> Compiled:
        return self._segments(compute_threads())

    def _segments(self, threads: int) -> Compiled:
        def build(model: SegmentRetriever) -> nn.Module:
            from moviola.models.parts import Segments

            return Segments(model)

        return self._part("segments", build, [(None, None, self._size)], threads)


def compiled_reel(folder: Path, revision: str, graphs: Graphs, **options: Any) -> ReelRefiner:
    """A refiner that asks the graphs of a model; for the rest see :class:`ReelRefiner`."""
    return ReelRefiner(CompiledReel(folder, revision, graphs), revision, **options)


@dataclass(frozen=True)
class CompiledReel(CompiledModel):
    """Reel's parts, :class:`moviola.retrieval.refiners.reel.ReelParts`."""

    @property
    def max_tokens(self) -> int:
        """Most tokens of a query."""
        return cast("int", self._setting("max_tokens", int))

    @property
    def reads_subtitles(self) -> bool:
        """Whether it has a stream of subtitles."""
        return bool(self._setting("subtitle_size", int))

    def encode_clips(self, visual: Floats, subtitles: Floats | None) -> Floats:
        """(L, 3, h) of a video's clips."""
        streams = [visual[None]] if subtitles is None else [visual[None], subtitles[None]]
        found: Floats = self._clips(*streams)[0][0]
        return found

    def encode_query(self, tokens: Floats) -> Floats:
        """(3, h) of a query's tokens, which are padded to as many as Reel takes."""
        padded = np.zeros((1, self.max_tokens, tokens.shape[1]), np.float32)
        padded[0, : len(tokens)] = tokens
        mask = np.arange(self.max_tokens)[None] < len(tokens)
        found: Floats = self._query(padded, mask.astype(np.float32))[0][0]
        return found

    def best_spans(self, similarity: Floats, mask: Floats) -> Decoded:
        """Logits, first and last clip of the best span of each window."""
        count, length = mask.shape
        windows, clips = -count % _WINDOWS, -length % _CLIPS
        wider = np.pad(similarity, ((0, windows), (0, 0), (0, clips)))
        score, first, last = self._spans(wider, np.pad(mask, ((0, windows), (0, clips))))
        return score[:count], first[:count], last[:count]

    def make(self) -> None:
        """Make the graphs that are not there."""
        draw, sizes = np.random.default_rng(0), self._sizes
        streams = [draw.normal(size=(_SOME, size)).astype(np.float32) for size in sizes]
        clips = self.encode_clips(streams[0], streams[1] if self.reads_subtitles else None)
        tokens = draw.normal(size=(_SOME, self._setting("query_size", int))).astype(np.float32)
        dots = np.einsum("rh,nrh->rn", self.encode_query(tokens), clips)[None]
        self.best_spans(dots, np.ones((1, _SOME), np.float32))

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Numbers in a row of each stream."""
        names = ("visual_size", "subtitle_size") if self.reads_subtitles else ("visual_size",)
        return tuple(self._setting(name, int) for name in names)

    @cached_property
    def _clips(self) -> Compiled:
        def build(model: Reel) -> nn.Module:
            from moviola.models.parts import Clips

            return Clips(model)

        return self._part("clips", build, [(1, None, size) for size in self._sizes])

    @cached_property
    def _query(self) -> Compiled:
        def build(model: Reel) -> nn.Module:
            from moviola.models.parts import Query

            return Query(model)

        size = self._setting("query_size", int)
        return self._part("query", build, [(1, self.max_tokens, size), (1, self.max_tokens)])

    @cached_property
    def _spans(self) -> Compiled:
        def build(model: Reel) -> nn.Module:
            from moviola.models.parts import BestSpans

            return BestSpans(model)

        return self._part("spans", build, [(None, 3, None), (None, None)])
