"""The toy world in the layout of a comparison."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from comparison import lines
from comparison.bench import Bench
from comparison.plan import Budget, Preset
from comparison.world import World
from moviola.study.training.data import Split
from moviola.study.training.recipes import RECIPES
from toy_world import MANY_EVENTS, toy_world

VIDEOS, QUERIES = 20, len(MANY_EVENTS)
SMALLER = ("model.hidden_size=16", "model.heads=2")
FEW = "sampling.strong=2"
PHASES = {"prem": ("retriever", "localizer")}


def _budget(recipe: str, steps: int) -> Budget:
    phases = PHASES.get(recipe, ("loop",))
    return Budget(dict.fromkeys(phases, steps), dict.fromkeys(phases, 8))


@pytest.fixture(scope="session")
def toy() -> Preset:
    """An effort of seconds."""
    steps = dict.fromkeys(RECIPES, 4) | {"reel": 60}
    return Preset(
        videos=VIDEOS,
        queries=QUERIES,
        films=0,
        tops=(20,),
        top=20,
        seeds=(0,),
        segments=6,
        budgets={recipe: _budget(recipe, count) for recipe, count in steps.items()},
        sizes={
            "spr-stage1": ("model.layers=1",),
            "spr-clip": ("model.layers=1", FEW),
            "spr-relo": (*SMALLER, FEW),
            "spr-relo-large": (*SMALLER, FEW),
            "reel-stage1": SMALLER,
            "reel": SMALLER,
            "xml": ("model.hidden_size=16",),
            "reloclnet": SMALLER,
            "conquer": (*SMALLER, "model.feed_forward_size=32", "sampling.negatives=2"),
            "prem": (*SMALLER, "model.feed_forward_size=32", "sampling.negatives=2"),
        },
        studies=False,
    )


def write_world(folder: Path) -> World:
    """Twelve videos to learn from, two to choose by, six to be tested on; each split has its own moments."""
    toy, films = toy_world(VIDEOS, events=MANY_EVENTS), folder / "films"
    toy.write_features(folder / "features", subtitles=True)
    world = World(folder, queries=QUERIES)
    films.mkdir()
    (films / "gridhouse.json").write_text(json.dumps({"videos": VIDEOS, "seed": 0}))
    for split in ("train", "val", "test"):
        rows = toy.queries(world.videos(split))
        ids = [{**row, "query_id": f"{split}-{row['query_id']}"} for row in rows]
        world.pairs(split).write_text(json.dumps(ids))
    return world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world of toys."""
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def bench(toy: Preset, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A comparison whose worlds are there and whose pieces are not."""
    bench = Bench(tmp_path_factory.mktemp("comparison"), toy)
    write_world(bench.world("report").folder)
    return bench


@pytest.fixture
def lines_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each subtitle line is near to a query by chance, since a toy's queries and subtitles share no space."""

    def cosines(split: Split) -> NDArray[np.float32]:
        shape = len(split.queries), len(lines.lines_of(split))
        return np.random.default_rng(0).random(shape, dtype=np.float32)

    monkeypatch.setattr(lines, "_cosines", cosines)
