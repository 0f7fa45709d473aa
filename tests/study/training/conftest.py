"""The toy world to train on, with and without subtitles."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from moviola.features import FeatureFolder
from moviola.study.training.data import Split
from toy_world import toy_world


@dataclass(frozen=True)
class World:
    """A folder with ``features``, ``train.json``, ``val.json`` and lists of videos beside them."""

    folder: Path
    train_videos: tuple[str, ...]
    val_videos: tuple[str, ...]

    @property
    def features(self) -> FeatureFolder:
        return FeatureFolder.open(self.folder / "features")

    @property
    def train(self) -> Split:
        return Split.read(self.features, self.folder / "train.json", self.train_videos)

    @property
    def val(self) -> Split:
        return Split.read(self.features, self.folder / "val.json", self.val_videos)


def build_world(folder: Path, *, subtitles: bool = False) -> World:
    """Ten videos to learn from, whose moments have no grades; four to be judged by."""
    toy = toy_world(videos=14)
    names = tuple(toy.durations)
    toy.write_features(folder / "features", subtitles=subtitles)
    world = World(folder, names[:10], names[10:])
    for part, own in (("train", world.train_videos), ("val", world.val_videos)):
        (folder / f"{part}.json").write_text(json.dumps(toy.queries(own, graded=part == "val")))
        (folder / f"{part}_videos.json").write_text(json.dumps(own))
    return world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The world."""
    return build_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def heard_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The same with subtitles."""
    return build_world(tmp_path_factory.mktemp("heard"), subtitles=True)
