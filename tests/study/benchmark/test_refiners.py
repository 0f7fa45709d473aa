"""The cost of refiners: every system answers, and what is kept changes no span."""

from __future__ import annotations

import numpy as np

import refiners


def test_every_system_is_timed_on_the_same_proposals() -> None:
    draw = np.random.default_rng(0)
    features, queries = refiners.made_up(4, draw)
    corpus = refiners.proposed(features, queries, 3, 5, draw)
    rows = refiners.measured(corpus)  # ends the program where spans differ
    assert [row["system"] for row in rows] == [
        "Reel", "SPR_CLIP, plain", "SPR_CLIP, kept", "SPR_ReLo-S, plain", "SPR_ReLo-S, kept",
    ]  # fmt: skip
    assert all(row["ms"] > 0 for row in rows) and rows[0]["ratio"] == 1
    assert [row["mb_an_hour"] > 0 for row in rows] == [True, False, True, False, True]
