"""What +PR and +SL gain by which captions count as related (Phi, theta), and by which of their terms.

    python benchmarks/related_captions.py WORLD OUT [--only '*np-vp*'] [--steps 400] [--seeds 0 1 2]

The sweeps and the ablation of paper 003 (tables 1 to 4, 7 and 8) in small: XML with one moment a query. WORLD
is a folder in which 150 films are made where they are missing (seed 2003, which nothing else uses). Each row
of :data:`ROWS` is a training on one thread, of a minute; its figures become OUT/ROW-SEED.json, and what is
there is not done again. OUT/table.csv (``related_captions.csv`` here) has a line for each, with the share of
all ordered pairs of captions that are related.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from comparison.plan import SIZES
from comparison.recall import in_corpus
from comparison.run import write_related
from comparison.world import World, prepare
from moviola.files.rows import read_json
from moviola.files.writing import write_csv, write_json
from moviola.study.datasets.building.relevant_pairs import PHI
from moviola.study.measures import evaluate
from moviola.study.training.answering import AnsweringModel
from moviola.study.training.data import Split
from moviola.study.training.experiment import Experiment
from moviola.study.training.validation import MEASURES

VIDEOS, SEED, TOP = 150, 2003, 1
SHOWN = (
    "VCMR R@1,IoU>0.5",
    "VCMR R@10,IoU>0.5",
    "VCMR R@100,IoU>0.5",
    "VR R@1",
    "VR R@10",
    "nDCG@20,IoU>=0.5",
)

SEGMENT = "segment=0.05"
"""A moment's score has 20 times its video's in it: without this weight +SL ranks little else."""


@dataclass(frozen=True)
class Row:
    """One training.

    Attributes:
        terms: settings of :class:`moviola.study.models.relevant_pairs.RelevantPairsConfig`; none: XML.
        phi, theta: which captions are related.
    """

    terms: tuple[str, ...] = ()
    phi: str = "np-vp"
    theta: float = 0.9


PR = ("pairs=true",)
SL_PR = ("pairs=true", "segments=true", SEGMENT)
THETAS = (0.7, 0.9, 0.5, 0.6, 0.8)
"""The paper's (tables 1 to 4) and .9, those of most interest first."""

WITHOUT: dict[str, tuple[str, ...]] = {
    "videos": ("relevant_over_negative=0", "positive_over_relevant=0"),
    "spans": ("relevant_span=0",),
    "moments": ("segment_relevant_over_negative=0", "segment_positive_over_relevant=0"),
}
"""What drops the terms with related pairs: Eq. 11 and 12 for videos, Eq. 17, Eq. 11 and 12 for moments."""


def _sweep() -> Iterator[tuple[str, Row]]:
    for phi in PHI:
        for theta in THETAS:
            yield f"pr-{phi}-{theta}", Row(PR, phi, theta)
            yield f"sl-pr-{phi}-{theta}", Row(SL_PR, phi, theta)


def _equal() -> Iterator[tuple[str, Row]]:
    """C = 1 at the paper's threshold, beside that of the ablation."""
    for kind, terms in (("pr", PR), ("sl-pr", SL_PR)):
        yield f"{kind}-c1-0.7", Row((*terms, "confidence=false"), theta=0.7)


def _ablation() -> Iterator[tuple[str, Row]]:
    dropped = {"pr": ((), ("videos",), ("spans",)), "sl-pr": ((), ("videos",), ("spans",), ("moments",))}
    for kind, terms in (("pr", PR), ("sl-pr", SL_PR)):
        for without in dropped[kind]:
            for same in ((), ("confidence=false",)):
                name = "-".join((kind, *(f"without-{one}" for one in without), *(("c1",) if same else ())))
                if name != kind:  # that one is a row of the sweep
                    yield name, Row((*terms, *(one for own in without for one in WITHOUT[own]), *same))


ROWS: dict[str, Row] = {
    "xml": Row(),
    "sl": Row(("pairs=false", "segments=true", SEGMENT)),
    **dict(_sweep()),
    **dict(_equal()),
    **dict(_ablation()),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("world", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of rows")
    parser.add_argument("--steps", type=int, default=400, help="of a training")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    torch.set_num_threads(1)
    world = prepare(options.world, videos=VIDEOS, seed=SEED, workers=1)
    wanted = [name for name in ROWS if any(fnmatch(name, pattern) for pattern in options.only)]
    for seed in options.seeds:
        for name in wanted:
            path = options.out / f"{name}-{seed}.json"
            if not path.is_file():
                found = trained(world, ROWS[name], seed, options.steps)
                write_json(path, found)
                print(name, seed, found["test"], f"{found['cpu_seconds']:.0f} s", flush=True)
    write_csv(options.out / "table.csv", *table(options.out))


def trained(world: World, row: Row, seed: int, steps: int) -> dict[str, Any]:
    """Figures of a row."""
    train, begun = world.split("train", TOP), time.process_time()
    with TemporaryDirectory() as folder:
        out, pairs, settings, related = Path(folder) / "model", Path(folder) / "pairs.npz", [], None
        if row.terms:
            related = write_related(train, pairs, phi=row.phi, theta=row.theta)
            settings = [f"sampling.relevant_pairs={pairs}"]
            settings += [f"model.relevant_pairs.{term}" for term in row.terms]
        own = [*schedule(len(train.pairs), steps), *SIZES["xml"], f"loop.seed={seed}", *settings]
        trained = Experiment.prepare("xml", **world.training(TOP), overrides=own).train(out)
        answering, test = AnsweringModel.open(out, world.features.facts), world.split("test")
        return {
            "queries": len(train.pairs.query_ids), "steps": steps, "related": related,
            "best_step": trained.trained.fitted[-1].best_step, "test": scored(answering, test),
            "cpu_seconds": time.process_time() - begun,
        }  # fmt: skip


def schedule(pairs: int, steps: int) -> list[str]:
    """Steps, batches and evaluations, and hard negatives after half of the steps."""
    half = max(1, round(steps / 2 / -(-pairs // 128)))
    return [
        "loop.epochs=1000000", "loop.patience=0", f"loop.steps={steps}", "loop.batch_size=128",
        f"loop.evaluate_every={steps // 8}", "loop.optimizer.lr=2e-3", f"sampling.hard_from={half}",
    ]  # fmt: skip


def scored(answering: AnsweringModel, test: Split) -> dict[str, float]:
    """:data:`SHOWN` on a split."""
    run = answering.run(test)
    values = in_corpus(run, test, answering.video_run(test)) | dict(
        evaluate(run, test.pairs.qrels, MEASURES).measures
    )
    return {name: round(values[name], 4) for name in SHOWN}


def table(out: Path) -> tuple[list[str], list[list[object]]]:
    """Header and rows of what is there, a row for each training."""
    rows: list[list[object]] = []
    for name in ROWS:
        for path in sorted(out.glob(f"{name}-[0-9].json")):
            found = read_json(path)
            measured = [found["test"][measure] for measure in SHOWN]
            rows.append([name, path.stem[-1], found["related"], found["best_step"], *measured])
    return ["row", "seed", "related", "best step", *SHOWN], rows


if __name__ == "__main__":
    main()
