"""A fast test whether a picture can contain words, before a network reads it.

Letters are strokes, brighter or darker than their surroundings, several in a row. So are leaves and tiles:
the test only stops pictures that surely have none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["has_strokes"]

# A stroke is narrower than this many pixels and differs by this much, of 255, from both its sides.
_NARROW, _CONTRAST = 13, 28
# In a window of this size, at least this many strokes begin in each row, on average, where there are letters.
_WIDE, _TALL, _STROKES = 40, 8, 4.2
# Larger letters are searched in the picture at half its size, down to this side.
_SMALLEST = 64


def has_strokes(image: NDArray[np.uint8]) -> bool:
    """Whether strokes in a picture (height, width, 3) uint8 RGB are as close as in a line of letters."""
    import cv2

    if min(image.shape[:2]) < _TALL:
        return False
    grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8)
    while True:
        if any(_close(grey, way) >= _STROKES for way in (cv2.MORPH_TOPHAT, cv2.MORPH_BLACKHAT)):
            return True
        height, width = (side // 2 for side in grey.shape)
        if min(height, width) < _SMALLEST:
            return False
        grey = np.asarray(cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def _close(grey: NDArray[np.uint8], way: int) -> float:
    """Maximum number of strokes per row in a window over greys (height, width): a morphological hat."""
    import cv2

    stroke = cv2.morphologyEx(grey, way, np.ones((1, _NARROW), np.uint8)) > _CONTRAST
    begins = (stroke[:, 1:] & ~stroke[:, :-1]).astype(np.uint8)
    window = (_WIDE, _TALL)
    count = cv2.boxFilter(begins, cv2.CV_32F, window, normalize=False, borderType=cv2.BORDER_CONSTANT)
    return float(count.max()) / _TALL
