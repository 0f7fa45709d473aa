"""Pictures and words together: spans, scores, limits, order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.search import _Chance, _Found, _fused
from moviola.types import Span


def found(row: int, start: float, end: float, score: float, source: str = "visual") -> _Found:
    return _Found(row, Span(start, end), score, source, "words" if source == "subtitle" else "")


def test_evidence_for_the_same_moment_adds_up() -> None:
    (moment,) = _fused([found(1, 10, 20, 0.6)], [found(1, 15, 17, 0.5, "subtitle")])
    assert moment.source == "both"
    assert moment.score == pytest.approx(0.8)
    assert (moment.span, moment.snippet) == (Span(10, 20), "words")


def test_the_stronger_evidence_keeps_its_span() -> None:
    (moment,) = _fused([found(1, 10, 20, 0.3)], [found(1, 15, 17, 0.5, "subtitle")])
    assert moment.span == Span(15, 17)


def test_other_times_and_videos_stay_apart() -> None:
    seen = [found(1, 10, 20, 0.6), found(2, 15, 17, 0.9)]
    moments = _fused(seen, [found(1, 30, 31, 0.5, "subtitle")])
    assert [m.source for m in moments] == ["visual", "visual", "subtitle"]


scores = st.floats(0, 1)


@given(scores, scores)
def test_added_evidence_never_lowers_a_score(seen: float, heard: float) -> None:
    (moment,) = _fused([found(1, 0, 2, seen)], [found(1, 1, 3, heard, "subtitle")])
    assert max(seen, heard) - 1e-12 <= moment.score <= 1


def test_the_luckiest_of_the_library_scores_one_half() -> None:
    cosines = np.random.default_rng(0).normal(0.2, 0.03, 4000).astype(np.float32)
    chance = _Chance.of(cosines, 4000)
    lucky = 0.2 + 0.03 * math.sqrt(2 * math.log(4000))
    assert chance.score(lucky) == pytest.approx(0.5, abs=0.1)
    assert chance.score(0.2) < 0.01
    assert chance.score(lucky + 0.1) > 0.99


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_scores_keep_the_order_of_cosines(a: float, b: float) -> None:
    chance = _Chance.of(np.array([0.1, 0.2, 0.3], np.float32), 100)
    low, high = sorted((a, b))
    assert 0 <= chance.score(low) <= chance.score(high) <= 1


@pytest.mark.parametrize("cosine", [-1.0, 0.5, 1.0])
def test_a_library_of_one_picture_has_no_spread(cosine: float) -> None:
    assert 0 <= _Chance.of(np.array([0.5], np.float32), 1).score(cosine) <= 1
