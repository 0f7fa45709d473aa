"""Questions of a benchmark with their answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moviola.errors import InvalidValue
from moviola.study.measures.qrels_and_run import Flags, Floats
from moviola.temporal import overlap

__all__ = ["Answered", "CorpusAnswered", "greedy", "percent", "share"]

Rows = Sequence[Sequence[float]] | Floats
Values = Sequence[float] | Sequence[bool] | Floats | Flags
Seconds = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Answered:
    """A question about one video.

    Attributes:
        truths: (n, 2) float64, start and end of the true windows; n may be 0.
        windows: (m, 3) float64, start, end and score of the answered windows, best first; m may be 0. An end
            may come before its start.
        duration: of the video, seconds.
        sureness: confidence that there is an answer; None: the highest score.
    """

    truths: Floats
    windows: Floats
    duration: float = math.inf
    sureness: float | None = None

    @classmethod
    def of(
        cls, truths: Rows, windows: Rows, *, duration: float = math.inf, sureness: float | None = None
    ) -> Answered:
        """From rows [start, end] and [start, end, score].

        Raises:
            InvalidValue: rows of another form, a number that is not finite, or a true window that ends first.
        """
        made = cls(_table("truths", truths, 2), _table("windows", windows, 3), float(duration), sureness)
        for row in np.flatnonzero(made.truths[:, 1] < made.truths[:, 0]):
            window = made.truths[row].tolist()
            raise InvalidValue(f"truths, row {row + 1}: {window}: it ends before it starts")
        if sureness is not None and not math.isfinite(sureness):
            raise InvalidValue(f"sureness {sureness}: must be a finite number")
        return made

    @property
    def iou(self) -> Floats:
        """(m, n) float64: IoU of windows and truths."""
        start, end = self.windows[:, :1], self.windows[:, 1:2]
        return np.asarray(overlap(start, end, self.truths[:, 0], self.truths[:, 1]), np.float64)

    @property
    def first(self) -> float:
        """IoU of the first window with the best truth; 0 if either is missing."""
        iou = self.iou[:1]
        return float(iou.max()) if iou.size else 0.0


@dataclass(frozen=True, slots=True)
class CorpusAnswered:
    """A question to a whole corpus.

    Attributes:
        video_id, duration: the right video.
        truth: start and end of the answer, seconds.
        scores: of videos, higher is better; missing videos were not found.
        judged: the video in which the window was searched; empty if none.
        window: start and end of the answer; None without one.
        matched: the system's verdict that this is an answer; None without a verdict.
    """

    video_id: str
    truth: Seconds
    duration: float
    scores: Mapping[str, float]
    judged: str = ""
    window: Seconds | None = None
    matched: bool | None = None


def greedy(iou: Floats, threshold: float) -> list[float]:
    """IoU of the matches of ranked windows with truths, of (windows, truths) IoU.

    A match must reach the threshold; every one does where it is below 0 (forced).
    """
    free = np.ones(iou.shape[1], np.bool_)
    matches: list[float] = []
    for row in iou:
        if not free.any():
            break
        best = int(np.where(free, row, -1.0).argmax())
        if row[best] >= threshold:
            free[best] = False
            matches.append(float(row[best]))
    return matches


def share(values: Values) -> float:
    """Mean; 0 of nothing."""
    return float(np.mean(values)) if len(values) else 0.0


def percent(values: Values) -> float:
    """Mean in percent; 0 of nothing."""
    return 100 * share(values)


def _table(name: str, rows: Any, width: int) -> Floats:
    try:
        table = np.array([list(row)[:width] for row in rows], np.float64).reshape(len(rows), width)
    except (TypeError, ValueError):
        form = "[start, end]" if width == 2 else "[start, end, score]"
        raise InvalidValue(f"{name}: {rows!r:.60}: a list of {form} is expected") from None
    if not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        raise InvalidValue(f"{name}, row {row + 1}: {table[row].tolist()}: must be finite numbers")
    return table
