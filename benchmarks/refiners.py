"""What refining one query costs: Reel beside SPR's refiners of equal hidden size, on the same proposals.

    python benchmarks/refiners.py [--features DIR] [--videos 300] [--queries 30] [--proposals 125]

All are run as search runs them (:mod:`moviola.refine`), one thread, in turn for each query. Reel has read
every video once, before any query, and keeps what it made in half precision. SPR's refiners encode every
window for every query, as published ("plain"); beside that stands what would be left of it if every window
had been encoded and kept beforehand ("kept"), which search does not do: a window is not known before a query
proposes it, and windows overlap. Both must give the same spans, and so must Reel with and without what it
keeps. Times are the processor's, which is what a quiet machine would take, whoever else computes.

Weights are random, since cost does not depend on them. Features are random too, unless a folder of
`moviola features from-library` is given. A proposal is one to three segments of 4 s, with 8 s on both sides.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import Generator
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from moviola.benchmark.plan import SIZES
from moviola.models.pretrained import build
from moviola.models.reloclnet import Context
from moviola.models.spans import ClipWindows
from moviola.models.spr import SprClipContext
from moviola.refine import (
    EncodedQuery,
    Footage,
    ReelRefiner,
    Refined,
    Refiner,
    ReLoRefiner,
    SprClipRefiner,
    Window,
)
from moviola.training.data import FeatureFolder
from moviola.training.recipes import Sizes, read_settings
from moviola.training.registry import recipe
from moviola.types import Proposal

DIM, CLIPS = 128, 84
SEGMENT, MOST = 4.0, 3
LABELS = {"reel": "Reel", "spr-clip": "SPR_CLIP", "spr-relo": "SPR_ReLo-S"}
TIE = 1e-4
"""Spans may differ where their scores differ by no more than this: the best of equals is rounding."""


@dataclass(frozen=True)
class Corpus:
    """Videos by name, and queries with the windows that are to be refined for each."""

    videos: dict[str, Footage]
    asked: list[tuple[EncodedQuery, list[Window]]]

    @property
    def hours(self) -> float:
        """Of video."""
        return sum(video.duration for video in self.videos.values()) / 3600


@dataclass
class System:
    """A refiner that is timed.

    Attributes:
        label: of the table.
        refiner: what runs.
        stored: bytes that it keeps besides the features.
        encoding: seconds of :meth:`encode_context` so far.
        seconds: of each query.
    """

    label: str
    refiner: Refiner
    stored: int
    encoding: float = 0.0
    seconds: list[float] = field(default_factory=list)

    def ask(self, query: EncodedQuery, windows: Sequence[Window]) -> list[Refined]:
        """Refine a query's windows and note the time."""
        model: Any = self.refiner.model  # type: ignore[attr-defined]
        encode = model.encode_context
        model.encode_context = self._timed(encode)
        try:
            started = time.process_time()
            found = self.refiner.refine(query, windows)
            self.seconds.append(time.process_time() - started)
        finally:
            del model.encode_context
        return found

    def _timed(self, encode: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*inputs: Any) -> Any:
            started = time.process_time()
            made = encode(*inputs)
            self.encoding += time.process_time() - started
            return made

        return timed


# ---- windows encoded beforehand --------------------------------------------------------------------------


