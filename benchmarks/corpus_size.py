"""How much of a model's figure is the size of the corpus: the same model on thirds of the test films.

    python benchmarks/corpus_size.py COMPARISON

COMPARISON is a folder in which `compare_models.py --preset full` has trained. Val has 30 films and
test has 90, so a figure on val is of an easier task. Here each main row at N = 20 (seed 0) that is finished
answers about every third test film alone, three times; what it has on all is in its result. What is left of
the distance to val is that of the films, and of weights that were chosen on val. Nothing is trained or
chosen. One thread.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from comparison.bench import Bench
from comparison.figures import MAIN
from comparison.plan import PRESETS, Job
from moviola.training.data import Split
from moviola.training.validation import judge

PARTS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("comparison", type=Path, help="folder with worlds, models and results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    bench = Bench(options.comparison, PRESETS["full"])
    table = Table("model", "val, 30 films", *(f"test, third {part + 1}" for part in range(PARTS)),
                  "mean of thirds", "test, 90 films", "thirds / all")  # fmt: skip
    for job in bench.jobs():
        if job.group == "main" and job.top == bench.preset.top and bench.done(job.name):
            found = bench.result(job.name)
            thirds, whole = on_thirds(bench, job), found["test"][MAIN]
            mean = float(np.mean(thirds))
            values = [found["selected"], *thirds, mean, whole]
            table.add_row(job.name, *(f"{value:.3f}" for value in values), f"{mean / whole:.2f}")
    print(MAIN)
    Console(width=140).print(table)


def on_thirds(bench: Bench, job: Job) -> list[float]:
    """The measure where every third film of the test split is all there is."""
    world = bench.world(job.world)
    answering, films = bench.answering(job), world.videos("test")
    values = []
    for part in range(PARTS):
        split = Split.read(world.features, world.pairs("test"), films[part::PARTS])
        values.append(judge(answering.run(split), split)[MAIN])
    return values


if __name__ == "__main__":
    main()
