"""Is merging segments over gaps better than merging adjacent ones alone (SPR, section 3.2)?

    python benchmarks/gaps.py COMPARISON [--out gaps.csv]

COMPARISON is a folder in which `compare_models.py --preset third` has trained a stage 1. Its segments for the
test queries, and those of mean-pooled CLIP, are merged by each rule of the released code: adjacent ones, the
paper's choice; those with at most a number of segments missing between them; and those whose gap is at most
a share of what lies around it. Coarse proposals are judged as they are, and by their practical upper bound.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from comparison.bench import Bench
from comparison.figures import OVER, Coarse, trained_stage1
from comparison.plan import PRESETS, Job
from moviola.errors import MoviolaError
from moviola.files.writing import write_csv
from moviola.retrieval import MeanPooling, Stage1, propose
from moviola.retrieval.proposals import merged_apart
from moviola.study.training.validation import judge

RULES: dict[str, tuple[int, float]] = {
    "adjacent": (0, 0.0),
    **{f"gap of {gap}": (gap, 0.0) for gap in (1, 2, 4)},
    **{f"gap of {share} of the proposal": (0, share) for share in (0.5, 1.0)},
}
"""Greatest gap in segments, and as a share of what lies on both sides of it, see
:func:`moviola.retrieval.propose`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("comparison", type=Path, help="folder with worlds, models and results")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("gaps.csv"))
    options = parser.parse_args()
    bench = Bench(options.comparison, PRESETS["third"])
    job = bench.job(f"spr-stage1-n{bench.preset.top}")
    try:
        stages = {"trained stage 1": trained_stage1(bench, job), "CLIP, mean pooled": MeanPooling()}
    except MoviolaError as error:
        sys.exit(f"error: {error}")
    rows = [(name, *row) for name, stage1 in stages.items() for row in merged(bench, job, stage1)]
    write_csv(options.out, ["segments of", "rule", "proposals", "seconds", *OVER, "bound"], rows)
    for row in rows:
        print(*(f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row), sep="\t")


def merged(bench: Bench, job: Job, stage1: Stage1) -> list[tuple[object, ...]]:
    """Of each rule its name, proposals a query, their mean seconds, nDCG and the practical upper bound.

    Args:
        bench: a comparison.
        job: on whose world it is done.
        stage1: what embeds queries and segments.
    """
    test = bench.world(job.world).split("test")
    coarse = Coarse.of(stage1, test, bench, job)
    hits = coarse.retrieval.hits(test.queries)
    rows: list[tuple[object, ...]] = []
    for name, (gap, share) in RULES.items():
        proposals = propose(
            hits, test.features, coarse.retrieval.segment_clips,
            gap=gap, adaptive_gap=share, apart=merged_apart(hits.searched),
        )  # fmt: skip
        found = judge(coarse.run(proposals), test)
        mean = float(np.diff(proposals.offsets).mean()), float((proposals.end - proposals.start).mean())
        values = (*mean, *(found[measure] for measure in OVER), coarse.bound(proposals))
        rows.append((name, *(round(value, 5) for value in values)))
    return rows


if __name__ == "__main__":
    main()
