"""What scores mean: chance, and the probability of being right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.retrieval import Chance
from moviola.types import POSSIBLE


def test_the_luckiest_of_the_library_is_just_possible() -> None:
    """A score that was not measured says nothing of whether there is an answer: luck is never strong."""
    cosines = np.random.default_rng(0).normal(0.2, 0.03, 4000).astype(np.float32)
    chance = Chance.of(cosines, 4000)
    lucky = 0.2 + 0.03 * math.sqrt(2 * math.log(4000))
    middle, low, high = chance.scores(np.array([lucky, 0.2, lucky + 0.1]))
    assert middle == pytest.approx(POSSIBLE, abs=0.06)
    assert low < 0.01
    assert high > 0.99


@pytest.mark.parametrize(("count", "above"), [(100, -1.0), (100, 0.0), (4000, 0.5), (1, 2.0)])
def test_log_odds_are_twice_the_deviations_above_the_luckiest(count: int, above: float) -> None:
    chance = Chance(mean=0.2, deviation=0.03, count=count)
    lucky = chance.evidence(np.array([math.sqrt(2 * math.log(max(count, 2))) + above]))
    (score,) = chance.scores(lucky)
    assert math.log(score / (1 - score)) == pytest.approx(2 * above - math.log(4), abs=1e-6)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_scores_keep_the_order_of_cosines(a: float, b: float) -> None:
    chance = Chance.of(np.array([0.1, 0.2, 0.3], np.float32), 100)
    low, high = chance.scores(np.array(sorted((a, b))))
    assert 0 <= low <= high <= 1


@pytest.mark.parametrize("cosine", [-1.0, 0.5, 1.0])
def test_a_library_of_one_picture_has_no_spread(cosine: float) -> None:
    (score,) = Chance.of(np.array([0.5], np.float32), 1).scores(np.array([cosine]))
    assert 0 <= score <= 1