class Beforehand:
    """SPR's refiners with what they encoded before; mixed into the class that encodes for each query.

    ``kept`` has each window (L, ...) by its video, first and last clip.
    """

    __slots__ = ()
    kept: ClassVar[dict[tuple[int, int, int], Tensor]]
    stored: ClassVar[Any]
    """What is kept of a context."""
    context_of: ClassVar[Any]
    """The context again, from what was kept and its mask."""
    # Of the class that it is mixed into.
    model: Any
    asked: Any
    _windows: Any

    def decode(
        self, query: EncodedQuery, footage: Sequence[Footage], windows: ClipWindows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As the plain way; windows that are new are encoded as it does that, all of a query's at once."""
        places = zip(footage, windows.first.tolist(), windows.stop.tolist(), strict=True)
        keys = [(id(video.frames), first, stop) for video, first, stop in places]
        if any(key not in self.kept for key in keys):
            visual, mask = self._windows([video.frames for video in footage], windows)
            parts = self.stored(self.model.encode_context(visual, mask, None))
            for key, part, clips in zip(keys, parts, windows.clips.tolist(), strict=True):
                self.kept.setdefault(key, part[:clips].clone())
        again = nn.utils.rnn.pad_sequence([self.kept[key] for key in keys], batch_first=True)
        there = (torch.arange(again.shape[1]) < torch.from_numpy(windows.clips)[:, None]).float()
        score, first, last = self.model.refine(*self.asked(query), self.context_of(again, there))
        return score.clamp(min=1e-38).log(), first, last


class ClipBeforehand(Beforehand, SprClipRefiner):
    """SPR_CLIP."""

    __slots__ = ()
    kept: ClassVar = {}
    stored: ClassVar = staticmethod(lambda context: context.frames)
    context_of: ClassVar = staticmethod(SprClipContext)


class ReloBeforehand(Beforehand, ReLoRefiner):
    """SPR_ReLo."""

    __slots__ = ()
    kept: ClassVar = {}
    stored: ClassVar = staticmethod(lambda context: torch.stack(context.clips, dim=2))
    context_of: ClassVar = staticmethod(lambda stored, mask: Context(mask, tuple(stored.unbind(2))))


# ---- what is measured ------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--features", type=Path, help="a folder of `moviola features from-library`")
    parser.add_argument("--videos", type=int, default=300, help="random ones")
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--proposals", type=int, default=125, help="of each query")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    draw = np.random.default_rng(0)
    kept: dict[str, Any] = {}
    videos, queries = (
        from_folder(options.features, kept) if options.features else made_up(options.videos, draw, kept)
    )
    corpus = proposed(videos, queries, options.queries + 1, options.proposals, draw)
    rows = measured(corpus, kept)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    title = (
        f"{len(corpus.videos)} videos ({corpus.hours:.1f} h), {options.queries} queries, "
        f"{options.proposals} proposals each, one thread"
    )
    table = Table(title=title)
    for column in ("system", "ms a query", "quartiles", "times Reel", "quartiles", "encoding", "MB an hour"):
        table.add_column(column, justify="left" if column == "system" else "right")
    for row in rows:
        table.add_row(
            row["system"],
            f"{row['ms']:.1f}",
            "{:.1f} - {:.1f}".format(*row["ms_quartiles"]),
            f"{row['ratio']:.2f}",
            "{:.2f} - {:.2f}".format(*row["ratio_quartiles"]),
            f"{row['encoding']:.0%}",
            f"{row['mb_an_hour']:.2f}",
        )
    console = Console(width=120)
    console.print(table)
    console.print(
        "MB an hour: kept besides the features, half precision for Reel and as encoded for SPR; of SPR every "
        "window of one to three segments, whether a query proposes it or not."
    )


def measured(corpus: Corpus, kept: dict[str, Any]) -> list[dict[str, Any]]:
    """Prepare, check that what is kept changes no span, then time all in turn."""
    models = {name: model_of(name, corpus) for name in LABELS}
    reel = ReelRefiner(models["reel"], "reel")  # type: ignore[arg-type]
    for video in corpus.videos.values():
        reel.prepare(video)
    prepared = sum(array.nbytes for array in kept.values())
    systems = [System("Reel", reel, prepared)]
    plain: Any
    kind: Any
    for name, plain, kind in (
        ("spr-clip", SprClipRefiner, ClipBeforehand),
        ("spr-relo", ReLoRefiner, ReloBeforehand),
    ):
        beforehand = kind(models[name], name)
        for query, windows in corpus.asked:
            beforehand.refine(query, windows)
        most = bytes_of_windows(corpus, next(iter(kind.kept.values())))
        systems.append(System(f"{LABELS[name]}, plain", plain(models[name], name), 0))
        systems.append(System(f"{LABELS[name]}, kept", beforehand, most))

    first, windows = corpus.asked[0]
    read_anew = ReelRefiner(reel.model, reel.revision)
    bare = [
        Window(w.proposal, Footage(w.footage.frames, w.footage.rate, w.footage.duration)) for w in windows
    ]
    same(read_anew.refine(first, bare), reel.refine(first, windows), "Reel")
    for query, windows in corpus.asked:
        found = {system.label: system.ask(query, windows) for system in systems}
        for name in ("SPR_CLIP", "SPR_ReLo-S"):
            same(found[f"{name}, plain"], found[f"{name}, kept"], name)
        if query is first:  # warm now
            for system in systems:
                system.seconds.clear()
                system.encoding = 0.0
    base = systems[0].seconds
    return [row_of(system, base, corpus.hours) for system in systems]


def row_of(system: System, base: Sequence[float], hours: float) -> dict[str, Any]:
    """Figures of one system; ``base`` are Reel's seconds of the same queries."""
    ratios = [mine / other for mine, other in zip(system.seconds, base, strict=True)]
    return {
        "system": system.label,
        "ms": 1000 * statistics.median(system.seconds),
        "ms_quartiles": [1000 * value for value in quartiles(system.seconds)],
        "ratio": statistics.median(ratios),
        "ratio_quartiles": quartiles(ratios),
        "encoding": system.encoding / sum(system.seconds),
        "mb_an_hour": system.stored / hours / 1e6,
    }


def quartiles(values: Sequence[float]) -> list[float]:
    """The first and the third."""
    return [float(value) for value in np.quantile(values, [0.25, 0.75])]


def same(plain: Sequence[Refined], other: Sequence[Refined], label: str) -> None:
    """End the program where the two ways find different spans, ties aside."""
    for one, two in zip(plain, other, strict=True):
        if one.span != two.span and abs(one.score - two.score) > TIE * max(1.0, abs(one.score)):
            sys.exit(f"{label}: what is kept changes an answer: {one} against {two}")


# ---- the corpus ------------------------------------------------------------------------------------------


def made_up(
    count: int, draw: Generator, kept: dict[str, Any]
) -> tuple[dict[str, Footage], list[EncodedQuery]]:
    """Videos of about :data:`CLIPS` random clips, and random queries."""
    videos = {}
    for row in range(count):
        clips = int(np.clip(draw.normal(CLIPS, CLIPS / 4), 16, 2 * CLIPS))
        frames = draw.standard_normal((clips, DIM), dtype=np.float32)
        videos[f"v{row:04d}"] = footage(f"v{row:04d}", frames.astype(np.float16), 1.0, float(clips), kept)
    queries = [draw.standard_normal((int(draw.integers(6, 18)), DIM), dtype=np.float32) for _ in range(50)]
    return videos, [asked(tokens) for tokens in queries]


def from_folder(folder: Path, kept: dict[str, Any]) -> tuple[dict[str, Footage], list[EncodedQuery]]:
    """All videos and queries of exported features."""
    features = FeatureFolder.open(folder)
    videos = {
        name: footage(name, np.array(features.visual.mapped(name)), 1 / features.clip_seconds, duration, kept)
        for name, duration in features.durations.items()
    }
    texts = features.queries.keys()
    return videos, [asked(np.asarray(features.queries.mapped(text), np.float32)) for text in texts]


def footage(name: str, frames: Any, rate: float, duration: float, kept: dict[str, Any]) -> Footage:
    """A video whose encoding is kept in memory."""

    def keep(revision: str, make: Callable[[], Any]) -> Any:
        if name not in kept:
            kept[name] = make()
        return kept[name]

    return Footage(frames, rate, duration, kept=keep)


def asked(tokens: Any) -> EncodedQuery:
    """A query from its tokens, the last of which stands for all."""
    return EncodedQuery(tokens[-1] / np.linalg.norm(tokens[-1]), tokens)


def proposed(
    videos: dict[str, Footage], queries: list[EncodedQuery], count: int, proposals: int, draw: Generator
) -> Corpus:
    """Queries with proposals of one to three segments anywhere."""
    names = list(videos)
    rows = []
    for query in (queries[row % len(queries)] for row in draw.permutation(max(count, len(queries)))[:count]):
        windows = []
        for rank in range(1, proposals + 1):
            name = names[draw.integers(len(names))]
            segments = math.ceil(videos[name].duration / SEGMENT)
            first = int(draw.integers(segments))
            last = min(first + int(draw.integers(1, MOST + 1)), segments)
            span = videos[name].span(first * SEGMENT, last * SEGMENT)
            windows.append(Window(Proposal(name, span, 1 / rank, rank), videos[name]))
        rows.append((query, windows))
    return Corpus(videos, rows)


def model_of(name: str, corpus: Corpus) -> nn.Module:
    """A model of the comparison's size with random weights."""
    how, (query, windows) = recipe(name), corpus.asked[0]
    footage = windows[0].footage
    sizes = Sizes(footage.frames.shape[1], 0, query.tokens.shape[1], 1 / footage.rate, 0)
    settings = read_settings(how, overrides=SIZES[name])
    torch.manual_seed(0)
    return build(how.architecture, {**how.sized(sizes), **settings.model}).eval()


def bytes_of_windows(corpus: Corpus, some: Tensor) -> int:
    """What every window of one to three segments of the corpus would take, encoded like this one (L, ...)."""
    each = some.nbytes // len(some)
    clips = 0
    for video in corpus.videos.values():
        segments = int(-(-video.duration // SEGMENT))
        for first in range(segments):
            for last in range(first + 1, min(first + MOST, segments) + 1):
                start, end = max(0.0, first * SEGMENT - 8), min(video.duration, last * SEGMENT + 8)
                clips += int(np.ceil(end * video.rate) - np.floor(start * video.rate))
    return clips * each


if __name__ == "__main__":
    main()
