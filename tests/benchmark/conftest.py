"""A toy world in the layout of a comparison: twenty videos of three events each, one clip a second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.benchmark.world import World
from moviola.datasets.features import Computed, convert

VIDEOS, EVENTS, DIM = 20, 10, 16


def build_world(folder: Path, *, seed: int = 0) -> World:
    """Every event looks like its query reads; each other query is answered by the next event too, less well.

    The films belong to the splits by number, 60 : 10 : 30, and each split's file has its own moments alone.
    """
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(EVENTS, DIM)).astype(np.float32)
    names = [f"v{number:02d}" for number in range(VIDEOS)]
    rows: dict[str, Any] = {}
    moments: list[tuple[str, float, float, int]] = []
    for name in names:
        lengths, events = draw.integers(3, 9, size=3), draw.choice(EVENTS, 3, replace=False)
        clips = np.repeat(events, lengths)
        rows[name] = vectors[clips] + draw.normal(size=(len(clips), DIM)).astype(np.float32) / 3
        ends = np.cumsum(lengths)
        moments += [
            (name, float(end - length), float(end), int(event))
            for event, length, end in zip(events, lengths, ends, strict=True)
        ]
    tokens = {f"event {event}": np.stack([draw.normal(size=DIM), vectors[event]]) for event in range(EVENTS)}
    features, films = folder / "features", folder / "films"
    convert(Computed(tuple(names), rows.__getitem__), features / "visual")
    convert(Computed(tuple(tokens), lambda text: tokens[text].astype(np.float32)), features / "queries")
    about = {
        "clip_seconds": 1.0, "segment_clips": 4, "encoder": "toy", "encoder_revision": "1",
        "durations": {name: float(len(rows[name])) for name in names},
    }  # fmt: skip
    (features / "features.json").write_text(json.dumps(about))
    films.mkdir()
    (films / "gridhouse.json").write_text(json.dumps({"videos": VIDEOS, "seed": seed}))
    world = World(folder)
    for split, file in (("train", "train_top40"), ("val", "val"), ("test", "test")):
        (films / f"{file}.json").write_text(json.dumps(_queries(moments, world.videos(split))))
    return world


def _queries(moments: list[tuple[str, float, float, int]], videos: list[str]) -> list[dict[str, Any]]:
    def answers(query: int) -> list[dict[str, Any]]:
        grades = {query: 4} | ({(query + 1) % EVENTS: 2} if query % 2 == 0 else {})
        return [
            {
                "video_name": video, "timestamp": [start, end], "caption": f"event {event}",
                "similarity": grades[event] / 4, "relevance": grades[event],
            }
            for video, start, end, event in moments
            if video in videos and event in grades
        ]  # fmt: skip

    return [
        {"query_id": query, "query": f"event {query}", "relevant_moment": answers(query)}
        for query in range(EVENTS)
    ]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Twelve videos to learn from, two to choose by, six to be tested on."""
    return build_world(tmp_path_factory.mktemp("world"))
