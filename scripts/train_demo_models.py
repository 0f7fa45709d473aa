"""Train the stage 1 and the refiner that moviola carries for its demo encoder, from nothing, on gridhouse.

    python scripts/train_demo_models.py --work demo-models
    python scripts/train_demo_models.py --videos 40 --steps 20 20 --work try --out try/models

They are what `moviola library use LIBRARY --stage1 demo --refiner demo` puts in use. They belong to one state
of the encoder `demo`: after `scripts/train_demo_clip.py` this script has to run again.

What they learn from: the films of one world that are numbered for training (60 %); those for val (10 %)
choose the weights, and were asked for the settings below. Those for test (30 %) are asked once, at the end,
and what comes out goes into the model cards. The worlds of the demo and of the tests have other seeds.

Cost: a quarter of an hour on 2 cores for 1,000 films, their index and features, which `--work` keeps; then
seven minutes on one core to train both. Same machine, same weights: training uses one thread.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from moviola.library.trained import DEMO_MODELS
from moviola.models.calibration import Calibration

from moviola.benchmark.world import PAIRS, World, prepare
from moviola.encoders import DEMO, find_checkpoint
from moviola.encoders.checkpoints import DEMO_FOLDER
from moviola.errors import EncoderMismatch
from moviola.models.pretrained import save_pretrained
from moviola.models.spr import SegmentRetriever
from moviola.training.calibration import ANSWERS, calibration_of, first_answers, reliability
from moviola.training.cards import described, facts, model_card
from moviola.training.recipes import Split, Trained, judge, read_settings, train
from moviola.training.registry import recipe
from moviola.training.segments import coarse_run, propose_for

SEED = 31
TOP = 20  # N: moments a training query
SEGMENTS = (100, 200)  # k: a library retrieves 200
SHOWN = tuple(f"nDCG@20,IoU>={overlap}" for overlap in (0.3, 0.5, 0.7))
FIRST = (20, ANSWERS)  # of a query's answers, for the reliability of scores
STAGE1 = ("model.layers=2", "model.identity_start=true", "model.logit_scale=4.0")
REEL = ("model.hidden_size=128", "model.longest_span=16")

CARD = """
## The demo's

Made by `scripts/train_demo_models.py` from {videos:,} gridhouse films of seed {seed} (60 % to learn from),
with the first {top} moments of each training query. moviola carries it: `moviola library use LIBRARY --stage1
demo --refiner demo`. It knows robots in coloured rooms, as the encoder `demo` sees them, and nothing else.
Apache-2.0, as moviola is.

On the test films ({films:,} films, {queries:,} queries, asked once), mean nDCG@20 of the demo's stage 1 alone
(coarse) and of its proposals after the demo's Reel (refined), by how many segments were retrieved:

| system | {heads} |
|---|{rules}
{rows}

Whether scores are honest: the first answers to each of these queries after {segments} segments, by the score
that `moviola search` gives them, and the share of them that is right (overlaps a moment of positive relevance
at IoU >= 0.5).

