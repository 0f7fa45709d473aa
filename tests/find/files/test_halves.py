"""Half-precision numbers are widened as NumPy does it, to the bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moviola.files.halves import SCALE, shifted, widened

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FINITE = EVERY[np.isfinite(EVERY)]


def bits(numbers: NDArray[np.float32]) -> NDArray[np.uint32]:
    return numbers.view(np.uint32)


def test_all_finite_numbers() -> None:
    for rows in (FINITE, FINITE.reshape(-1, 2), FINITE.reshape(-1, 2).T, FINITE[7], FINITE[:0]):
        np.testing.assert_array_equal(bits(widened(rows)), bits(rows.astype(np.float32)))
    np.testing.assert_array_equal(bits(shifted(FINITE) * SCALE), bits(FINITE.astype(np.float32)))


def test_infinities_and_nan_stay_so() -> None:
    """A damaged weight is found by that; it lies behind the first numbers that are widened together."""
    for number in EVERY[~np.isfinite(EVERY)][::37]:
        found = widened(np.append(FINITE, number))
        assert np.isinf(found[-1]) == np.isinf(number) and np.isnan(found[-1]) == np.isnan(number)
        assert np.isfinite(found[:-1]).all()
