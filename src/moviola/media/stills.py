"""One frame of a video at one time, exactly, by seeking."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.media.container import DAMAGE, MAX_PIXELS, open_video, regular_file
from moviola.media.display_order import CannotPrune
from moviola.media.frame_selection import Grid, Picture, every_picture, needed_pictures
from moviola.media.frames import sample_frames
from moviola.media.picture import InputScaler, WidthScaler, pixel_aspect
from moviola.media.probe import probe
from moviola.media.source import Source
from moviola.types import FrameSize

__all__ = ["PICTURE_FORMATS", "frame_at", "pictures_from", "read_picture", "small_picture"]

PICTURE_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
"""Readable formats of picture files, by Pillow's names; its other decoders are switched off."""

_UNNAMED = Path("picture")  # what messages call one that is in no file
# Larger pictures are shrunk first, this many rows of the result at a time.
_PLAIN_PIXELS, _BAND = 1 << 23, 64


def frame_at(path: Path, time: float, width: int) -> NDArray[np.uint8]:
    """The frame on screen at ``time``, (height, width, 3) uint8 RGB; the last one when ``time`` is later.

    Args:
        time: seconds from the video's zero, >= 0.
        width: pixels; the height follows from the displayed aspect ratio.

    Raises:
        UnreadableMedia: no such file, no media file, no picture that decodes.
        NoVideoStream: sound or text only.
        InvalidValue: a time or a width out of range.
    """
    if width < 1:
        raise InvalidValue(f"width {width}: give at least 1 pixel")
    grid = Grid.single(time)
    with closing(pictures_from(path, grid.first, grid.step, 1)) as pictures:
        source, picture = next(pictures)
        try:
            return WidthScaler(width, pixel_aspect(source.stream))(picture.frame)
        except DAMAGE as error:
            raise UnreadableMedia(path, str(error)) from error


def read_picture(source: Path | bytes, size: FrameSize) -> NDArray[np.uint8]:
    """A picture as an encoder sees it, (height, width, 3) uint8 RGB, turned by its EXIF.

    Args:
        source: a file of :data:`PICTURE_FORMATS`, or the bytes of one; or a video, whose first frame it is. A
            picture of more than 8 million pixels is shrunk by an integer factor first.
        size: target size, with the scaler of video frames.

    Raises:
        UnreadableMedia: no such file, no regular one, no picture that decodes, or one of too many pixels.
        NoVideoStream: there is no picture in it.
    """
    upright = _picture_of(source)
    if upright is None:
        assert not isinstance(source, bytes)
        # A video, or an unreadable file, for which libav gives the reason.
        with sample_frames(source, size=size) as frames:
            return next(frames).image
    try:
        return InputScaler(size, Fraction(1))(VideoFrame.from_ndarray(np.asarray(upright), format="rgb24"))
    except DAMAGE as error:
        raise UnreadableMedia(_UNNAMED if isinstance(source, bytes) else source, str(error)) from error


def small_picture(source: Path | bytes, *, longest: int = 1024, most: int = 1 << 18) -> bytes:
    """A picture that takes little room: its bytes where these are at most ``most`` and of
    :data:`PICTURE_FORMATS`; else the picture, of a video its first frame, as WebP of at most ``longest``
    pixels a side. ``source`` and errors are those of :func:`read_picture`.
    """
    upright = _picture_of(source)
    if upright is None:
        assert not isinstance(source, bytes)
        upright = Image.fromarray(frame_at(source, 0.0, min(longest, probe(source).width)))
    elif len(content := source if isinstance(source, bytes) else Path(source).read_bytes()) <= most:
        return content
    upright.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    out = BytesIO()
    upright.save(out, "WEBP", quality=90)
    return out.getvalue()


def _picture_of(source: Path | bytes) -> Image.Image | None:
    """A picture, upright as RGB; None for a file that is none, which may be a video."""
    path, file = (_UNNAMED, BytesIO(source)) if isinstance(source, bytes) else (source, source)
    if file is source:
        regular_file(path)
    try:
        with Image.open(file, formats=PICTURE_FORMATS) as image:
            return _upright(image, path)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnreadableMedia(path, f"{error}; make it smaller") from error
    except UnreadableMedia:
        raise
    except Exception as error:  # Pillow's decoders raise nearly anything where a file is damaged
        if isinstance(source, bytes):
            raise UnreadableMedia(path, f"no picture ({error!s:.200})") from error
        return None


def _upright(image: Image.Image, path: Path) -> Image.Image:
    """A picture as RGB, turned by its EXIF, with at most some :data:`_PLAIN_PIXELS` pixels. Only the shrunk
    one is converted and turned: each step is a copy of four bytes per pixel.
    """
    factor = _factor(image)
    if factor > 1:
        image.draft("RGB", (image.width // factor, image.height // factor))  # has an effect on JPEG only
        factor = _factor(image)
    if image.width * image.height > MAX_PIXELS:
        most = f"at most {MAX_PIXELS:,} are decoded; make it smaller"
        raise UnreadableMedia(path, f"{image.width} x {image.height} pixels, {most}")
    if factor == 1:
        return ImageOps.exif_transpose(image).convert("RGB")
    width, height = image.size
    small = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    for top in range(0, height, factor * _BAND):
        band = image.crop((0, top, width, min(top + factor * _BAND, height)))
        small.paste(band.convert("RGB").reduce(factor), (0, top // factor))
    small.getexif()[ExifTags.Base.Orientation] = image.getexif().get(ExifTags.Base.Orientation, 1)
    return ImageOps.exif_transpose(small)


def _factor(image: Image.Image) -> int:
    return math.ceil(math.sqrt(image.width * image.height / _PLAIN_PIXELS))


def pictures_from(
    path: Path, first: Fraction, step: Fraction, count: int
) -> Generator[tuple[Source, Picture], None, None]:
    """Pictures on screen at ``count`` times from ``first`` seconds on, ``step`` seconds apart, decoding from
    there.

    After the end of the video this is its last picture. With each comes the open source; a picture is the
    same object as long as it stays on screen. Errors as in :func:`frame_at`.
    """
    done, attempt = 0, 0
    while done < count:
        with open_video(path) as (container, stream):
            source = Source(container, stream)
            grid = Grid(first + done * step, step, count - done)
            run_ups = source.run_ups()
            # Seconds to seek back before a time, and whether to prune decoding, in the order to try.
            ways = [(run_up, True) for run_up in run_ups]
            if source.sparse:  # where time stamps are wrong, earlier ones correct them
                ways = [(run_up, pruned) for run_up in run_ups[:-1] for pruned in (True, False)]
            ways.append((math.inf, False))
            if attempt == len(ways):
                raise UnreadableMedia(path, f"no picture can be decoded at {float(grid.first):g} s")
            for picture in _read(source, grid, *ways[attempt]):
                yield source, picture
                done += 1
        attempt += 1


def _read(source: Source, grid: Grid, run_up: float, pruned: bool) -> Iterator[Picture]:
    """Pictures at the moments of a grid, as long as they are certainly exact."""
    if source.seek(float(grid.first), run_up):
        pictures = needed_pictures(source, grid) if pruned else every_picture(source, grid, 0)
        with suppress(CannotPrune):
            for _, picture in pictures:
                yield picture
