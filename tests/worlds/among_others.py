"""Texts of all lengths, and batches of them: no encoder's features may depend on which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

WORDS = "a the red blue green robot picks up key ball box in room opens door zebra crossing street".split()  # noqa: SIM905

_generator = np.random.default_rng(0)

TEXTS = (
    *(" ".join(_generator.choice(WORDS, length)) for length in (*range(15), 18, 23, 90)),
    "Blue BALL, in the room!", "漢字 ünïcode", "\u200b", "robot", "a red box",
)  # fmt: skip


def batches() -> Iterator[list[str]]:
    """Few texts and many, of one length and of different ones, in several orders, some of them twice."""
    yield list(TEXTS)
    yield [text for text in reversed(TEXTS) for _ in range(2)]
    generator = np.random.default_rng(1)
    for count in (2, 3, 5, 9, 16):
        yield [TEXTS[place] for place in generator.permutation(len(TEXTS))[:count]]


def require_the_same_alone(load: Any) -> None:
    """Features of texts and of their tokens are equal to the bit in all batches.

    Args:
        load: opens the encoder: one that was used before may still have its answers.
    """
    encoder = load()
    texts = {text: encoder.encode_text([text])[0] for text in TEXTS}
    tokens = {text: encoder.encode_tokens([text])[0] for text in TEXTS}
    for text in TEXTS:
        np.testing.assert_array_equal(tokens[text][-1], texts[text], err_msg=text)
    for batch in batches():
        others = load()
        for text, vector, rows in zip(
            batch, others.encode_text(batch), others.encode_tokens(batch), strict=True
        ):
            np.testing.assert_array_equal(vector, texts[text], err_msg=f"{text!r} among {len(batch)}")
            np.testing.assert_array_equal(rows, tokens[text], err_msg=f"{text!r} among {len(batch)}")
