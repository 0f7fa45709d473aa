"""Features of texts that were asked before: equal ones, computed once, and no more than there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.encoders.kept_texts import KeptTexts


class Counting:
    """An encoder that notes what it encodes; equal ones are not the same."""

    def __init__(self, revision: str) -> None:
        self.revision, self.encoded = revision, list[str]()

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += texts
        return np.array([[len(text), len(self.revision)] for text in texts], np.float32)

    def encode_tokens(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return [np.full((len(text), 2), 7, np.float32) for text in texts]


def read(kept: KeptTexts, encoder: Any, *texts: str) -> list[list[float]]:
    return [row.tolist() for row in kept.vectors(encoder, texts)]


def test_a_text_is_encoded_once_by_each_encoder() -> None:
    kept, one, other = KeptTexts(), Counting("a"), Counting("bb")
    assert read(kept, one, "x", "yy", "x") == [[1, 1], [2, 1], [1, 1]]
    assert read(kept, one, "yy", "zzz") == [[2, 1], [3, 1]]
    assert one.encoded == ["x", "yy", "zzz"]
    assert read(kept, other, "x") == [[1, 2]]
    tokens: Any = one
    assert [rows.shape for rows in kept.tokens(tokens, ["x", "yy"])] == [(1, 2), (2, 2)]
    with pytest.raises(ValueError, match="read-only"):
        kept.vectors(tokens, ["x"])[0][0] = 5


def test_those_that_were_asked_last_stay() -> None:
    """Bytes are counted as texts come and go, and asked again: room for three rows of eight bytes."""
    kept, encoder = KeptTexts(most_bytes=24), Counting("a")
    for text in ("one", "two", "one", "three", "one", "four", "one", "two"):
        read(kept, encoder, text)
    assert encoder.encoded == ["one", "two", "three", "four", "two"]
    assert read(kept, encoder, *"abcdefg") == [[1, 1]] * 7, "more at once than there is room for"
