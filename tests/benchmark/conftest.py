"""The toy world in the layout of a comparison."""

from __future__ import annotations

import json

import pytest

from moviola.benchmark.world import World
from toy_world import MANY_EVENTS, toy_world

VIDEOS = 20


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Twelve videos to learn from, two to choose by, six to be tested on; each split has its own moments."""
    folder, toy = tmp_path_factory.mktemp("world"), toy_world(VIDEOS, events=MANY_EVENTS)
    toy.write_features(folder / "features")
    world, films = World(folder), folder / "films"
    films.mkdir()
    (films / "gridhouse.json").write_text(json.dumps({"videos": VIDEOS, "seed": 0}))
    for split, file in (("train", "train_top40"), ("val", "val"), ("test", "test")):
        (films / f"{file}.json").write_text(json.dumps(toy.queries(world.videos(split))))
    return world
