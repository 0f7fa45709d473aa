"""Pictures small enough for a conversation, as JPEG."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from pathlib import Path

import numpy as np
from mcp.types import ImageContent
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from moviola.media import frame_at
from moviola.types import clock

__all__ = ["LONGEST_SIDE", "picture", "timed_still"]

LONGEST_SIDE = 1568
"""Pixels. Vision models shrink larger pictures themselves."""

_QUALITY = 80


def picture(image: NDArray[np.uint8]) -> ImageContent:
    """A picture (height, width, 3) uint8 RGB as content of a response, shrunk where it is too large."""
    shrunk, jpeg = Image.fromarray(image), BytesIO()
    shrunk.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    shrunk.save(jpeg, "JPEG", quality=_QUALITY)
    return ImageContent(type="image", data=b64encode(jpeg.getvalue()).decode(), mime_type="image/jpeg")


def timed_still(path: Path, time: float, width: int) -> ImageContent:
    """The frame of a video at a time in seconds, ``width`` pixels wide, with the time drawn on.

    Raises:
        MediaError: the video cannot be read.
    """
    still = Image.fromarray(frame_at(path, time, width))
    draw, font = ImageDraw.Draw(still), ImageFont.load_default(max(12, width // 24))
    place, text = (width // 40, width // 40), clock(time)
    left, top, right, bottom = draw.textbbox(place, text, font)
    margin = width // 80
    draw.rectangle((left - margin, top - margin, right + margin, bottom + margin), fill=(0, 0, 0))
    draw.text(place, text, (255, 255, 255), font)
    return picture(np.asarray(still))
