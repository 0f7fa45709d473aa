"""Small stills of a video, made from the sampled pictures, for use when the file is away."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray
from PIL import Image

from moviola.media.picture import WidthScaler

__all__ = ["SmallStills", "read_small_still"]

SMALL_WIDTH = 160
"""Pixels. As WebP of this quality a still of film takes 1.4 kB on average, and 1 ms."""
_QUALITY, _EFFORT = 50, 2


class SmallStills:
    """Keeps one still per ``every`` sampled frames, the middle one, and the very first.

    Attributes:
        stills: seconds, and WebP bytes of a picture :data:`SMALL_WIDTH` pixels wide.
    """

    def __init__(self, every: int) -> None:
        self.stills: list[tuple[float, bytes]] = []
        self._every = every
        self._scale: WidthScaler | None = None

    def sampled(self, number: int, time: float, frame: VideoFrame, aspect: Fraction) -> None:
        """Sampled frame ``number``, at ``time`` seconds, shows a picture, with pixels of an ``aspect``."""
        if number % self._every == self._every // 2 or number == 0:
            self._scale = self._scale or WidthScaler(SMALL_WIDTH, aspect)
            buffer = BytesIO()
            Image.fromarray(self._scale(frame)).save(buffer, "WEBP", quality=_QUALITY, method=_EFFORT)
            self.stills.append((time, buffer.getvalue()))

    def taken(self, start: float, end: float) -> list[tuple[float, bytes]]:
        """Those of a stretch of seconds; all are dropped."""
        taken, self.stills = [still for still in self.stills if start <= still[0] < end], []
        return taken


def read_small_still(data: bytes, width: int) -> NDArray[np.uint8]:
    """A kept still, (height, ``width``, 3) uint8 RGB, blurred if enlarged. Raises OSError: no picture."""
    with Image.open(BytesIO(data)) as image:
        height = max(1, round(width * image.height / image.width))
        return np.asarray(image.convert("RGB").resize((width, height)))
