"""What stage 1 adds to mean-pooled CLIP, with the encoder's own queries and with ones that know nothing.

    python benchmarks/untrained_text.py WORLD

WORLD is a world of a `compare_models.py --preset third` run, `OUT/worlds/report`: its films and
features are used. The demo encoder has learned gridhouse's words; a text tower of the same shape with random
weights has not. For each, mean-pooled CLIP and a stage 1 trained on the training films answer the test
queries with coarse proposals. It takes a minute.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from comparison.plan import PRESETS, SIZES
from comparison.world import World
from moviola.encoders import load_encoder
from moviola.features import Computed, FeatureFolder, KeyedShards, convert
from moviola.retrieval import MeanPooling, Retrieval, segment_index
from moviola.study.training.answering import answer
from moviola.study.training.experiment import train_model
from moviola.study.training.validation import judge, run_of
from spine import untrained

MEASURES = tuple(f"nDCG@20,IoU>={overlap}" for overlap in (0.3, 0.5, 0.7))
PRESET = PRESETS["third"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("work", type=Path, help="folder of a comparison with the demo encoder")
    parser.add_argument("--steps", type=int, default=PRESET.budgets["spr-stage1"].steps["loop"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = Table("queries of", "system", *MEASURES)
    with tempfile.TemporaryDirectory() as scratch:
        for name, world in (
            ("the demo encoder", World(options.work)),
            ("random weights", without_words(options.work, Path(scratch))),
        ):
            for system, values in found(world, options.steps).items():
                table.add_row(name, system, *(f"{values[measure]:.4f}" for measure in MEASURES))
    Console(width=110).print(table)


def without_words(work: Path, scratch: Path) -> World:
    """The same world with the queries of a text tower that has learned nothing."""
    there = FeatureFolder.open(work / "features")
    folder = scratch / "features"
    folder.mkdir()
    shutil.copy(work / "features" / "features.json", folder)
    (folder / "visual").symlink_to((work / "features" / "visual").resolve())
    (scratch / "films").symlink_to((work / "films").resolve())
    texts = KeyedShards(there.folder / "queries").keys()
    tokens = dict(
        zip(texts, load_encoder(str(untrained(scratch / "clip"))).encode_tokens(texts), strict=True)
    )
    convert(Computed(texts, tokens.__getitem__), folder / "queries")
    return World(scratch)


def found(world: World, steps: int) -> dict[str, dict[str, float]]:
    """NDCG of coarse proposals, mean pooled and of a trained stage 1."""
    test, length, plain = world.split("test"), world.features.facts.segment_clips, MeanPooling()
    index = segment_index(plain, test.features, length)
    retrieval = Retrieval(test.features, index, plain, None, length, PRESET.segments)
    pooled = run_of(retrieval.moments(test.queries, scored=False), test)
    limits = (f"loop.steps={steps}", "loop.epochs=1000000", f"loop.evaluate_every={-(-steps // 2)}")
    with tempfile.TemporaryDirectory() as scratch:
        train_model(
            "spr-stage1", world.features, train=world.pairs("train"), val=world.pairs("val"),
            out=Path(scratch), train_videos=world.videos("train"), val_videos=world.videos("val"),
            top=PRESET.top, overrides=[*SIZES["spr-stage1"], *limits],
        )  # fmt: skip
        trained = answer(
            Path(scratch), world.features, world.pairs("test"), videos=world.videos("test"),
            segments=PRESET.segments,
        )  # fmt: skip
    return {"mean pooled": judge(pooled, test), "trained stage 1": dict(trained.figures)}


if __name__ == "__main__":
    main()
