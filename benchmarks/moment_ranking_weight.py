"""How the ranking of moments (+SL) should weigh beside that of videos, alone and together with +PR.

    python benchmarks/moment_ranking_weight.py COMPARISON 1 0.05

COMPARISON is a folder in which `compare_models.py --preset third` has trained. Paper 003 prints no
weight, so the comparison's rows have 1. But the score of a moment (Eq. 14) has 20 times the video's score in
it, so its ranking losses pull 20 times as hard at what those of the videos pull at. Rows are trained as in
the comparison but for the weight, on one thread; each takes some eight minutes. Val chooses the weights of a
training, as there, and would have to choose the weight of the losses.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from comparison.bench import Bench
from comparison.figures import MAIN
from comparison.plan import PRESETS, Job
from comparison.run import write_related
from moviola.study.training.answering import AnsweringModel
from moviola.study.training.experiment import Experiment
from moviola.study.training.validation import judge

ROWS = ("xml-sl", "xml-sl-pr-related")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("comparison", type=Path, help="folder with worlds and results")
    parser.add_argument("weights", type=float, nargs="+")
    parser.add_argument("--rows", nargs="+", default=ROWS, help=f"of those with +SL; by default {ROWS}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    bench = Bench(options.comparison, PRESETS["third"])
    for weight in options.weights:
        for row in options.rows:
            val, test = trained(bench, bench.job(row), weight)
            print(f"{row}, weight {weight:g}: {MAIN} {val:.4f} on val, {test:.4f} on test", flush=True)


def trained(bench: Bench, job: Job, weight: float) -> tuple[float, float]:
    """What a row is worth on val and on test, if moments are ranked with some weight."""
    world, segments = bench.world(job.world), bench.preset.segments
    with TemporaryDirectory() as folder:
        pairs, out = Path(folder) / "pairs.npz", Path(folder) / "model"
        write_related(world.split("train", job.top), pairs, theta=job.relevant)
        own = (f"model.relevant_pairs.segment={weight}", f"sampling.relevant_pairs={json.dumps(str(pairs))}")
        Experiment.prepare(
            job.recipe,
            **world.training(job.top),
            segments=segments,
            overrides=[*job.overrides, *own],
        ).train(out)
        answering = AnsweringModel.open(out, world.features.facts, segments=segments)
        splits = (world.split("val"), world.split("test"))
        val, test = (judge(answering.run(split), split)[MAIN] for split in splits)
        return val, test


if __name__ == "__main__":
    main()
