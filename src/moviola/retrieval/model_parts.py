"""Parts of trained models as refiners and Reel's stage 1 call them.

A :class:`Runner` computes them: compiled graphs, which need no torch
(:mod:`moviola.retrieval.compiled_models`), or what a plug-in opens with torch
(:func:`moviola.retrieval.opening.open_model`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from moviola.retrieval.encoded_windows import padded_rows
from moviola.threads import ONE

__all__ = ["Decoded", "ReelParts", "RoleParts", "Runner", "WindowParts"]

Floats = NDArray[np.float32]


class Decoded(NamedTuple):
    """What a model finds in N windows.

    Attributes:
        score, first, last: (N,) of the best span of each: its score, its clip of start and its clip of end.
        answerable: (N,) log odds that each holds an answer at all; None of a model that does not say.
    """

    score: Floats
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    answerable: Floats | None = None


# Windows and their clips are padded to multiples of these for graphs: the runtime plans again for every new
# shape.
_WINDOWS, _CLIPS = 32, 8
# Length of free axes in the arrays for planning.
_SOME = 3


class Runner(Protocol):
    """Runs the parts of one model."""

    is_compiled: bool
    """Whether they are graphs, which are planned for the shapes of their inputs."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Those of the model's configuration; of earlier versions perhaps without the latest ones."""

    def number(self, name: str) -> int:
        """One of the settings. Raises DataError: it is missing, or no number."""

    def run(self, name: str, *inputs: Floats | None, threads: int = ONE) -> tuple[Any, ...]:
        """The outputs of a part for those of its inputs that are there; a graph uses ``threads``."""


@dataclass(frozen=True)
class _Parts:
    runner: Runner

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.runner.settings

    def _around(self, mask: Floats) -> tuple[tuple[int, int], tuple[int, int]]:
        """Padding behind windows and behind their clips, by their mask (N, L)."""
        if not self.runner.is_compiled:
            return (0, 0), (0, 0)
        count, length = mask.shape
        # Where padding leaks into the model, it is as long as it has to be.
        clips = 0 if self.settings.get("reference_padding") else -length % _CLIPS
        return (0, -count % _WINDOWS), (0, clips)


class RoleParts(_Parts):
    """Vectors of clips and of queries; R roles, h numbers each."""

    def encode_clips(self, visual: Floats, subtitles: Floats | None) -> Floats:
        """(L, R, h), of length 1, of a video's clips (L, d) and of speech during them (L, d')."""
        streams = (None if each is None else each[None] for each in (visual, subtitles))
        return cast("Floats", self.runner.run("clips", *streams)[0][0])

    def encode_query(self, tokens: Floats) -> Floats:
        """(R, h), of length 1, of a query's tokens (n, d)."""
        # A graph takes the maximum number of them.
        length = self.runner.number("max_tokens") if self.runner.is_compiled else 0
        return cast("Floats", self.runner.run("query", *padded_rows([tokens], length))[0][0])

    def make(self) -> None:
        """Make the missing graphs, by running all parts once."""
        self._dots()

    def _dots(self) -> Floats:
        """(R, L), dot products of a query with clips."""
        draw = np.random.default_rng(0)
        seen, said = (
            draw.normal(size=(_SOME, self.runner.number(name))).astype(np.float32)
            for name in ("visual_size", "subtitle_size")
        )
        clips = self.encode_clips(seen, said if said.size else None)
        tokens = draw.normal(size=(_SOME, self.runner.number("query_size"))).astype(np.float32)
        return cast("Floats", np.einsum("rh,nrh->rn", self.encode_query(tokens), clips))


class ReelParts(RoleParts):
    """The parts of a Reel."""

    def best_spans(self, similarity: Floats, mask: Floats, cuts: Floats | None) -> Decoded:
        """Logits, first and last clip (N,) of the best span of each window.

        Args:
            similarity: (N, R, L), dot products of clips with a query.
            mask: (N, L), 1 for a clip.
            cuts: (N, L), 1 for a clip that begins at a cut; None where the model reads none.
        """
        around = self._around(mask)
        found = self.runner.run(
            "spans", np.pad(similarity, (around[0], (0, 0), around[1])), np.pad(mask, around),
            None if cuts is None else np.pad(cuts, around),
        )  # fmt: skip
        return Decoded(*(column[: len(mask)] for column in found))

    def make(self) -> None:
        cuts = np.zeros((1, _SOME), np.float32) if self.settings.get("cuts") else None
        self.best_spans(self._dots()[None], np.ones((1, _SOME), np.float32), cuts)


class WindowParts(_Parts):
    """The parts of SPR_CLIP or of SPR_ReLo."""

    def encode(self, visual: Floats, mask: Floats, subtitles: Floats | None) -> Floats:
        """Encodings of N windows, (N, L, ...)."""
        return cast("Floats", self.runner.run("windows", visual, mask, subtitles)[0])

    def best_spans(self, query: Floats, kept: Floats, mask: Floats) -> Decoded:
        """Scores above 0, first and last clip (N,) of the best span of each window for a query (n, d)."""
        around = self._around(mask)
        wider = np.pad(kept, (*around, *((0, 0),) * (kept.ndim - 2)))
        found = self.runner.run("answers", *padded_rows([query]), wider, np.pad(mask, around))
        return Decoded(*(column[: len(mask)] for column in found))

    def make(self) -> None:
        """Make the missing graphs, by running both parts once."""
        draw, config = np.random.default_rng(0), self.settings
        reads_tokens = "query_size" in config
        size = self.runner.number("visual_size" if reads_tokens else "hidden_size")
        heard = self.runner.number("subtitle_size") if reads_tokens else 0
        visual, subtitles = (draw.normal(size=(1, _SOME, each)).astype(np.float32) for each in (size, heard))
        mask = np.ones((1, _SOME), np.float32)
        kept = self.encode(visual, mask, subtitles if heard else None)
        query = draw.normal(size=(1, config.get("query_size", size))).astype(np.float32)
        self.best_spans(query, kept, mask)
