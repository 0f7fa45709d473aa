"""Train the stage 1 and the refiner that moviola carries for its demo encoder, from nothing, on gridhouse.

    python scripts/train_demo_models.py --work demo-models
    python scripts/train_demo_models.py --videos 40 20 --steps 20 20 --work try --out try/models

They are what `moviola library use --stage1 demo --refiner demo` puts in use. They belong to one state
of the encoder `demo`: after `scripts/train_demo_clip.py` this script has to run again.

What they learn from: the films of one world that are numbered for training (60 %); those for val (10 %)
choose the weights, and were asked for the settings below. Those for test (30 %) are asked once, at the end,
and what comes out goes into the model cards. The worlds of the demo and of the tests have other seeds.

Cost: three quarters of an hour on 2 cores for the films, their index and features, which `--work` keeps; then
10 minutes on one core to train both. Same machine, same weights: training uses one thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))  # the comparison's worlds

from comparison.world import World, prepare, present_encoder, require_encoder
from moviola.library.disk.models_in_use import DEMO_MODELS
from moviola.study.models.pretrained import save_pretrained
from moviola.study.training.answering import Answer, answer
from moviola.study.training.experiment import Experiment, TrainedModel
from moviola.study.training.fit_calibration import ANSWERS, first_answers
from reliability import reliability

SEED = 31
TOP = 20  # N: moments a training query
SEGMENTS = (100, 200)  # k: a library retrieves 200
SHOWN = tuple(f"nDCG@20,IoU>={overlap}" for overlap in (0.3, 0.5, 0.7))
FIRST = (20, ANSWERS)  # of a query's answers, for the reliability of scores
STAGE1 = ("model.layers=2", "model.identity_start=true", "model.logit_scale=4.0")
REEL = ("model.hidden_size=128", "model.longest_span=16", "model.dropout=0.2")

CARD = """
## The demo's

Made by `scripts/train_demo_models.py` from {plain:,} plain and {edited:,} edited gridhouse films of seed
{seed} (60 % to learn from), with the first {top} moments of each training query. moviola carries it:
`moviola library use --stage1 demo --refiner demo`. It knows robots in coloured rooms, as the encoder `demo`
sees them, and nothing else. Apache-2.0, as moviola is.

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


def main() -> None:
    """Prepare, train twice, measure, save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", type=Path, help="folder that keeps films and features; else a temporary one"
    )
    parser.add_argument("--out", type=Path, help="folder for both models; by default where moviola has them")
    parser.add_argument(
        "--videos",
        type=int,
        nargs=2,
        default=(500, 500),
        metavar=("PLAIN", "EDITED"),
        help="films of the world",
    )
    parser.add_argument("--steps", type=int, nargs=2, default=(400, 1600), metavar=("STAGE1", "REEL"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folders = {role: options.out / path.name if options.out else path for role, path in DEMO_MODELS.items()}

    plain, edited = options.videos
    with tempfile.TemporaryDirectory() as scratch:
        world = prepare(
            options.work or Path(scratch),
            videos=plain,
            edited_videos=edited,
            seed=SEED,
            workers=options.workers,
        )
        require_encoder(world, present_encoder())  # features that were kept may be of an older one
        torch.set_num_threads(1)
        models = Path(scratch) / "models"
        first, second = (models / folders[role].name for role in ("stage1", "refiner"))
        stage1 = trained("spr-stage1", world, first, (*STAGE1, *limits(options.steps[0])))
        reel = trained("reel", world, second, (*REEL, *limits(options.steps[1])), stage1=first)
        card = measured(world, first, second, calibrated=bool(reel.calibrated), videos=options.videos)
        print(card)
        save(stage1, folders["stage1"], card)
        save(reel, folders["refiner"], card)


def save(made: TrainedModel, folder: Path, more: str) -> None:
    """The model without its log, and with more in its card."""
    card = (made.folder / "README.md").read_text() + more
    save_pretrained(made.trained.model, folder, card=card, extra=made.facts)


def limits(steps: int) -> tuple[str, ...]:
    return f"loop.steps={steps}", "loop.epochs=1000000", f"loop.evaluate_every={-(-steps // 5)}"


def trained(
    name: str, world: World, out: Path, overrides: Sequence[str], stage1: Path | None = None
) -> TrainedModel:
    """Train by a recipe."""
    print(f"training {name}", flush=True)
    return Experiment.prepare(
        name,
        **world.training(TOP),
        stage1=stage1,
        overrides=overrides,
    ).train(out, progress=show)


def show(step: int, steps: int, values: Mapping[str, float]) -> None:
    if shown := {name: value for name, value in values.items() if name in (*SHOWN, "recall@100")}:
        print(f"step {step}/{steps}:", *(f"{name} {value:.4f}" for name, value in shown.items()), flush=True)


def measured(world: World, stage1: Path, reel: Path, *, calibrated: bool, videos: tuple[int, int]) -> str:
    """What both find in the test films, as a part of a card."""

    def asked(model: Path, segments: int, before: Path | None = None, *, as_search: bool = False) -> Answer:
        return answer(
            model, world.features, world.pairs("test"), videos=world.videos("test"), stage1=before,
            segments=segments, as_search=as_search,
        )  # fmt: skip

    rows, honest = [], []
    for count in SEGMENTS:
        for name, found in (("coarse", asked(stage1, count)), ("refined", asked(reel, count, stage1))):
            cells = " | ".join(f"{found.figures[measure]:.3f}" for measure in SHOWN)
            rows.append(f"| {name}, {count} segments | {cells} |")
    # Those after the most segments, as a library retrieves them.
    shown = asked(reel, SEGMENTS[-1], stage1, as_search=True)
    for first in FIRST if calibrated else ():
        honest += [
            f"| {first} | {low:.1f} to {high:.1f} | {answers:,} | {score:.2f} | {share:.2f} |"
            for low, high, answers, score, share in reliability(
                *first_answers(shown.run, shown.qrels, first)[:2]
            )
        ]
    return CARD.format(
        plain=videos[0], edited=videos[1], seed=SEED, top=TOP, films=shown.videos,
        queries=len(shown.run.query_ids), heads=" | ".join(SHOWN), rules="---|" * len(SHOWN),
        rows="\n".join(rows), segments=SEGMENTS[-1], honest="\n".join(honest),
    )  # fmt: skip


if __name__ == "__main__":
    main()
