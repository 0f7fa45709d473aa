"""Embeddings of sentences: each text encoded once, rows of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["TextEncoder", "embed", "unit_rows"]


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
