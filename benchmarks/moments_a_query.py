"""Why N, moments a training query, helps or harms: refiners of one N on the proposals of another.

    python benchmarks/moments_a_query.py COMPARISON

COMPARISON is a folder in which `compare_models.py --preset full` has trained. In its main rows
stage 1 and the refiner have learned with the same N. Here each refiner (seed 0) answers the test queries
with the proposals of each stage 1, as far as their models are in the folder, beside the practical upper
bound of these proposals, so that what N does to the proposals and what it does to the refiner are told
apart. Nothing is trained or chosen. One thread.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from comparison.bench import Bench
from comparison.bounds import upper_bounds
from comparison.figures import MAIN
from comparison.findings import BOUND_CONTEXT, BOUND_GRID
from comparison.plan import PRESETS, Job
from comparison.rows import REFINERS
from moviola.training.data import Split
from moviola.training.experiment import AnsweringModel
from moviola.training.validation import judge


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("comparison", type=Path, help="folder with worlds, models and results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    bench = Bench(options.comparison, PRESETS["full"])
    firsts = [f"spr-stage1-n{top}" for top in bench.preset.tops if is_there(bench, f"spr-stage1-n{top}")]
    table = Table("refiner", *(f"proposals of {first}" for first in firsts))
    world = bench.world("report")
    test = Split.read(world.features, world.pairs("test"), world.videos("test"))
    refiners = [job for job in bench.jobs() if is_refiner(job) and is_there(bench, job.name)]
    for job in refiners:
        values = [judge(on(bench, job, first).run(test), test)[MAIN] for first in firsts]
        table.add_row(job.name, *(f"{value:.3f}" for value in values))
    bounds = [bound(test, on(bench, refiners[0], first)) for first in firsts]
    table.add_row("practical upper bound", *(f"{value:.3f}" for value in bounds))
    print(MAIN)
    Console(width=140).print(table)


def is_there(bench: Bench, name: str) -> bool:
    """Whether a model is in the folder, to which figures alone may have been carried."""
    return (bench.model(name) / "config.json").is_file()


def is_refiner(job: Job) -> bool:
    """Whether it is a main row of SPR or Reel, seed 0."""
    return job.group == "main" and job.recipe in REFINERS


def on(bench: Bench, job: Job, first: str) -> AnsweringModel:
    """A job's model on the proposals of some stage 1."""
    return bench.answering(replace(job, stage1=first))


def bound(test: Split, answering: AnsweringModel) -> float:
    """The practical upper bound of the proposals that a model refines."""
    proposals = answering.completed(test).proposals
    assert proposals is not None
    return upper_bounds(test, proposals, context=BOUND_CONTEXT, grid=BOUND_GRID)[MAIN]


if __name__ == "__main__":
    main()
