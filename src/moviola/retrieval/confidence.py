"""Whether a library has an answer to a query at all: its nearest segments, as unrelated queries see them.

However little a library holds of what is asked, one of its segments is the nearest. How well it matches is
told by comparison: the query's cosine with a segment is set against those of some two hundred queries about
everything (``unrelated_queries.txt``), in their standard deviations, all of them as the index has them. The
most that comes of its :data:`NEAREST` segments is the query's *lead*. What leads mean depends on encoder and
library, so each of the unrelated queries has one too, with its own nearest segments: a query that cannot be
answered leads about as far as they do. An answer is confident if its lead is above a quantile of theirs, the
*level*. In a library of everything many of them have true answers and lead far; so no more is asked than
:data:`ENOUGH`.

Levels are chosen so that of queries with answers at most some 5 % are refused; ``benchmarks/no_match``
measures that, and how many of those without: nine of ten by an encoder that knows its world, a quarter by one
that knows as little of footage as ConSE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures
from moviola.retrieval.pipeline import Retrieval
from moviola.retrieval.proposals import Hits

__all__ = ["ENOUGH", "LEVELS", "NEAREST", "Unrelated", "level_of", "unrelated_queries"]

NEAREST = 5
"""Segments that are compared."""

ENOUGH = 3.0
"""A lead, in standard deviations, that is confident in any library."""

LEVELS: dict[str, float] = {"demo": 0.9, "conse-lite0": 0.15, "conse-lite1": 0.15, "conse-lite2": 0.15}
"""Share of the unrelated queries that must lead less far, by the encoder's id."""

# For encoders that were not measured: rather show what is wrong than hide what is right.
_LEVEL = 0.25


def level_of(encoder: str) -> float:
    """The level for an encoder, by its id."""
    return LEVELS.get(encoder, _LEVEL)


@cache
def unrelated_queries() -> tuple[str, ...]:
    """Queries about everything."""
    text = Path(__file__).with_name("unrelated_queries.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


@dataclass(frozen=True)
class Unrelated:
    """Unrelated queries in a library.

    Attributes:
        vectors: (m, d) float32, L2-normalised, among the segments of its index.
        leads: (m,) float64, of each with its nearest segments.
    """

    vectors: NDArray[np.float32]
    leads: NDArray[np.float64]

    @classmethod
    def of(cls, retrieval: Retrieval, vectors: NDArray[np.float32]) -> Unrelated:
        """Search for each of them in a library that holds a segment.

        Args:
            retrieval: over the library.
            vectors: see above.
        """
        rows = list(vectors.astype(np.float16))
        names = [""] * len(rows)
        queries = QueryFeatures.of(names, names, rows).among_segments(vectors)
        nobody = cls(vectors, np.empty(0))
        return cls(vectors, nobody.leads_of(retrieval, retrieval.hits(queries, segments=NEAREST)))

    def leads_of(self, retrieval: Retrieval, hits: Hits) -> NDArray[np.float64]:
        """(Q,) float64, the leads of queries with their first :data:`NEAREST` hits; -inf without a hit."""
        if not hits.score.shape[1]:
            return np.full(len(hits.score), -np.inf)
        others = retrieval.cosines(self.vectors, hits.video[:, :NEAREST], hits.position[:, :NEAREST])
        ahead = (hits.score[:, :NEAREST] - others.mean(axis=0)) / np.maximum(others.std(axis=0), 1e-6)
        return np.asarray(ahead.max(axis=1), dtype=np.float64)

    def confident(self, leads: Sequence[float] | NDArray[np.float64], level: float) -> NDArray[np.bool_]:
        """(Q,) bool, whether such leads are those of queries with an answer."""
        asked = min(float(np.quantile(self.leads, level)), ENOUGH)
        found: NDArray[np.bool_] = np.asarray(leads, dtype=np.float64) >= asked
        return found
