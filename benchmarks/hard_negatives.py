"""How many of SPR's hard negatives answer their query after all (SPR, section 4.7)?

    python benchmarks/hard_negatives.py COMPARISON [--out hard_negatives.csv]

COMPARISON is a folder in which `compare_models.py --preset third` has trained a stage 1. A hard negative is a
proposal of a training query whose window, with its context, touches none of the moments that the pseudo
training set names: the N that are learned from, or, as they are drawn, all that the file names. The truth is
every moment of the training films that is relevant to the query. Shares are means over queries that have hard
negatives.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from comparison.bench import Bench
from comparison.figures import TYPES, Coarse, trained_stage1
from comparison.plan import PRESETS, TOPS, Job
from moviola.errors import MoviolaError
from moviola.files.writing import write_csv
from moviola.retrieval import Stage1
from moviola.study.datasets.gridhouse.dataset import TRUTH, annotate
from moviola.study.training.data import Pairs, Split
from moviola.study.training.tasks.windows import Examples, WindowSampling

EVERY = 1_000_000
"""More moments than any query has."""

HEADER = "N,answers known,type,queries,hard negatives,hold a relevant moment,touch one"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("comparison", type=Path, help="folder with worlds, models and results")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("hard_negatives.csv"))
    options = parser.parse_args()
    bench = Bench(options.comparison, PRESETS["third"])
    job = bench.job(f"spr-stage1-n{bench.preset.top}")
    try:
        rows = list(hard_negatives(bench, job, trained_stage1(bench, job)))
    except MoviolaError as error:
        sys.exit(f"error: {error}")
    write_csv(options.out, HEADER.split(","), rows)
    print(*HEADER.split(","), sep="\t")
    for row in rows:
        print(*row, sep="\t")


def hard_negatives(bench: Bench, job: Job, stage1: Stage1) -> Iterator[tuple[object, ...]]:
    """Rows of :data:`HEADER` for each N and each way of drawing.

    Args:
        bench: a comparison.
        job: on whose world it is done.
        stage1: what proposes.
    """
    world = bench.world(job.world)
    with tempfile.TemporaryDirectory() as folder:
        annotate(Path(folder), world.folder / "films", similarity=TRUTH, tops=[EVERY])
        true = Pairs.read(Path(folder) / f"train_top{EVERY}.json", world.videos("train"))
    for top in TOPS:
        train = world.split("train", top)
        train = replace(train, proposals=Coarse.of(stage1, train, bench, job).proposals())
        without = replace(train, pairs=replace(train.pairs, beyond=train.pairs.beyond[:0]))
        for known, split in (("those N", without), ("all of the file", train)):
            yield from ((top, known, *row) for row in _of_types(split, true))


def _of_types(split: Split, true: Pairs) -> Iterator[tuple[object, ...]]:
    found = shares(split, true)
    types = np.array(split.pairs.types)
    for kind in TYPES:
        own = found[(types == kind) & (found[:, 0] > 0)]
        if len(own):
            yield (kind, len(own), *own.mean(axis=0).round(4).tolist())


def shares(split: Split, true: Pairs) -> NDArray[np.float64]:
    """Hard negatives of each query, and the shares whose window holds, and touches, a true moment: (Q, 3).

    Args:
        split: with proposals.
        true: what is relevant to the same queries, among others.
    """
    assert split.proposals is not None
    sampling = WindowSampling(held_by_window=True)
    examples = Examples(split.features, split.pairs, split.proposals, sampling)
    place = {name: row for row, name in enumerate(true.query_ids)}
    found = []
    for query, name in enumerate(split.pairs.query_ids):
        free = examples.free.rows_of(query)
        moments = true.moment[true.of_query.rows_of(place[name])]
        there = split.proposals.video[free][:, None] == true.video[moments]
        start = split.proposals.start[free][:, None] - sampling.context
        end = split.proposals.end[free][:, None] + sampling.context
        holds = there & (start <= true.start[moments]) & (end >= true.end[moments])
        touches = there & (start < true.end[moments]) & (end > true.start[moments])
        ways = (float(way.any(axis=1).mean()) if len(free) else 0.0 for way in (holds, touches))
        found.append((len(free), *ways))
    return np.array(found)


if __name__ == "__main__":
    main()
