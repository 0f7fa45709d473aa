"""Films made for the tests: every picture carries its number, readable after any encoding and scaling."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import av.container
import numpy as np
import pytest
from av.packet import Packet
from av.video.frame import VideoFrame
from numpy.typing import NDArray

COLUMNS, ROWS = 4, 3
# Pictures shown for very different times: frames of 20 ms to 1.4 s.
_UNEVEN = (1, 1, 2, 1, 40, 3, 1, 70, 2, 10, 1, 1, 30, 5, 1, 1, 1, 2, 60, 1, 1, 3, 1, 25, 1, 1, 2, 50, 1, 4)


@dataclass(frozen=True)
class Film:
    """How to make a film. Pictures are shown at a steady rate, or unevenly."""

    suffix: str = "mp4"
    codec: str = "libx264"
    rate: Fraction = Fraction(25)
    seconds: float = 5.0
    start: float = 0.0
    uneven: bool = False
    pix_fmt: str = "yuv420p"
    size: tuple[int, int] = (128, 96)
    gop: int = 250
    options: dict[str, str] = field(default_factory=dict)
    tick: Fraction = Fraction(1, 90_000)
    rotation: int = 0  # degrees counter-clockwise, as libav has it
    aspect: Fraction | None = None
    sound: str | None = None

    @property
    def times(self) -> list[Fraction]:
        """Seconds from zero at which the pictures are shown."""
        if self.uneven:
            return [Fraction(sum(_UNEVEN[:n]), 50) for n in range(len(_UNEVEN))]
        return [n / self.rate for n in range(round(self.seconds * self.rate))]


class Films:
    """A folder of films, each made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, name: str, **description: Any) -> tuple[Path, Film]:
        film = Film(**description)
        path = self.folder / f"{name}.{film.suffix}"
        if path.exists():
            return path, film
        with av.open(str(path), "w") as container:
            stream = container.add_stream(film.codec, rate=film.rate, options=film.options)
            stream.width, stream.height = film.size
            stream.pix_fmt = film.pix_fmt
            stream.codec_context.gop_size = film.gop
            stream.codec_context.time_base = film.tick
            stream.codec_context.thread_count = 1
            if film.rotation:
                stream.set_display_rotation(film.rotation)
            if film.aspect:
                stream.codec_context.sample_aspect_ratio = film.aspect
            packets = _tone(container, film.sound, film.seconds, film.start) if film.sound else []
            for number, time in enumerate(film.times):
                picture = VideoFrame.from_ndarray(self.numbered(number, *film.size))
                picture = picture.reformat(format=film.pix_fmt)
                picture.pts, picture.time_base = round((time + Fraction(film.start)) / film.tick), film.tick
                packets += stream.encode(picture)
            packets += stream.encode(None)
            for packet in sorted(packets, key=lambda p: (p.dts or 0) * p.time_base):
                container.mux(packet)
        return path, film

    @staticmethod
    def numbered(number: int, width: int = 128, height: int = 96) -> NDArray[np.uint8]:
        """A picture of 4 x 3 fields, black or white: a number in binary."""
        bits = np.array([255 * (number >> place & 1) for place in range(COLUMNS * ROWS)], np.uint8)
        rows = np.arange(height) * ROWS // height
        columns = np.arange(width) * COLUMNS // width
        return np.repeat(bits.reshape(ROWS, COLUMNS)[rows][:, columns, None], 3, axis=2)

    @staticmethod
    def number_of(image: NDArray[np.uint8]) -> int:
        """The number in a picture of any size."""
        height, width = image.shape[:2]
        rows = (np.arange(ROWS) * 2 + 1) * height // (2 * ROWS)
        columns = (np.arange(COLUMNS) * 2 + 1) * width // (2 * COLUMNS)
        bits = image[rows][:, columns].mean(axis=2).reshape(-1) > 127
        return sum(1 << place for place, bit in enumerate(bits) if bit)


def _tone(
    container: av.container.OutputContainer, codec: str, seconds: float, start: float
) -> list[Packet[Any]]:
    rate = 48_000
    stream = container.add_stream(codec, rate=rate, layout="mono")
    wave = (0.2 * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)).astype(np.float32)
    frame = av.AudioFrame.from_ndarray(wave[None], format="fltp", layout="mono")
    frame.sample_rate, frame.pts, frame.time_base = rate, round(start * rate), Fraction(1, rate)
    return [*stream.encode(frame), *stream.encode(None)]


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Films:
    """Where films are made: ``films.make(name, **description)``."""
    return Films(tmp_path_factory.mktemp("films"))
