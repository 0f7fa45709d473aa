"""What the subtitle stream of the comparison holds without training: queries against told lines, by cosine.

    python benchmarks/told_lines.py COMPARISON

COMPARISON is a folder in which `moviola benchmark gridhouse --preset full` has trained. A query's sentence
vector is compared with those of all lines that are told in the test films; the best 40 lines are the answer,
each with the clips in which it is told. Below it, by type of query, the main rows at N = 20 (seed 0) that are
finished. Nothing is trained or chosen.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from moviola.benchmark.bench import Bench
from moviola.benchmark.figures import MAIN, TYPES
from moviola.benchmark.findings import Findings
from moviola.benchmark.plan import PRESETS
from moviola.benchmark.rows import ROWS, finished
from moviola.features import VideoFeatures, normalise_rows
from moviola.measures import Run, evaluate
from moviola.training.data import Split
from moviola.training.judging import MEASURES

DEPTH = 40


@dataclass(frozen=True)
class Line:
    """What is told in some clips of a video, in seconds, with its sentence vector."""

    video: str
    start: float
    end: float
    vector: NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("comparison", type=Path, help="folder with worlds, models and results")
    bench = Bench(parser.parse_args().comparison, PRESETS["full"])
    world = bench.world("report")
    test = Split.read(world.features, world.pairs("test"), world.videos("test"))
    found = evaluate(by_cosine(test), test.pairs.qrels, MEASURES)
    types, values = world.types("test"), found.per_query[MAIN]
    own = np.array([types[query] for query in found.query_ids])
    table = Table("model", *(f"{kind}, {(own == kind).sum()} queries" for kind in TYPES))
    table.add_row("told lines, untrained", *(f"{values[own == kind].mean():.3f}" for kind in TYPES))
    findings = Findings(bench)
    for label, job in finished(findings, ROWS):
        by_type = findings.result(job)["types"]
        table.add_row(label, *(f"{by_type[kind][MAIN]:.3f}" for kind in TYPES))
    print(MAIN)
    Console(width=120).print(table)


def by_cosine(test: Split) -> Run:
    """The lines nearest to each query."""
    queries, features = test.queries, test.features
    lines = [line for video in features.video_ids for line in told_in(features, video)]
    vectors = normalise_rows(np.stack([line.vector for line in lines]))
    # The first row of a query is its sentence vector, on the axes of the told lines.
    asked = normalise_rows(np.stack([rows[0].astype(np.float32) for rows in queries.rows]))
    cosines = asked @ vectors.T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :DEPTH]
    chosen = [lines[place] for place in best.ravel()]
    return Run.from_columns(
        np.repeat(np.array(queries.query_ids, dtype=object), best.shape[1]),
        np.array([line.video for line in chosen], dtype=object),
        np.array([line.start for line in chosen]),
        np.array([line.end for line in chosen]),
        np.take_along_axis(cosines, best, axis=1).ravel().astype(np.float64),
        queries=queries.query_ids,
    )


def told_in(features: VideoFeatures, video: str) -> Iterator[Line]:
    """The lines of a video: clips in a row with the same vector, which is not zero."""
    assert features.subtitles is not None
    rows = features.subtitles.read(features.row_of[video]).astype(np.float32)
    changes = np.flatnonzero(np.any(rows[1:] != rows[:-1], axis=1)) + 1
    for first, last in pairwise([0, *changes.tolist(), len(rows)]):
        if rows[first].any():
            yield Line(video, first * features.clip_seconds, last * features.clip_seconds, rows[first])


if __name__ == "__main__":
    main()
