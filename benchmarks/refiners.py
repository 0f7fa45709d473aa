"""What refining one query costs: Reel beside SPR's refiners of equal hidden size, on the same proposals.

    python benchmarks/refiners.py [--features DIR] [--videos 300] [--queries 30] [--proposals 125]

All are run as search runs them (:mod:`moviola.retrieval.refiners`), one thread, in turn for each query. Reel
has read every video once, before any query, and keeps what it made in half precision. SPR's refiners encode
every window for every query, as published ("plain"); beside that stands what is left of it where every
window was encoded for an earlier query and is remembered ("kept"), the best that search can hope for: a
window is not known before a query proposes it, and windows overlap. Both must give the same spans, and so
must Reel with and without what it keeps. Times are the processor's, which is what a quiet machine would take,
whatever else computes.

Weights are random, since cost does not depend on them. Features are random too, unless a folder of
`moviola features` is given. A proposal is one to three segments of 4 s, with 8 s on both sides.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.random import Generator

from comparison.table import Table
from moviola.features import FeatureFolder, FeatureRows, KeyedShards, QueryFeatures, VideoFeatures
from moviola.retrieval import Proposals
from moviola.retrieval.refiners import Refined
from random_models import random_refiner

DIM, CLIPS = 128, 84
SEGMENT, MOST, CONTEXT = 4.0, 3, 8.0
LABELS = {"spr-clip": "SPR_CLIP", "spr-relo": "SPR_ReLo-S"}
TIE = 1e-4
"""Spans may differ where their scores differ by no more than this: the best of equals is rounding."""
SIZES = {
    "spr-clip": ("model.layers=2", "model.identity_start=true"),
    "spr-relo": ("model.hidden_size=128", "model.heads=4"),
    "reel": ("model.hidden_size=128", "model.longest_span=16"),
}
"""Settings of the models that are timed, by recipe: one size for all, on features of 128 numbers."""


@dataclass(frozen=True)
class Corpus:
    """Videos, and queries with the proposals that are to be refined for each."""

    features: VideoFeatures
    queries: QueryFeatures
    proposals: Proposals

    @property
    def hours(self) -> float:
        """Of video."""
        return float(self.features.durations.sum() / 3600)


@dataclass
class System:
    """A refiner that is timed.

    Attributes:
        label: of the table.
        refiner: what runs.
        keeps: whether it remembers what it made for earlier queries.
        stored: bytes that it keeps besides the features.
        seconds: of each query.
    """

    label: str
    refiner: Any
    keeps: bool
    stored: int
    seconds: list[float] = field(default_factory=list)

    def ask(self, corpus: Corpus, query: int) -> Refined:
        """Refine a query's proposals and note the time."""
        features = corpus.features if self.keeps else corpus.features.with_fresh_cache()
        proposals = corpus.proposals.of(query)
        started = time.process_time()
        found: Refined = self.refiner.refine(corpus.queries, query, features, proposals)
        self.seconds.append(time.process_time() - started)
        return found


# ---- what is measured ------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--features", type=Path, help="a folder of `moviola features from-library`")
    parser.add_argument("--videos", type=int, default=300, help="random ones")
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--proposals", type=int, default=125, help="of each query")
    options = parser.parse_args()
    torch.set_num_threads(1)
    draw = np.random.default_rng(0)
    features, queries = from_folder(options.features) if options.features else made_up(options.videos, draw)
    corpus = proposed(features, queries, options.queries + 1, options.proposals, draw)
    title = (
        f"{len(features)} videos ({corpus.hours:.1f} h), {options.queries} queries, "
        f"{options.proposals} proposals each, one thread"
    )
    rows = [
        (
            row["system"], f"{row['ms']:.1f}", "{:.1f} - {:.1f}".format(*row["ms_quartiles"]),
            f"{row['ratio']:.2f}", "{:.2f} - {:.2f}".format(*row["ratio_quartiles"]),
            f"{row['mb_an_hour']:.2f}",
        )
        for row in measured(corpus)
    ]  # fmt: skip
    text = (
        "MB an hour: kept besides the features, half precision for Reel and as encoded for SPR; of SPR every "
        "window of one to three segments, whether a query proposes it or not."
    )
    head = ("system", "ms a query", "quartiles", "times Reel", "quartiles", "MB an hour")
    Table(title, head, rows, text).print(120)


