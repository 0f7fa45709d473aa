"""The toy world that tests train and search on: one generator, written in whatever layout a test reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.features import Computed, convert

EVENTS = ("opens a door", "takes a key", "drops a ball", "goes to the box", "waits", "turns around")
MANY_EVENTS = (*EVENTS, "closes a door", "drops a key", "picks up a ball", "opens the box")
"""Enough that a query has answers in some of the videos only."""
DIM, SUBTITLE_DIM = 16, 6

Arrays = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class ToyWorld:
    """Videos in which one event follows another, at one clip a second.

    Attributes:
        events: what happens; query number n is about event n and, if n is even, less about the next one too.
        vectors: (E, DIM) float32, an event's.
        visual: by video, (clips, DIM) float32, the vectors of its events with noise.
        subtitles: by video, (clips, SUBTITLE_DIM) float32, the same in the space of lines.
        tokens: by the text of a query, (tokens, DIM) float32, of which the last is its event's vector.
        moments: video, start and end in seconds, event.
    """

    events: tuple[str, ...]
    vectors: NDArray[np.float32]
    visual: Arrays
    subtitles: Arrays
    tokens: Arrays
    moments: tuple[tuple[str, float, float, int], ...]

    @property
    def durations(self) -> dict[str, float]:
        """Seconds by video."""
        return {name: float(len(rows)) for name, rows in self.visual.items()}

    def queries(self, videos: Sequence[str], *, graded: bool = True) -> list[dict[str, Any]]:
        """All queries with their moments in some videos, as TVR-Ranking writes them."""
        return [self._query(number, set(videos), graded) for number in range(len(self.events))]

    def _query(self, number: int, videos: set[str], graded: bool) -> dict[str, Any]:
        grades = {number: 4} | ({(number + 1) % len(self.events): 2} if number % 2 == 0 else {})
        answers = []
        for place, (video, start, end, event) in enumerate(self.moments):
            if video in videos and event in grades:
                row = {
                    "pair_id": place, "video_name": video, "timestamp": [start, end],
                    "duration": self.durations[video], "caption": text_of(self.events[event]),
                    "similarity": grades[event] / 4,
                }  # fmt: skip
                answers.append(row | ({"relevance": grades[event]} if graded else {}))
        text = text_of(self.events[number])
        return {"query_id": number, "query": text, "type": "v", "relevant_moment": answers}

    def write_features(self, folder: Path, *, subtitles: bool = False) -> None:
        """The folder that ``moviola features`` makes."""
        _write(self.visual, folder / "visual")
        _write(self.tokens, folder / "queries")
        if subtitles:
            _write(self.subtitles, folder / "subtitles")
        about = {
            "clip_seconds": 1.0, "segment_clips": 4, "encoder": "toy", "encoder_revision": "1",
            "durations": self.durations,
        }  # fmt: skip
        (folder / "features.json").write_text(json.dumps(about))


def text_of(event: str) -> str:
    """The caption of an event, which is also its query."""
    return f"the robot {event}"


def toy_world(videos: int, *, events: Sequence[str] = EVENTS, seed: int = 0) -> ToyWorld:
    """Videos v00, v01, ... of three to five events of 2 to 6 seconds each."""
    draw = np.random.default_rng(seed)
    vectors, sounds = (draw.normal(size=(len(events), dim)).astype(np.float32) for dim in (DIM, SUBTITLE_DIM))

    def noisy(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return rows + draw.normal(size=rows.shape).astype(np.float32) / 3

    moments: list[tuple[str, float, float, int]] = []
    visual: Arrays = {}
    subtitles: Arrays = {}
    for name in (f"v{number:02d}" for number in range(videos)):
        lengths = draw.integers(2, 7, size=int(draw.integers(3, 6)))
        shown = draw.integers(len(events), size=len(lengths))
        clips = np.repeat(shown, lengths)
        visual[name], subtitles[name] = noisy(vectors[clips]), noisy(sounds[clips])
        ends = np.cumsum(lengths)
        moments += [
            (name, float(end - length), float(end), int(event))
            for event, length, end in zip(shown, lengths, ends, strict=True)
        ]
    tokens = {
        text_of(event): np.concatenate([noisy(vectors[[number] * (2 + number % 3)]), vectors[[number]]])
        for number, event in enumerate(events)
    }
    return ToyWorld(tuple(events), vectors, visual, subtitles, tokens, tuple(moments))


def _write(arrays: Mapping[str, NDArray[np.float32]], folder: Path) -> None:
    convert(Computed(tuple(arrays), arrays.__getitem__), folder)
