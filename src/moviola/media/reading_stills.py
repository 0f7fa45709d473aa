"""Stills for a reader of text, taken while a film is decoded for something else.

They are kept as JPEG of a quality at which nothing that can be read is lost, some 60 kB at 960 pixels
(``benchmarks/ingest``), and read from it also where they are decoded for the reader alone: so what is found
does not depend on when a text is read.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from io import BytesIO

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray
from PIL import Image

from moviola.media.frame_selection import Grid
from moviola.media.picture import SideScaler

__all__ = ["ReadingStills", "packed", "stills_apart", "unpacked"]

# 4:4:4: colours of letters are as sharp as their shapes.
_QUALITY, _WHOLE_COLOURS = 95, 0


def stills_apart(rate: float) -> Fraction:
    """Seconds between stills that are taken of ``rate`` sampled frames a second: one a second, or fewer where
    fewer are sampled.
    """
    return Grid.regular(rate).step * _every(rate)


def _every(rate: float) -> int:
    return max(1, int(rate))


class ReadingStills:
    """Hands on one still a second of the sampled frames, with its millisecond, :func:`packed`.

    Args:
        rate: sampled frames per second.
        longest_side: pixels; smaller pictures are not enlarged.
    """

    def __init__(self, rate: float, longest_side: int, keep: Callable[[int, bytes], None]) -> None:
        self._every, self._longest_side, self._keep = _every(rate), longest_side, keep
        self._scale: SideScaler | None = None

    def sampled(self, number: int, time: float, frame: VideoFrame, aspect: Fraction) -> None:
        """Sampled frame ``number``, at ``time`` seconds, shows a picture, with pixels of an ``aspect``."""
        if number % self._every == 0:
            self._scale = self._scale or SideScaler(self._longest_side, aspect)
            self._keep(round(1000 * time), packed(self._scale(frame)))


def packed(image: NDArray[np.uint8]) -> bytes:
    """A picture (height, width, 3) uint8 RGB as JPEG."""
    buffer = BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=_QUALITY, subsampling=_WHOLE_COLOURS)
    return buffer.getvalue()


def unpacked(still: bytes) -> NDArray[np.uint8]:
    """A picture of :func:`packed`, as (height, width, 3) uint8 RGB, not to be written to."""
    with Image.open(BytesIO(still)) as image:
        return np.asarray(image)
