"""Queries drawn, their candidate moments in batches, and the guideline of raters (TVR-Ranking, 3.2, B).

Raters do not see a candidate's caption; its ``pair_id`` ties a rating to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from moviola.errors import InvalidValue

__all__ = ["BATCH", "GUIDELINE", "Pair", "draw_queries", "needs_second_batch", "next_pairs"]


def draw_queries(captions: Iterable[str], sizes: Mapping[str, int], seed: int) -> dict[str, dict[str, str]]:
    """Draw queries at random for splits such as val and test, without a text in two of them.

    Args:
        captions: of all moments; identical ones are one query.
        sizes: split to number of queries, >= 0.

    Returns:
        split to query id to text; ids are numbers over all splits, from 1.

    Raises:
        InvalidValue: more queries than different captions, or less than none; a seed below 0.
    """
    texts = list(dict.fromkeys(captions))
    wanted = sum(sizes.values())
    if wanted > len(texts):
        raise InvalidValue(f"{wanted} queries of {len(texts)} different captions: give a smaller number")
    if min(sizes.values(), default=0) < 0:
        raise InvalidValue(f"{dict(sizes)}: numbers of queries; give at least 0")
    if seed < 0:
        raise InvalidValue(f"seed {seed}: give at least 0")
    drawn = np.random.default_rng(seed).permutation(len(texts))[:wanted].tolist()
    numbered = ((str(number), texts[place]) for number, place in enumerate(drawn, start=1))
    return {name: dict(islice(numbered, size)) for name, size in sizes.items()}


BATCH = 20
"""Candidates per batch; at most two batches per query."""

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
        """In which batch of 20 by similarity the pair is; the first two are annotated."""
        return (self.rank - 1) // BATCH + 1

    def moment(self) -> dict[str, Any]:
        """The moment as TVR-Ranking's pair files have it."""
        return {
            "pair_id": self.pair_id, "video_name": self.video_name, "timestamp": [self.start, self.end],
            "duration": self.duration, "caption": self.caption,
        }  # fmt: skip


def needs_second_batch(relevance: Sequence[int], *, last: int = 5, threshold: float = 2.0) -> bool:
    """Whether a query's first batch ends with so much relevance that further moments are likely to matter.

    The paper leaves "very relevant" to the lead annotator; here it is a mean relevance of the ``last``
    candidates of at least ``threshold``. ``relevance`` holds the agreed levels in order of similarity.

    Raises:
        InvalidValue: fewer than ``last`` levels.
    """
    if len(relevance) < last:
        raise InvalidValue(f"{len(relevance)} levels: at least {last} are needed to judge the end of a batch")
    return float(np.mean(relevance[-last:])) >= threshold


def next_pairs(
    pairs: Iterable[Pair], agreed: Mapping[str, int], *, last: int = 5, threshold: float = 2.0
) -> list[Pair]:
    """Second batches of the queries whose first batch, as agreed, still ends very relevant.

    Args:
        pairs: both batches of candidates.
        agreed: levels by pair id; pairs without agreement are left out of the judgement.
        last, threshold: see :func:`needs_second_batch`.
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
