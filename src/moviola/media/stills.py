"""One frame of a video at one time, exactly, by seeking to a key frame before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray
from PIL import Image, ImageOps

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.media.container import DAMAGE, open_video
from moviola.media.frame_selection import CannotPrune, Grid, Picture, every_picture, needed_pictures
from moviola.media.frames import sample_frames
from moviola.media.picture import InputScaler, WidthScaler, pixel_aspect
from moviola.media.source import Source
from moviola.types import FrameSize

__all__ = ["frame_at", "pictures_from", "read_picture"]


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
    with _picture_at(path, time) as (source, picture):
        scale = WidthScaler(width, pixel_aspect(source.stream))
        try:
            return scale(picture.frame)
        except DAMAGE as error:
            raise UnreadableMedia(path, str(error)) from error


def read_picture(path: Path, size: FrameSize) -> NDArray[np.uint8]:
    """A picture in a file as an encoder sees it, turned as its EXIF says; of a video the first frame.

    Args:
        path: a file that Pillow reads, or a video.
        size: what it is fitted to, by the scaler of frames of videos.

    Returns:
        (height, width, 3) uint8 RGB.

    Raises:
        UnreadableMedia: no such file, or no picture that decodes.
        NoVideoStream: there is no picture in it.
    """
    try:
        with Image.open(path) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
    except OSError:  # a video, or nothing that can be read, of which libav says why
        with sample_frames(path, size=size) as frames:
            return next(frames).image
    except Image.DecompressionBombError as error:
        raise UnreadableMedia(path, f"{error}; make it smaller") from error
    try:
        return InputScaler(size, Fraction(1))(VideoFrame.from_ndarray(np.asarray(upright), format="rgb24"))
    except DAMAGE as error:
        raise UnreadableMedia(path, str(error)) from error


def pictures_from(
    path: Path, first: Fraction, step: Fraction, count: int
) -> Iterator[tuple[Source, Picture]]:
    """What is on screen at ``count`` times from ``first`` on, ``step`` seconds apart, decoding from there.

    Past the end of the video that is its last picture.

    Args:
        path: a video file.
        first: seconds from the video's zero, >= 0.
        step: seconds, above 0.
        count: how many.

    Yields:
        the open source and the picture, which is the same object as long as it stays on screen.

    Raises:
        UnreadableMedia: no such file, no media file, no picture that decodes there.
        NoVideoStream: sound or text only.
    """
    done, attempt = 0, 0
    while done < count:
        with open_video(path) as (container, stream):
            source = Source(container, stream)
            grid = Grid(first + done * step, step, count - done)
            run_ups = source.run_ups()
            if attempt >= len(run_ups):
                for _, picture in every_picture(source, grid, 0):
                    yield source, picture
                    done += 1
                if done < count:
                    raise UnreadableMedia(path, f"no picture can be decoded at {float(grid.first):g} s")
            elif source.seek(grid.time(0), run_ups[attempt]):
                with suppress(CannotPrune):
                    for _, picture in needed_pictures(source, grid):
                        yield source, picture
                        done += 1
        attempt += 1


@contextmanager
def _picture_at(path: Path, time: float) -> Iterator[tuple[Source, Picture]]:
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
