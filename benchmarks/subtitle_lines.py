"""What the subtitle stream of the comparison holds without training: queries against lines, by cosine.

    python benchmarks/subtitle_lines.py COMPARISON

COMPARISON is a folder in which `compare_models.py --preset third` has trained. A query's sentence
vector is compared with those of all lines of the test films; the best 40 lines are the answer,
each with the clips in which it is spoken. Below it, by type of query, the main rows at N = 20 (seed 0) that
are finished. Nothing is trained or chosen.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from comparison.bench import Bench
from comparison.figures import MAIN, TYPES
from comparison.findings import Findings
from comparison.lines import nearest_lines
from comparison.plan import PRESETS
from comparison.rows import ROWS, finished
from moviola.study.measures import evaluate
from moviola.study.training.data import Split
from moviola.study.training.validation import MEASURES

DEPTH = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("comparison", type=Path, help="folder with worlds, models and results")
    bench = Bench(parser.parse_args().comparison, PRESETS["third"])
    world = bench.world("report")
    test = Split.read(world.features, world.pairs("test"), world.videos("test"))
    found = evaluate(nearest_lines(test, DEPTH), test.pairs.qrels, MEASURES)
    types, values = world.types("test"), found.per_query[MAIN]
    own = np.array([types[query] for query in found.query_ids])
    table = Table("model", *(f"{kind}, {(own == kind).sum()} queries" for kind in TYPES))
    table.add_row("lines, untrained", *(f"{values[own == kind].mean():.3f}" for kind in TYPES))
    findings = Findings(bench)
    for label, job in finished(findings, ROWS):
        by_type = findings.result(job)["types"]
        table.add_row(label, *(f"{by_type[kind][MAIN]:.3f}" for kind in TYPES))
    print(MAIN)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
