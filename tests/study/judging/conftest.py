"""Tasks to judge, without a library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.judging import JudgingTask, TaskSettings


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def made_pairs(queries: int, moments: int) -> list[Pair]:
    """``moments`` candidates for each query, in one video."""
    return [
        Pair(f"{q}:{m}", str(q), f"Query {q}?", f"film {m % 3}", m, m + 0.5, 100.0, "", 1 / m, m)
        for q in range(1, queries + 1)
        for m in range(1, moments + 1)
    ]


@pytest.fixture
def clock() -> Clock:
    """The clock of the tasks."""
    return Clock()


@pytest.fixture
def new_task(tmp_path: Path, clock: Clock) -> Callable[..., JudgingTask]:
    """``new_task(queries=2, moments=3, raters=2)``: a task that nobody has judged."""

    def make(queries: int = 1, moments: int = 3, **settings: int) -> JudgingTask:
        path = tmp_path / "task.sqlite"
        return JudgingTask.create(path, made_pairs(queries, moments), TaskSettings(**settings), clock=clock)

    return make