def measured(corpus: Corpus) -> list[dict[str, Any]]:
    """Prepare, check that what is kept changes no span, then time all in turn."""
    reel = model_of("reel", corpus)
    for video in range(len(corpus.features)):
        reel.prepare(corpus.features, video)
    systems = [System("Reel", reel, True, prepared_bytes(reel, corpus))]
    for name, label in LABELS.items():
        plain, kept = model_of(name, corpus), model_of(name, corpus)
        systems.append(System(f"{label}, plain", plain, False, 0))
        systems.append(System(f"{label}, kept", kept, True, bytes_of_windows(corpus, kept)))

    same(System("Reel", reel, False, 0).ask(corpus, 0), systems[0].ask(corpus, 0), "Reel")
    for query in range(len(corpus.queries)):  # what is kept is there now
        found = {system.label: system.ask(corpus, query) for system in systems}
        for name in LABELS.values():
            same(found[f"{name}, plain"], found[f"{name}, kept"], name)
    for system in systems:
        system.seconds.clear()
    for query in range(1, len(corpus.queries)):
        for system in systems:
            system.ask(corpus, query)
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
        "mb_an_hour": system.stored / hours / 1e6,
    }


def quartiles(values: Sequence[float]) -> list[float]:
    """The first and the third."""
    return [float(value) for value in np.quantile(values, [0.25, 0.75])]


def same(plain: Refined, other: Refined, label: str) -> None:
    """End the program where the two ways find different spans, ties aside."""
    moved = (plain.start != other.start) | (plain.end != other.end)
    apart = np.abs(plain.score - other.score) > TIE * np.maximum(1.0, np.abs(plain.score))
    if (moved & apart).any():
        row = int(np.flatnonzero(moved & apart)[0])
        sys.exit(f"{label}: what is kept changes the answer to proposal {row}: {plain} against {other}")


# ---- the corpus ------------------------------------------------------------------------------------------


def made_up(count: int, draw: Generator) -> tuple[VideoFeatures, QueryFeatures]:
    """Videos of about :data:`CLIPS` random clips, and random queries."""
    counts = np.clip(draw.normal(CLIPS, CLIPS / 4, count), 16, 2 * CLIPS).astype(np.int64)
    rows = [draw.standard_normal((n, DIM), dtype=np.float32).astype(np.float16) for n in counts.tolist()]
    names = tuple(f"v{row:04d}" for row in range(count))
    visual = FeatureRows(DIM, tuple(range(count)), rows.__getitem__)
    features = VideoFeatures(names, counts.astype(np.float64), 1.0, counts, visual)
    tokens = [draw.standard_normal((int(draw.integers(6, 18)), DIM), dtype=np.float32) for _ in range(50)]
    texts = [f"query {row}" for row in range(50)]
    return features, QueryFeatures.of(texts, texts, tokens)


def from_folder(folder: Path) -> tuple[VideoFeatures, QueryFeatures]:
    """All videos and queries of exported features."""
    features = FeatureFolder.open(folder)
    texts = KeyedShards(folder / "queries").keys()
    return features.videos().without_subtitles(), features.queries(texts, texts)


def proposed(
    features: VideoFeatures, queries: QueryFeatures, count: int, proposals: int, draw: Generator
) -> Corpus:
    """Queries with proposals of one to three segments anywhere."""
    chosen = draw.permutation(max(count, len(queries)))[:count] % len(queries)
    rows = []
    for query in range(count):
        for _ in range(proposals):
            video = int(draw.integers(len(features)))
            segments = math.ceil(features.durations[video] / SEGMENT)
            first = int(draw.integers(segments))
            last = min(first + int(draw.integers(1, MOST + 1)), segments)
            end = min(last * SEGMENT, float(features.durations[video]))
            rows.append((query, video, first * SEGMENT, end))
    query_rows, video_rows, start, stop = zip(*rows, strict=True)
    own = Proposals.of_columns(query_rows, video_rows, start, stop, np.ones(len(rows)), queries=count)
    return Corpus(features, queries.select(chosen), own)


def model_of(name: str, corpus: Corpus) -> Any:
    """A refiner of :data:`SIZES` with random weights."""
    return random_refiner(name, corpus.features, corpus.queries.dim, SIZES[name], context=CONTEXT)


def prepared_bytes(reel: Any, corpus: Corpus) -> int:
    """What Reel keeps of all videos."""

    def missing() -> Any:
        raise AssertionError("a video was not prepared")

    sizes = corpus.features.counts.tolist()
    one = corpus.features.cache.get(reel.revision, int(corpus.features.keys[0]), sizes[0], missing)
    return int(sum(sizes) * one.nbytes // len(one))


def bytes_of_windows(corpus: Corpus, refiner: Any) -> int:
    """What every window of one to three segments of the corpus would take."""
    features, clips = corpus.features, 0
    one = refiner.model.encode(features.read(0, 0, 1)[None], np.ones((1, 1), np.float32), None)
    for duration in features.durations.tolist():
        segments = math.ceil(duration / SEGMENT)
        for first in range(segments):
            for last in range(first + 1, min(first + MOST, segments) + 1):
                start, end = max(0.0, first * SEGMENT - CONTEXT), min(duration, last * SEGMENT + CONTEXT)
                clips += math.ceil(end / features.clip_seconds) - math.floor(start / features.clip_seconds)
    return clips * int(one.nbytes)


if __name__ == "__main__":
    main()
