"""Small pictures as JPEG bytes."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["to_jpeg"]


def to_jpeg(image: NDArray[np.uint8], quality: int = 82) -> bytes:
    """(h, w, 3) uint8 RGB as JPEG."""
    buffer = BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()
