"""Animated WebP, which libav does not decode: read by Pillow, and given to libav as a film in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile

import av
import numpy as np
from av.video.frame import VideoFrame
from PIL import Image

from moviola.errors import UnreadableMedia
from moviola.files.reasons import reason

__all__ = ["converted", "is_animated"]

_MILLISECOND = Fraction(1, 1000)
# Milliseconds of a picture whose time is not given, as browsers have it.
_USUAL = 100
# Pixels of all pictures together, at most: some ten minutes of a small clip, a minute of a large one.
_MOST_PIXELS = 1 << 32
# What Pillow raises on damaged files.
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)


def is_animated(path: Path) -> bool:
    """Whether a file is an animated WebP, by the flag in its head; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(21)
    except OSError:
        return False
    return head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) == 21 and bool(head[20] & 2)


@contextmanager
def converted(path: Path) -> Iterator[Path]:
    """A film of the pictures of an animated WebP at their times, for a while: Matroska, H.264, nearly
    lossless, with even sides.

    Raises:
        UnreadableMedia: no picture can be decoded, or there are too many.
    """
    status = path.stat()
    with NamedTemporaryFile(suffix=".mkv") as file:
        file.write(_film_of(path, status.st_size, status.st_mtime_ns))
        file.flush()
        yield Path(file.name)


@lru_cache(maxsize=2)
def _film_of(path: Path, size: int, changed: int) -> bytes:
    """The film of a file of a size and a time, which differ between states of the file."""
    times = list(_times(path))
    made = io.BytesIO()
    with Image.open(path, formats=["WEBP"]) as image, av.open(made, "w", format="matroska") as container:
        step = min(lasts for _, lasts in times)
        track = container.add_stream("libx264", rate=Fraction(1000, step))
        track.width, track.height = (side + side % 2 for side in image.size)
        track.pix_fmt, track.codec_context.thread_count = "yuv420p", 1
        track.codec_context.time_base = _MILLISECOND
        track.codec_context.options = {"crf": "8", "preset": "veryfast", "bf": "0", "g": "25"}
        for number, (start, lasts) in enumerate(times):
            image.seek(number)
            frame = VideoFrame.from_ndarray(np.asarray(image.convert("RGB")), format="rgb24")
            frame = frame.reformat(track.width, track.height, "yuv420p")
            # Also at its end, which a stream has no other place for.
            for at in sorted({start, start + lasts - step}) if number == len(times) - 1 else [start]:
                frame.pts, frame.time_base = at, _MILLISECOND
                container.mux(track.encode(frame))
        container.mux(track.encode())
    return made.getvalue()


def _times(path: Path) -> Iterator[tuple[int, int]]:
    """When the pictures of a file begin, and how long each lasts, in milliseconds; up to the damage in a
    damaged one.
    """
    start = 0
    try:
        with Image.open(path, formats=["WEBP"]) as image:
            count = getattr(image, "n_frames", 1)
            if (pixels := image.width * image.height * count) > _MOST_PIXELS:
                raise UnreadableMedia(
                    path, reason("too many", pixels=f"{pixels:,}", most=f"{_MOST_PIXELS:,}")
                )
            for number in range(count):
                image.seek(number)
                image.load()
                lasts = int(image.info.get("duration") or _USUAL)
                yield start, lasts
                start += lasts
    except _DAMAGE as error:
        if not start:
            raise UnreadableMedia(path, reason("no animation", why=error)) from error