| first | score | answers | mean score | right |
|---|---|---|---|---|
{honest}
"""


@dataclass(frozen=True)
class Made:
    """A trained model with what its folder says of it."""

    name: str
    trained: Trained
    extra: Mapping[str, Any]

    def save(self, folder: Path, more: str) -> None:
        model = cast("Any", self.trained.model)
        card = model_card(self.name, asdict(model.config), self.extra) + more
        save_pretrained(model, folder, card=card, extra=self.extra)


def main() -> None:
    """Prepare, train twice, measure, save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", type=Path, help="folder that keeps films and features; else a temporary one"
    )
    parser.add_argument("--out", type=Path, help="folder for both models; by default where moviola has them")
    parser.add_argument("--videos", type=int, default=1000)
    parser.add_argument("--steps", type=int, nargs=2, default=(400, 2000), metavar=("STAGE1", "REEL"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folders = {role: options.out / path.name if options.out else path for role, path in DEMO_MODELS.items()}

    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        world = prepare(work, videos=options.videos, seed=SEED, workers=options.workers)
        require_present_encoder(world)
        torch.set_num_threads(1)
        splits = {name: world.split(name, TOP if name == "train" else None) for name in ("train", "val")}
        stage1 = made("spr-stage1", world, splits, (*STAGE1, *limits(options.steps[0])))
        retriever = cast("SegmentRetriever", stage1.trained.model)
        splits = {name: with_proposals(retriever, split) for name, split in splits.items()}
        reel = made("reel", world, splits, (*REEL, *limits(options.steps[1])), folders["stage1"].name)
        card = measured(stage1, reel, world.split("test"), options.videos)
    print(card)
    stage1.save(folders["stage1"], card)
    reel.save(folders["refiner"], card)


def require_present_encoder(world: World) -> None:
    """Features that were kept may be of an older demo encoder."""
    present = find_checkpoint(DEMO, builtin={DEMO: DEMO_FOLDER}, instead="")
    if world.features.encoder != (present.id, present.revision):
        raise EncoderMismatch(
            f"{world.folder}: features of {' '.join(world.features.encoder)}, but the demo's encoder is now "
            f"{present.revision}; delete its folders library and features"
        )


def limits(steps: int) -> tuple[str, ...]:
    return f"loop.steps={steps}", "loop.epochs=1000000", f"loop.evaluate_every={-(-steps // 5)}"


def with_proposals(retriever: SegmentRetriever, split: Split, count: int = SEGMENTS[-1]) -> Split:
    return replace(split, proposals=propose_for(retriever, split, count=count))


def made(
    name: str, world: World, splits: Mapping[str, Split], overrides: Sequence[str], stage1: str | None = None
) -> Made:
    """Train by a recipe."""
    how = recipe(name)
    print(f"training {name}", flush=True)
    settings = read_settings(how, overrides=overrides)
    trained = train(how, splits["train"], splits["val"], settings, progress=tell)
    calibration = calibration_of(how, trained, splits["val"]) if "proposals" in how.needs else None
    files = {"train": PAIRS, "val": "val.json"}
    about = {split: described(rows, files[split]) for split, rows in splits.items()}
    return Made(name, trained, facts(name, trained, world.features, about, stage1, calibration=calibration))


def tell(step: int, steps: int, values: Mapping[str, float]) -> None:
    if shown := {name: value for name, value in values.items() if name in (*SHOWN, "recall@100")}:
        print(f"step {step}/{steps}:", *(f"{name} {value:.4f}" for name, value in shown.items()), flush=True)


def measured(stage1: Made, reel: Made, test: Split, videos: int) -> str:
    """What both find in the test films, as a part of a card."""
    rows, honest = [], []
    for count in SEGMENTS:
        split = with_proposals(cast("SegmentRetriever", stage1.trained.model), test, count)
        assert split.proposals is not None
        runs = {
            "coarse": coarse_run(split.proposals, split.queries.query_ids),
            "refined": recipe(reel.name).run(reel.trained.model, split),
        }
        for name, run in runs.items():
            found = judge(run, split)
            cells = " | ".join(f"{found[measure]:.3f}" for measure in SHOWN)
            rows.append(f"| {name}, {count} segments | {cells} |")
    # Those after the most segments, as a library retrieves them.
    if calibration := Calibration.of(reel.extra, Path(reel.name)):
        architecture = recipe(reel.name).architecture
        for first in FIRST:
            raw, right = first_answers(runs["refined"], test.pairs.qrels, architecture, first)
            scores = np.array([calibration.score(value) for value in raw.tolist()])
            honest += [
                f"| {first} | {low:.1f} to {high:.1f} | {answers:,} | {score:.2f} | {share:.2f} |"
                for low, high, answers, score, share in reliability(scores, right)
            ]
    return CARD.format(
        videos=videos, seed=SEED, top=TOP, films=len(test.clips.videos), queries=len(test.queries),
        heads=" | ".join(SHOWN), rules="---|" * len(SHOWN), rows="\n".join(rows),
        segments=SEGMENTS[-1], honest="\n".join(honest),
    )  # fmt: skip


if __name__ == "__main__":
    main()
