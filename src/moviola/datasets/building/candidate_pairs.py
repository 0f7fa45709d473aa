"""Candidate moments of each query, in batches, and the guideline of raters (TVR-Ranking, section 3.2, B).

Raters do not see a candidate's caption; its ``pair_id`` ties a rating to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moviola.datasets.building.pseudo import BATCH, needs_second_batch

__all__ = ["GUIDELINE", "Pair", "next_pairs"]

GUIDELINE: Mapping[int, str] = {
    4: "Perfect: exactly what the query says happens, well in view, and the moment is no longer than it.",
    3: "Good: it happens, but a detail differs or something else is in the moment too.",
    2: "Partly: only a part of the query happens, or much of it is out of view or cut off.",
    1: "Little: some things or people of the query are there, but the main action is another.",
    0: "Unrelated. A person who does nothing of what the query says counts as unrelated.",
}
"""What the levels mean, for raters."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a moment that may answer it; ``rank`` from 1 by falling similarity; times in seconds."""

    pair_id: str
    query_id: str
    query: str
    video_name: str
    start: float
    end: float
    duration: float
    caption: str
    similarity: float
    rank: int

    @property
    def batch(self) -> int:
        """In which batch the pair is annotated, 1 or 2."""
        return (self.rank - 1) // BATCH + 1

    def moment(self) -> dict[str, Any]:
        """The moment as TVR-Ranking's pair files have it."""
        return {
            "pair_id": self.pair_id, "video_name": self.video_name, "timestamp": [self.start, self.end],
            "duration": self.duration, "caption": self.caption,
        }  # fmt: skip


def next_pairs(
    pairs: Iterable[Pair], agreed: Mapping[str, int], *, last: int = 5, threshold: float = 2.0
) -> list[Pair]:
    """Second batches of the queries whose first batch, as agreed, still ends very relevant.

    Args:
        pairs: both batches of candidates.
        agreed: levels by pair id; pairs without agreement are left out of the judgement.
        last, threshold: see :func:`~moviola.datasets.building.pseudo.needs_second_batch`.
    """
    by_query: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_query.setdefault(pair.query_id, []).append(pair)
    wanted: list[Pair] = []
    for mine in by_query.values():
        first = sorted((pair for pair in mine if pair.batch == 1), key=lambda pair: pair.rank)
        levels = [agreed[pair.pair_id] for pair in first if pair.pair_id in agreed]
        if len(levels) >= last and needs_second_batch(levels, last=last, threshold=threshold):
            wanted.extend(pair for pair in mine if pair.batch == 2)
    return wanted
