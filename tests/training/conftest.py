"""A toy world to train on: videos of a few events, whose clips look like their captions read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from moviola.datasets.features import Computed, convert
from moviola.training.data import FeatureFolder
from moviola.training.recipes import Split

EVENTS = ("opens a door", "takes a key", "drops a ball", "goes to the box", "waits", "turns around")
DIM = 16


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


def build_world(
    folder: Path, *, videos: int = 14, held_out: int = 4, subtitles: bool = False, seed: int = 0
) -> World:
    """Videos in which one event follows another for 2 to 6 seconds each, at one clip a second.

    An event has a vector; its clips are that vector with noise, the tokens of its query likewise. Half of
    the events' queries are imprecise: they are answered by the next event too, less well.
    """
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(len(EVENTS), DIM)).astype(np.float32)
    heard = draw.normal(size=(len(EVENTS), 6)).astype(np.float32)
    names = [f"v{number:02d}" for number in range(videos)]
    moments: list[tuple[str, float, float, int]] = []
    rows: dict[str, np.ndarray] = {}
    spoken: dict[str, np.ndarray] = {}
    for name in names:
        lengths = draw.integers(2, 7, size=int(draw.integers(3, 6)))
        events = draw.integers(len(EVENTS), size=len(lengths))
        clips = np.repeat(events, lengths)
        rows[name] = vectors[clips] + draw.normal(size=(len(clips), DIM)).astype(np.float32) / 3
        spoken[name] = heard[clips] + draw.normal(size=(len(clips), 6)).astype(np.float32) / 3
        ends = np.cumsum(lengths)
        moments += [
            (name, float(end - length), float(end), int(event))
            for event, length, end in zip(events, lengths, ends, strict=True)
        ]
    tokens = {
        f"the robot {event}": np.concatenate(
            [
                vectors[number] + draw.normal(size=(2 + number % 3, DIM)).astype(np.float32) / 3,
                vectors[[number]],
            ]
        ).astype(np.float32)
        for number, event in enumerate(EVENTS)
    }
    where = folder / "features"
    convert(Computed(tuple(names), rows.__getitem__), where / "visual")
    convert(Computed(tuple(tokens), tokens.__getitem__), where / "queries")
    if subtitles:
        convert(Computed(tuple(names), spoken.__getitem__), where / "subtitles")
    durations = {name: float(len(rows[name])) for name in names}
    about = {
        "clip_seconds": 1.0, "segment_clips": 4, "encoder": "toy", "encoder_revision": "1",
        "durations": durations,
    }  # fmt: skip
    (where / "features.json").write_text(json.dumps(about))
    world = World(folder, tuple(names[:-held_out]), tuple(names[-held_out:]))
    for part, own in (("train", world.train_videos), ("val", world.val_videos)):
        (folder / f"{part}.json").write_text(
            json.dumps(_pairs(moments, own, durations, graded=part == "val"))
        )
        (folder / f"{part}_videos.json").write_text(json.dumps(own))
    return world


def _pairs(
    moments: list[tuple[str, float, float, int]],
    videos: tuple[str, ...],
    durations: dict[str, float],
    *,
    graded: bool,
) -> list[dict[str, object]]:
    queries = []
    for number, event in enumerate(EVENTS):
        found = []
        for place, (video, start, end, other) in enumerate(moments):
            near = other == (number + 1) % len(EVENTS) and number % 2 == 0
            if video in videos and (other == number or near):
                row = {
                    "pair_id": place, "video_name": video, "timestamp": [start, end],
                    "duration": durations[video], "caption": f"the robot {EVENTS[other]}",
                    "similarity": 0.5 if near else 1.0,
                }  # fmt: skip
                found.append(row | ({"relevance": 2 if near else 4} if graded else {}))
        queries.append(
            {"query_id": number, "query": f"the robot {event}", "type": "v", "relevant_moment": found}
        )
    return queries


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Ten videos to learn from, four to be judged by."""
    return build_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def heard_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The same with subtitles."""
    return build_world(tmp_path_factory.mktemp("heard"), subtitles=True)
