"""Questions about videos, with one span, several, or none as answer."""

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
        video_id: the named video, or, for questions to the whole corpus, the one with the answer.
        windows: answers, (start, end) in seconds as annotated; empty: no answer.
        duration: of the video in seconds; infinite if the file has none.
        group: part of the benchmark; empty without parts.
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
    """The questions of a file, in its order, each id once, and the name of their benchmark."""

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
        """Each window as a moment whose caption is the question; one without an answer is among the flaws."""
        collector = Collector(self.name)
        for row in self.rows:
            collector.add_video(row.video_id, row.duration if math.isfinite(row.duration) else math.nan)
        for row in self.rows:
            if not row.windows:
                collector.add_unanswered(row.query_id, row.video_id)
            for place, (start, end) in enumerate(row.windows, start=1):
                name = row.query_id if len(row.windows) == 1 else f"{row.query_id}-{place}"
                collector.add(row.video_id, start, end, row.text, moment_id=name, query_id=row.query_id)
        return collector.made()
