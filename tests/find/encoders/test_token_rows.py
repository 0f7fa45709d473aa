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
from moviola.encoders import load_encoder, towers
from moviola.encoders.token_rows import SHARED_ROWS, TokenRows, rounded_up


@given(st.integers(1, 30), st.lists(st.integers(0, 7), min_size=1, max_size=12))
def test_packed_rows_are_spread_again(longest: int, shorter: list[int]) -> None:
    """Short texts share blocks, others have their own."""
    block = rounded_up(longest)
    lengths = sorted(
        max(1, longest - less) for less in shorter if rounded_up(max(1, longest - less)) == block
    )
    lengths.append(longest)
    tokens = TokenRows.of(np.array(lengths))
    ids = np.zeros((len(lengths), longest), np.int64)
    for row, length in enumerate(lengths):
        ids[row, :length] = 100 * (row + 1) + np.arange(length)
    rows = tokens.packed(ids)
    assert tokens.count % block == 0 and len(rows) == tokens.count
    np.testing.assert_array_equal(tokens.spread(rows[:, None].astype(np.float32), longest)[..., 0], ids)
    if block == SHARED_ROWS:
        assert tokens.count - sum(lengths) < SHARED_ROWS
    else:
        for block_rows in rows.reshape(-1, block):
            assert len(set(block_rows[block_rows > 0] // 100)) == 1


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
