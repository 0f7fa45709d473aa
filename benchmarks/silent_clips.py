"""What silent clips, the weight of streams, types and hard negatives do to queries that subtitles answer.

    python benchmarks/silent_clips.py WORLD OUT [--only 'xml*'] [--steps 400]

WORLD is a folder in which 150 films with a narrator are made where they are missing (seed 1871, which nothing
else uses). Each row of :data:`ROWS` is a training on one thread, of minutes; its figures become OUT/ROW.json,
and a row that is there is not done again. Queries are of three types: about what is seen (v), what is said
(t), or both (vt). Some rows learn and answer t queries alone, the others all, 9 % of them t.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from comparison.lines import nearest_lines
from comparison.plan import SIZES
from comparison.world import World, prepare
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.study.measures import Run, evaluate
from moviola.study.training.answering import AnsweringModel
from moviola.study.training.data import Split
from moviola.study.training.experiment import train_model
from moviola.study.training.validation import MEASURES

MAIN = "nDCG@20,IoU>=0.5"
VIDEOS, SEED, QUERIES, TOP = 150, 1871, 535, 20

LITERAL = ("model.mask_silent=false",)
NO_HARD = ("sampling.hard_from=1000000",)
WEIGHED = ("model.stream_weights=query",)
APART = ("model.stream_weights=type",)
EVEN = ("sampling.even_types=true", "loop.select=types nDCG@20,IoU>=0.5")
WARM = ("loop.optimizer.warmup=0.15",)
"""Of XML and ReLoCLNet: warmed up in 20 steps their streams of subtitles did not begin to learn in 400."""

OF_TWO_PHASES = ("prem", "prem-apart")


@dataclass(frozen=True)
class Row:
    """One training: the recipe, whether of t queries alone, and what it sets."""

    recipe: str
    alone: bool
    settings: tuple[str, ...] = ()


ROWS: dict[str, Row] = {
    "xml-t-literal": Row("xml", True, LITERAL),
    "xml-t-literal-no-hard": Row("xml", True, (*LITERAL, *NO_HARD)),
    "xml-t": Row("xml", True),
    "reloclnet-t-literal": Row("reloclnet", True, LITERAL),
    "reloclnet-t": Row("reloclnet", True),
    "prem-t-literal": Row("prem", True, LITERAL),
    "prem-t": Row("prem", True),
    "xml-t-apart": Row("xml", True, APART),
    "reloclnet-t-apart": Row("reloclnet", True, APART),
    "prem-t-apart": Row("prem-apart", True),
    "xml-literal": Row("xml", False, LITERAL),
    "xml": Row("xml", False),
    "xml-pictures": Row("xml", False, ("model.subtitle_size=0",)),
    "xml-pictures-even": Row("xml", False, ("model.subtitle_size=0", EVEN[0], *NO_HARD)),
    "xml-even": Row("xml", False, (*EVEN, *NO_HARD)),
    "xml-weighed": Row("xml", False, (*WEIGHED, *NO_HARD)),
    "xml-weighed-even": Row("xml", False, (*WEIGHED, *EVEN, *NO_HARD)),
    "xml-weighed-even-hard": Row("xml", False, (*WEIGHED, *EVEN)),
    "xml-apart": Row("xml", False, (*APART, EVEN[0], *NO_HARD)),
    "reloclnet-pictures-even": Row("reloclnet", False, ("model.subtitle_size=0", EVEN[0], *NO_HARD)),
    "reloclnet-apart": Row("reloclnet", False, (*APART, EVEN[0], *NO_HARD)),
    "reloclnet-literal": Row("reloclnet", False, LITERAL),
    "reloclnet-weighed-even": Row("reloclnet", False, (*WEIGHED, *EVEN, *NO_HARD)),
    "prem-literal": Row("prem", False, LITERAL),
    "prem": Row("prem", False),
    "prem-apart": Row("prem-apart", False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("world", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of rows")
    parser.add_argument("--steps", type=int, default=400, help="of a training, each phase")
    options = parser.parse_args()
    torch.set_num_threads(1)
    world = prepare(options.world, videos=VIDEOS, seed=SEED, workers=1, subtitles=True, queries=QUERIES)
    spoken = {split: of_type(world, split, "t") for split in ("train", "val", "test")}
    untrained = options.out / "untrained.json"
    if not untrained.is_file():
        alone = Split.read(world.features, spoken["test"], world.videos("test"))
        write_json(untrained, {"test": scored(nearest_lines(alone, 40), alone)})
    for name, row in ROWS.items():
        path = options.out / f"{name}.json"
        if any(fnmatch(name, pattern) for pattern in options.only) and not path.is_file():
            found = trained(world, row, spoken, options.steps)
            write_json(path, {"row": name, "recipe": row.recipe, "settings": list(row.settings), **found})
            print(name, found["test"], f"{found['cpu_seconds']:.0f} s", flush=True)


def of_type(world: World, split: str, kind: str) -> Path:
    """The pair file of a split with all queries of one type, of which the other rows have a part."""
    path = world.folder / f"{kind}-{split}.json"
    if not path.is_file():
        write_json(path, [row for row in read_json(World(world.folder).pairs(split)) if row["type"] == kind])
    return path


def trained(world: World, row: Row, spoken: dict[str, Path], steps: int) -> dict[str, object]:
    """Figures of a row."""
    pairs = spoken if row.alone else {split: world.pairs(split) for split in ("train", "val", "test")}
    train = Split.read(world.features, pairs["train"], world.videos("train"), top=TOP)
    with TemporaryDirectory() as folder:
        out, begun = Path(folder) / "model", time.process_time()
        result = train_model(
            row.recipe, world.features, train=pairs["train"], val=pairs["val"], out=out,
            train_videos=world.videos("train"), val_videos=world.videos("val"), top=TOP,
            overrides=[
                *schedule(row.recipe, len(train.pairs), steps), *SIZES[row.recipe],
                *(() if row.recipe in OF_TWO_PHASES else WARM), *row.settings,
            ],
        )  # fmt: skip
        answering = AnsweringModel.open(out, world.features.facts)
        test = Split.read(world.features, pairs["test"], world.videos("test"))
        return {
            "queries": len(train.pairs.query_ids), "pairs": len(train.pairs), "steps": steps,
            "best_step": result.trained.fitted[-1].best_step, "val": result.trained.fitted[-1].best,
            "test": scored(answering.run(test), test), "cpu_seconds": time.process_time() - begun,
        }  # fmt: skip


def schedule(recipe: str, pairs: int, steps: int) -> list[str]:
    """Steps, batches and evaluations, and hard negatives after half of the steps."""
    if recipe in OF_TWO_PHASES:
        return [
            f"{phase}.{setting}"
            for phase, batch in (("retriever", 64), ("localizer", 8))
            for setting in (
                "epochs=1000000", f"steps={steps}", f"batch_size={batch}", f"evaluate_every={steps // 8}",
                "optimizer.lr=1e-3",
            )
        ] + ["model.temperature=0.05"]  # fmt: skip
    batch = 128 if recipe == "xml" else 64
    half = max(1, round(steps / 2 / -(-pairs // batch)))
    return [
        "loop.epochs=1000000", "loop.patience=0", f"loop.steps={steps}", f"loop.batch_size={batch}",
        f"loop.evaluate_every={steps // 8}", "loop.optimizer.lr=2e-3", f"sampling.hard_from={half}",
    ]  # fmt: skip


def scored(run: Run, split: Split) -> dict[str, float]:
    """:data:`MAIN` over all queries and over those of each type."""
    found = evaluate(run, split.pairs.qrels, MEASURES)
    kind_of = dict(zip(split.pairs.query_ids, split.pairs.types, strict=True))
    kinds = np.array([kind_of[query] for query in found.query_ids])
    values = found.per_query[MAIN]
    each = {str(kind): round(float(values[kinds == kind].mean()), 4) for kind in np.unique(kinds)}
    return {"all": round(float(values.mean()), 4), **each}


if __name__ == "__main__":
    main()
