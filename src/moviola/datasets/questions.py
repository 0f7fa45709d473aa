"""Questions about videos with what answers them: one span, several, or none."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moviola.datasets.annotations import Annotations, Collector

__all__ = ["Question", "Questions"]

Seconds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a public benchmark.

    Attributes:
        query_id: unique in its file.
        text: what is asked.
        video_id: the video that is named, or that holds the answer where the whole corpus is asked.
        windows: what answers it, (start, end) in seconds as annotated; empty: nothing does.
        duration: of the video in seconds; infinite where the file does not say.
        group: the part of the benchmark that it belongs to; empty where there are none.
        picture: a picture or a video that belongs to the question; None for words alone.
    """

    query_id: str
    text: str
    video_id: str
    windows: tuple[Seconds, ...]
    duration: float = math.inf
    group: str = ""
    picture: Path | None = None


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a file, in its order, each id once.

    Attributes:
        name: of the benchmark.
        rows: the questions.
    """

    name: str
    rows: tuple[Question, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.rows)

    @property
    def videos(self) -> tuple[str, ...]:
        """All videos that are named, each once."""
        return tuple(dict.fromkeys(row.video_id for row in self.rows))

    def annotations(self) -> Annotations:
        """Each window as a moment whose caption is the question; questions without an answer have none."""
        collector = Collector(self.name)
        for row in self.rows:
            collector.add_video(row.video_id, row.duration if math.isfinite(row.duration) else math.nan)
        for row in self.rows:
            for place, (start, end) in enumerate(row.windows, start=1):
                name = row.query_id if len(row.windows) == 1 else f"{row.query_id}-{place}"
                collector.add(row.video_id, start, end, row.text, moment_id=name)
        return collector.made()
