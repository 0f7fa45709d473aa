"""Numbers in half precision as float32: NumPy widens them one by one, and takes twice to four times as long.

Their bits, moved to where float32 has them, are the same numbers times 2^-112, since the exponents count from
elsewhere. Nothing is rounded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SCALE", "shifted", "widened"]

SCALE = np.float32(2.0**112)
"""What numbers of :func:`shifted` are divided by."""

_KEPT_BITS = np.array(0x8FFFE000, np.uint32).view(np.int32)
# As many stay in the processor's cache from step to step.
_AT_ONCE = 1 << 15
# What infinities and NaN become is from here on, and no finite half.
_BEYOND = np.float32(65536)


def shifted(rows: NDArray[np.float16]) -> NDArray[np.float32]:
    """Rows (..., dim) float16, all finite, as float32, divided by :data:`SCALE`."""
    wide = rows.view(np.int16).astype(np.int32)
    wide <<= 13
    wide &= _KEPT_BITS
    return wide.view(np.float32)


def widened(rows: NDArray[np.float16]) -> NDArray[np.float32]:
    """An array of float16 as float32, infinities and NaN included."""
    wide, halves = np.empty(rows.shape, np.float32), np.ascontiguousarray(rows).reshape(-1)
    flat = wide.reshape(-1)
    for begin in range(0, len(flat), _AT_ONCE):
        own = flat[begin : begin + _AT_ONCE]
        bits = own.view(np.int32)
        bits[...] = halves[begin : begin + _AT_ONCE].view(np.int16)
        bits <<= 13
        bits &= _KEPT_BITS
        own *= SCALE
        if own.max() >= _BEYOND or own.min() <= -_BEYOND:
            return rows.astype(np.float32)
    return wide
