"""The calibration error of scores, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from edited import calibration_error


def test_calibration_error_by_hand() -> None:
    """Two bins: three answers of .2, one of them right, and one of .9 that is right."""
    score, right = np.array([0.2, 0.2, 0.2, 0.9]), np.array([True, False, False, True])
    assert calibration_error(score, right) == pytest.approx((3 * (1 / 3 - 0.2) + 0.1) / 4)
    assert calibration_error(np.array([1.0, 0.0]), np.array([True, False])) == 0
