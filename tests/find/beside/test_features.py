"""Texts have the same features alone and among others, by the encoders that the package carries."""

from __future__ import annotations

import pytest

from among_others import require_the_same_alone
from moviola.encoders import load_encoder, load_sentence_encoder


@pytest.mark.parametrize("name", ["demo", "minilm"])
def test_a_text_has_the_same_features_alone_and_among_others(name: str) -> None:
    """A product's last bits depend on its number of rows: no text may share one with another."""
    load = load_sentence_encoder if name == "minilm" else load_encoder
    require_the_same_alone(lambda: load(name, device="cpu"))
