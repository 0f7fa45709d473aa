"""A moment on its way to the answer."""

from __future__ import annotations

from dataclasses import dataclass

from moviola.types import Span

__all__ = ["Found"]


@dataclass(frozen=True, slots=True)
class Found:
    """A moment before ranking.

    Attributes:
        row: row number of its video in the catalogue.
        span: its time.
        score: in [0, 1].
        source: which evidence found it: ``"visual"``, ``"subtitle"`` or ``"both"``.
        snippet: what is said, where that is why.
        match: the matching score behind ``score``, which decides where that saturates.
    """

    row: int
    span: Span
    score: float
    source: str
    snippet: str = ""
    match: float = 0.0
