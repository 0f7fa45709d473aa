"""Frames of a video at a fixed rate, fitted to an encoder's input size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.media.container import open_video
from moviola.media.jpeg import to_jpeg
from moviola.media.picture import Fitter, Widener, pixel_aspect
from moviola.media.screen import CannotPrune, Grid, Picture, every_picture, needed_pictures
from moviola.media.source import Source
from moviola.types import FrameSize

__all__ = ["FrameStream", "SampledFrame", "sample_frames"]


@dataclass(frozen=True, slots=True)
class SampledFrame:
    """The frame on screen at ``time``.

    Attributes:
        time: seconds from the video's zero, ``k / rate``.
        shown_since: presentation time stamp of the frame, seconds from the video's zero; at most ``time``,
            except where the file begins with pictures that do not decode.
        image: (height, width, 3) uint8 RGB; not to be written to, since it may be given out again.
    """

    time: float
    shown_since: float
    image: NDArray[np.uint8]


def sample_frames(
    path: Path,
    *,
    rate: float = 1.0,
    size: FrameSize,
    thumbnail: Callable[[float, bytes], None] | None = None,
    thumbnail_every: float = 10.0,
    thumbnail_width: int = 320,
) -> FrameStream:
    """The frame on screen at each moment ``k / rate`` of a video, exact by presentation time stamps.

    Args:
        path: a video file.
        rate: frames a second, above 0 and at most 1000.
        size: what every frame is fitted to; rotation and sample aspect ratio are applied first.
        thumbnail: called with a time in seconds and a JPEG, made on the way from the same pictures.
        thumbnail_every: seconds between two thumbnails, rounded to moments of the grid.
        thumbnail_width: pixels.

    Returns:
        an iterator, to be used as a context manager. A damaged file gives the frames that decode.

    Raises:
        UnreadableMedia: no such file, no media file, or (when iterated) no picture that decodes.
        NoVideoStream: sound or text only.
        InvalidValue: a rate or a thumbnail size out of range.
    """
    grid = Grid.regular(rate)
    if not 0 < thumbnail_every < math.inf or thumbnail_width < 1:
        raise InvalidValue(
            f"thumbnails every {thumbnail_every} s, {thumbnail_width} px wide: both must be above 0"
        )
    return FrameStream(
        path,
        grid=grid,
        size=size,
        thumbnail=thumbnail,
        thumbnail_stride=max(1, round(thumbnail_every * rate)),
        thumbnail_width=thumbnail_width,
    )


class FrameStream:
    """Frames of a video at a fixed rate: an iterator and a context manager.

    The attributes grow while frames are read and are exact after the last one.
    """

    def __init__(
        self,
        path: Path,
        *,
        grid: Grid,
        size: FrameSize,
        thumbnail: Callable[[float, bytes], None] | None,
        thumbnail_stride: int,
        thumbnail_width: int,
    ) -> None:
        self._path = Path(path)
        self._grid = grid
        self._size = size
        self._thumbnail = thumbnail
        self._thumbnail_stride = thumbnail_stride
        self._thumbnail_width = thumbnail_width
        self._files = ExitStack()
        self._decoded_before = 0
        self._source = self._open()
        self._frames = self._run()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[SampledFrame]:
        return self

    def __next__(self) -> SampledFrame:
        return next(self._frames)

    def close(self) -> None:
        """Close the file; no more frames come."""
        self._frames = iter(())
        self._files.close()

    @property
    def duration(self) -> float:
        """Seconds from the video's zero until its last picture leaves the screen; 0 before the first one."""
        source = self._source
        if source.end is None or source.zero is None:
            return 0.0
        return source.seconds(max(source.end, source.zero + source.step))

    @property
    def decoded(self) -> int:
        """Pictures that were decoded to get there."""
        return self._decoded_before + self._source.decoded

    @property
    def lost(self) -> int:
        """Frames given out whose picture does not decode: the last good one stands in for them."""
        return self._source.lost

    @property
    def broken_at(self) -> float | None:
        """Seconds at which the file first proved damaged, None for a sound file."""
        at = self._source.broken_at
        return None if at is None else max(0.0, self._source.seconds(at))

    def _open(self) -> Source:
        self._files.close()
        return Source(*self._files.enter_context(open_video(self._path)))

    def _run(self) -> Iterator[SampledFrame]:
        fit = widen = None
        last: Picture | None = None
        k = -1
        for k, picture in self._pictures():
            if fit is None or widen is None:
                aspect = pixel_aspect(self._source.stream)
                fit, widen = Fitter(self._size, aspect), Widener(self._thumbnail_width, aspect)
            if last is None or picture.since != last.since:
                image = fit(picture.frame)
            last = picture
            if self._thumbnail and k % self._thumbnail_stride == 0:
                self._thumbnail(self._grid.time(k), to_jpeg(widen(picture.frame)))
            yield SampledFrame(self._grid.time(k), self._source.seconds(picture.since), image)
        if k < 0:
            raise UnreadableMedia(self._path, "no picture can be decoded")
        self._source.note_shortfall()

    def _pictures(self) -> Iterator[tuple[int, Picture]]:
        """(k, picture) for k = 0, 1, …; pruned as long as that is sure to be exact, then with everything."""
        k = 0
        try:
            for k, picture in needed_pictures(self._source, self._grid):
                yield k, picture
                k += 1
            return
        except CannotPrune:
            self._decoded_before = self._source.decoded
            self._source = self._open()
        yield from every_picture(self._source, self._grid, k)
