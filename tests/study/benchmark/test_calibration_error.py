"""The calibration error of scores, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from reliability import calibration_error, reliability


def test_calibration_error_by_hand() -> None:
    """Two bins: three answers of .2, one of them right, and one of .9 that is right."""
    score, right = np.array([0.2, 0.2, 0.2, 0.9]), np.array([True, False, False, True])
    assert calibration_error(score, right) == pytest.approx((3 * (1 / 3 - 0.2) + 0.1) / 4)
    assert calibration_error(np.array([1.0, 0.0]), np.array([True, False])) == 0
    assert calibration_error(np.empty(0), np.empty(0, bool)) == 0


def test_reliability_by_hand() -> None:
    score = np.array([0.1, 0.3, 0.5, 0.6, 1.0])
    right = np.array([False, True, True, False, True])
    (low, high) = reliability(score, right, bins=2)
    assert low == (0.0, 0.5, 2, pytest.approx(0.2), 0.5)
    assert high == (0.5, 1.0, 3, pytest.approx(0.7), pytest.approx(2 / 3))
    assert len(reliability(score[:2], right[:2], bins=2)) == 1
