"""One frame of a video at one time, exactly, by seeking to a key frame before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.media.container import open_video
from moviola.media.jpeg import to_jpeg
from moviola.media.picture import Widener, pixel_aspect
from moviola.media.screen import CannotPrune, Grid, Picture, every_picture, needed_pictures
from moviola.media.source import Source

__all__ = ["frame_at", "picture_at", "thumbnail"]


def thumbnail(path: Path, time: float, width: int = 320) -> bytes:
    """The frame on screen at ``time`` seconds as JPEG, ``width`` pixels wide.

    Raises:
        UnreadableMedia, NoVideoStream, InvalidValue: as for :func:`frame_at`.
    """
    return to_jpeg(frame_at(path, time, width))


def frame_at(path: Path, time: float, width: int) -> NDArray[np.uint8]:
    """The frame on screen at ``time``, by presentation time stamps; the last one when ``time`` is later.

    Args:
        path: a video file.
        time: seconds from the video's zero, >= 0.
        width: pixels of the result; the height follows from the displayed aspect ratio.

    Returns:
        (height, width, 3) uint8 RGB.

    Raises:
        UnreadableMedia: no such file, no media file, no picture that decodes.
        NoVideoStream: sound or text only.
        InvalidValue: a time or a width out of range.
    """
    if width < 1:
        raise InvalidValue(f"width {width}: give pixels, at least 1")
    with picture_at(path, time) as (source, picture):
        return Widener(width, pixel_aspect(source.stream))(picture.frame)


@contextmanager
def picture_at(path: Path, time: float) -> Iterator[tuple[Source, Picture]]:
    """The picture on screen at ``time`` and the open source that it came from."""
    grid = Grid.single(time)
    attempt = 0
    while True:
        with open_video(path) as (container, stream):
            source = Source(container, stream)
            run_ups = source.run_ups()
            if attempt < len(run_ups):
                picture = _pruned(source, grid, time, run_ups[attempt])
            else:
                picture = next((picture for _, picture in every_picture(source, grid, 0)), None)
                if picture is None:
                    raise UnreadableMedia(path, "no picture can be decoded")
            if picture is not None:
                yield source, picture
                return
        attempt += 1


def _pruned(source: Source, grid: Grid, time: float, run_up: float) -> Picture | None:
    """The picture, decoded from the key frame before it; None when that is not sure to be exact."""
    if not source.seek(time, run_up):
        return None
    try:
        return next((picture for _, picture in needed_pictures(source, grid)), None)
    except CannotPrune:
        return None
