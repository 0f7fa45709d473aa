"""Features of queries: one row per token, the last row for the whole text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.features.shards import halves
from moviola.features.videos import Integers, floats

__all__ = ["MAX_TOKENS", "QueryFeatures"]

MAX_TOKENS = 30
"""Maximum tokens of a query in training; of a longer query the first ones and the last one."""


@dataclass(frozen=True)
class QueryFeatures:
    """Queries with the features of their tokens, in half precision.

    Attributes:
        query_ids: of Q queries.
        rows: (n, d) float16 each, n >= 1, one row per token; the last row stands for the whole text. A query
            without tokens has that one row.
        max_tokens: maximum tokens returned by :meth:`tokens`.
        segment_vectors: (Q, d') float32, L2-normalised, in the space of an index's segments, for queries that
            are no texts and that stage 1 cannot embed; None for texts.
        unit: normalise each row, see :class:`moviola.features.videos.VideoFeatures`.
    """

    query_ids: tuple[str, ...]
    texts: tuple[str, ...]
    rows: tuple[NDArray[np.float16], ...]
    max_tokens: int = MAX_TOKENS
    unit: bool = True
    segment_vectors: NDArray[np.float32] | None = None

    @classmethod
    def of(
        cls,
        query_ids: Sequence[str],
        texts: Sequence[str],
        rows: Sequence[NDArray[np.floating[Any]]],
        *,
        unit: bool = True,
    ) -> QueryFeatures:
        """From an encoder's output: (n, d) of each text, or (d,) where it is one vector per text."""
        given = tuple(
            halves(np.atleast_2d(array), f"query {text!r}") for array, text in zip(rows, texts, strict=True)
        )
        return cls(tuple(query_ids), tuple(texts), given, unit=unit)

    @classmethod
    def joined(cls, parts: Sequence[QueryFeatures]) -> QueryFeatures:
        """Queries of several parts, >= 1, in their order; all or none have :attr:`segment_vectors`."""
        first = parts[0]
        if len(parts) == 1:
            return first
        columns = zip(*((part.query_ids, part.texts, part.rows) for part in parts), strict=True)
        ids, texts, rows = (tuple(chain.from_iterable(column)) for column in columns)
        own = [part.segment_vectors for part in parts if part.segment_vectors is not None]
        among = np.concatenate(own) if own else None
        return replace(first, query_ids=ids, texts=texts, rows=rows, segment_vectors=among)

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def dim(self) -> int:
        """Numbers in a row; 0 without queries."""
        return self.rows[0].shape[1] if self.rows else 0

    def tokens(self, query: int) -> NDArray[np.float32]:
        """(n, d) float32 of a query by place; of more than ``max_tokens`` the first ones and the last one."""
        rows, most = floats(self.rows[query], self.unit), self.max_tokens
        return rows if len(rows) <= most else np.concatenate([rows[: most - 1], rows[-1:]])

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(Q, d) float32, one vector per query: the row of its whole text."""
        if not self.rows:
            return np.empty((0, 0), np.float32)
        return floats(np.stack([rows[-1] for rows in self.rows]), self.unit)

    def cut(self, max_tokens: int) -> QueryFeatures:
        """The same with at most this many tokens, for a model with fewer positions."""
        return self if max_tokens >= self.max_tokens else replace(self, max_tokens=max_tokens)

    def among_segments(self, vectors: NDArray[np.float32]) -> QueryFeatures:
        """The same with :attr:`segment_vectors`."""
        return replace(self, segment_vectors=vectors)

    def with_vectors(self, vectors: NDArray[np.float32]) -> QueryFeatures:
        """The same queries with other vectors (Q, d), and without tokens."""
        return QueryFeatures.of(self.query_ids, self.texts, list(vectors), unit=self.unit)

    def select(self, queries: Sequence[int] | Integers) -> QueryFeatures:
        """Some of the queries by place, in the order given."""
        places = np.asarray(queries, dtype=np.int64).tolist()
        columns = (self.query_ids, self.texts, self.rows)
        ids, texts, rows = (tuple(column[place] for place in places) for column in columns)
        own = None if self.segment_vectors is None else self.segment_vectors[places]
        return replace(self, query_ids=ids, texts=texts, rows=rows, segment_vectors=own)
