"""Tokens of texts in blocks: each where it belongs, and no text's product by another's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from among_others import require_the_same_alone
from moviola.encoders import load_encoder, load_sentence_encoder, towers
from moviola.encoders.sentences import SentenceEncoder
from moviola.encoders.token_rows import SHARED_ROWS, TokenRows, rounded_up


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_packed_rows_are_spread_again(lengths: list[int]) -> None:
    """Short texts share blocks, others have their own."""
    lengths = sorted(lengths)
    tokens = TokenRows.of(np.array(lengths))
    ids = np.zeros((len(lengths), lengths[-1]), np.int64)
    for row, length in enumerate(lengths):
        ids[row, :length] = 100 * (row + 1) + np.arange(length)
    rows = tokens.packed(ids)
    np.testing.assert_array_equal(tokens.spread(rows[:, None].astype(np.float32), lengths[-1])[..., 0], ids)
    assert sum(len(rows[own]) for _, own in tokens.blocks) == len(rows)
    for block, own in tokens.blocks:
        texts = [set(block_rows[block_rows > 0] // 100) for block_rows in rows[own].reshape(-1, block)]
        assert {rounded_up(lengths[text - 1]) for its in texts for text in its} == {block}
        assert all(len(its) == 1 for its in texts[: None if block > SHARED_ROWS else 0])


def test_texts_that_are_expected_go_through_the_weights_with_the_next_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes: list[int] = []
    states = SentenceEncoder._network_states

    def counted(self: Any, weights: Any, ids: Any, present: Any) -> Any:
        passes.append(len(ids))
        return states(self, weights, ids, present)

    monkeypatch.setattr(SentenceEncoder, "_network_states", counted)
    encoder = load_sentence_encoder("minilm", device="cpu")
    short, long = "a dog barks", "the sound of a dog that barks at night far away"
    encoder.expect([long])
    assert passes == []
    one, other = encoder.encode_text([short])[0], encoder.encode_text([long])[0]
    assert passes == [2]
    alone = load_sentence_encoder("minilm", device="cpu").encode_text
    assert np.array_equal(alone([long])[0], other) and np.array_equal(alone([short])[0], one)


@pytest.mark.parametrize("tokens", [1, 4, 8, 9, 12, 13, 77])
def test_a_block_has_room_for_its_text(tokens: int) -> None:
    block = rounded_up(tokens)
    assert block >= max(tokens, SHARED_ROWS) and block % 4 == 0 and block - tokens < SHARED_ROWS


def test_where_the_place_in_a_block_matters_rows_are_multiplied_one_by_one(
    make_clip: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A BLAS that is not known here may compute the rows of a block in different ways."""
    folder = str(make_clip())
    before = load_encoder(folder, device="cpu").encode_text(["a red box"])

    def by_place(weight: Any, rows: Any, block: int) -> Any:
        products = rows.reshape(-1, block, rows.shape[1]) @ weight.T
        return products * (1 + np.float32(1e-6) * np.arange(block, dtype=np.float32)[:, None])

    monkeypatch.setattr(towers, "_SAME", {})
    monkeypatch.setattr(towers, "_products", by_place)
    require_the_same_alone(lambda: load_encoder(folder, device="cpu"))
    assert set(towers._SAME.values()) == {False}
    np.testing.assert_allclose(
        load_encoder(folder, device="cpu").encode_text(["a red box"]), before, atol=1e-5
    )
