"""Stage 1, SPR_ReLo-S and Reel on edited films and on plain ones, learned from the same films of both kinds.

    python benchmarks/edited_models.py --work DIR [--steps 4800]

DIR is that of `scripts/train_demo_models.py`: 500 plain and 500 edited films of seed 31 with their features.
Stage 1 and Reel are the demo's; SPR_ReLo-S learns here from the same pairs and from the demo's stage 1, with
the settings and steps of the comparison. nDCG@20 over the test films of each kind alone. Printed as JSON, and
written to `benchmarks/edited_models.json`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from comparison.plan import SETTINGS, SIZES
from comparison.world import World, present_encoder, require_encoder
from edited import MEASURES
from moviola.library.disk.models_in_use import DEMO_MODELS
from moviola.study.training.answering import answer
from moviola.study.training.experiment import train_model

KINDS = {"edited": "edited-", "plain": "gh-"}
"""What ids of films begin with, by kind."""
TOP = 20  # moments a training query, as of the demo's models


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder with films and features")
    parser.add_argument("--steps", type=int, default=4800, help="of SPR_ReLo-S")
    options = parser.parse_args()
    torch.set_num_threads(1)
    world = World(options.work)
    require_encoder(world, present_encoder())
    with tempfile.TemporaryDirectory() as scratch:
        relo = Path(scratch) / "spr-relo"
        val = trained(world, relo, options.steps)
        results: dict[str, Any] = {"SPR_ReLo-S": {"steps": options.steps, "val": val}}
        for kind, begins in KINDS.items():
            films = [name for name in world.videos("test") if name.startswith(begins)]
            results[kind] = compared(world, relo, films)
    print(json.dumps(results, indent=1))
    Path(__file__).with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")


def trained(world: World, out: Path, steps: int) -> dict[int, float]:
    """Train SPR_ReLo-S; nDCG@20 at IoU >= 0.5 on val at each of eight evaluations, by step."""
    val: dict[int, float] = {}

    def show(step: int, _: int, values: Any) -> None:
        if MEASURES[1] in values:
            val[step] = round(float(values[MEASURES[1]]), 4)
            print(f"step {step}: {val[step]}", flush=True)

    train_model(
        "spr-relo", world.features, train=world.pairs("train"), val=world.pairs("val"), out=out, top=TOP,
        train_videos=world.videos("train"), val_videos=world.videos("val"), stage1=DEMO_MODELS["stage1"],
        overrides=(
            *SIZES["spr-relo"], *SETTINGS["spr-relo"][0], "loop.batch_size=64", f"loop.steps={steps}",
            "loop.epochs=1000000", f"loop.evaluate_every={-(-steps // 8)}",
        ),
        progress=show,
    )  # fmt: skip
    return val


def compared(world: World, relo: Path, films: list[str]) -> dict[str, dict[str, Any]]:
    """What the three models answer over some films, by name."""
    stage1 = DEMO_MODELS["stage1"]
    return {
        "stage 1, coarse": measured(world, stage1, films),
        "SPR_ReLo-S": measured(world, relo, films, stage1),
        "Reel": measured(world, DEMO_MODELS["refiner"], films, stage1),
    }


def measured(world: World, model: Path, films: list[str], stage1: Path | None = None) -> dict[str, Any]:
    """What a model answers over some films."""
    found = answer(model, world.features, world.pairs("test"), videos=films, stage1=stage1)
    return {
        "films": len(films), "queries": len(found.run.query_ids),
        **{name: round(found.figures[name], 4) for name in MEASURES},
    }  # fmt: skip


if __name__ == "__main__":
    main()
