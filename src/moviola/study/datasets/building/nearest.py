"""Sentence embeddings of captions, and the nearest captions of many queries (TVR-Ranking, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.study.measures.matching import spread
from moviola.types import require_positive

__all__ = ["TextEncoder", "embed", "nearest", "unit_rows"]


class TextEncoder(Protocol):
    """A sentence encoder, as far as building a data set needs it."""

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings of texts, (n, d) float32."""


def embed(texts: Sequence[str], encoder: TextEncoder) -> NDArray[np.float32]:
    """Embeddings of texts, (n, d) float32; equal texts are encoded once and have equal rows."""
    row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return encoder.encode_text(list(row_of))[[row_of[text] for text in texts]]


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1, (n, d) float32; a row of zeros stays."""
    scaled: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled


def nearest(
    queries: NDArray[np.float32], captions: NDArray[np.float32], top: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ``top`` captions of each query by cosine; exact, in bounded memory.

    Captions with the same embedding are compared once, so they have the same similarity to the last bit on
    every machine, and keep their order.

    Args:
        queries, captions: (q, d) and (c, d) float32, L2-normalised.
        top: maximum number of captions, >= 1.

    Returns:
        positions (q, t) int64 and similarities (q, t) float32 in [-1, 1] but for rounding, which fall.

    Raises:
        InvalidValue: dimensions differ, or ``top`` is below 1.
    """
    if queries.ndim != 2 or captions.ndim != 2 or queries.shape[1] != captions.shape[1]:
        raise InvalidValue(f"queries {queries.shape} and captions {captions.shape}: give (q, d) and (c, d)")
    require_positive(top=top)
    depth = min(top, len(captions))
    if not depth or not len(queries):
        return np.empty((len(queries), depth), np.int64), np.empty((len(queries), depth), np.float32)
    import faiss

    places: dict[bytes, int] = {}
    group = np.array([places.setdefault(row.tobytes(), len(places)) for row in captions])
    count = np.bincount(group)
    members = np.argsort(group, kind="stable")
    first = np.cumsum(count) - count
    similarity, found = faiss.knn(
        np.ascontiguousarray(queries), captions[members[first]], min(depth, len(first)),
        metric=faiss.METRIC_INNER_PRODUCT,
    )  # fmt: skip
    # Each group brings in its members until the row is full.
    taken = np.minimum(np.cumsum(count[found], axis=1), depth)
    times = np.diff(taken, axis=1, prepend=0).ravel()
    positions = members[np.repeat(first[found.ravel()], times) + spread(times)]
    return positions.reshape(-1, depth), np.repeat(similarity.ravel(), times).reshape(-1, depth)
