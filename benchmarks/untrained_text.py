"""What stage 1 adds to mean-pooled CLIP, with the encoder's own queries and with ones that know nothing.

    python benchmarks/untrained_text.py WORK

WORK is the folder of a `moviola benchmark gridhouse --preset full` run: its films and features are used. The
demo encoder has learned gridhouse's words; a text tower of the same shape with random weights has not. For
each, mean-pooled CLIP and a stage 1 trained on the training films answer the test queries with coarse
proposals. It takes a minute.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table

from moviola.benchmark.plan import PRESETS, SIZES
from moviola.benchmark.world import World
from moviola.datasets.features import Computed, convert
from moviola.encoders import load_encoder
from moviola.models.spr import SegmentRetriever
from moviola.training.data import FeatureFolder
from moviola.training.recipes import judge, read_settings, train
from moviola.training.registry import recipe
from moviola.training.segments import SegmentGrid, coarse_run, mean_pooled, proposals_of, propose_for
from spine import untrained

MEASURES = tuple(f"nDCG@20,IoU>={overlap}" for overlap in (0.3, 0.5, 0.7))
FULL = PRESETS["full"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("work", type=Path, help="folder of a comparison with the demo encoder")
    parser.add_argument("--steps", type=int, default=FULL.steps["spr-stage1"])
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
    texts = tuple(there.queries.keys())
    tokens = dict(
        zip(texts, load_encoder(str(untrained(scratch / "clip"))).encode_tokens(texts), strict=True)
    )
    convert(Computed(texts, tokens.__getitem__), folder / "queries")
    return World(scratch)


def found(world: World, steps: int) -> dict[str, dict[str, float]]:
    """NDCG of coarse proposals, mean pooled and of a trained stage 1."""
    test, how = world.split("test"), recipe("spr-stage1")
    grid = SegmentGrid.of(test.clips, world.features.segment_clips)
    queries = F.normalize(test.queries.vectors, dim=-1)
    pooled = proposals_of(queries, mean_pooled(grid), grid, count=FULL.segments)
    settings = read_settings(how, overrides=SIZES["spr-stage1"])
    loop = replace(settings.loops["train"], steps=steps, epochs=1_000_000, evaluate_every=-(-steps // 2))
    settings = replace(settings, loops={"train": loop})
    trained = train(how, world.split("train", FULL.top), world.split("val"), settings)
    proposals = propose_for(cast("SegmentRetriever", trained.model), test, count=FULL.segments)
    return {
        "mean pooled": judge(coarse_run(pooled, test.queries.query_ids), test),
        "trained stage 1": judge(coarse_run(proposals, test.queries.query_ids), test),
    }


if __name__ == "__main__":
    main()
