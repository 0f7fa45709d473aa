"""Frames of a video at a fixed rate, fitted to an encoder's input size; or at chosen times, for readers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.files.reasons import reason
from moviola.media.container import DAMAGE, LONGEST_VIDEO, Opener, open_video
from moviola.media.display_order import CannotPrune
from moviola.media.frame_selection import (
    Grid,
    Moments,
    Parts,
    Picture,
    Watcher,
    every_picture,
    needed_pictures,
)
from moviola.media.length import open_whole
from moviola.media.picture import InputScaler, SideScaler, pixel_aspect
from moviola.media.source import Source
from moviola.types import FrameSize

__all__ = [
    "LONGEST_VIDEO", "FrameStream", "SampledFrame", "StillMaker", "of_one_size", "sample_frames",
    "sample_stills",
]  # fmt: skip

Scaler = Callable[[VideoFrame], NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class SampledFrame:
    """The frame on screen at ``time`` seconds from the video's zero, (height, width, 3) uint8 RGB.

    The image is not to be written to, since it may be served again. ``shown_since`` is the frame's
    presentation time stamp in seconds; at most ``time``, except where the file begins with pictures that do
    not decode.
    """

    time: float
    shown_since: float
    image: NDArray[np.uint8]


class StillMaker(Protocol):
    """Makes stills of sampled frames."""

    def sampled(self, number: int, time: float, frame: VideoFrame, aspect: Fraction) -> None:
        """Sampled frame ``number``, at ``time`` seconds, shows a picture, with pixels of an ``aspect``."""


def sample_frames(
    path: Path,
    *,
    rate: float = 1.0,
    size: FrameSize,
    watcher: Watcher | None = None,
    stills: Sequence[StillMaker] = (),
    parts: Parts | None = None,
    device: Opener | None = None,
) -> FrameStream:
    """The frame on screen at each moment ``k / rate`` of a video, exact by presentation time stamps.

    To be used as a context manager. A damaged file yields the frames that decode.

    Args:
        rate: frames per second, above 0 and at most 1000.
        size: of all frames; rotation and sample aspect ratio are applied first.
        watcher: receives every picture that is decoded on the way, and makes those right before rare key
            frames decoded too.
        stills: each receives the pictures of the sampled frames.
        parts: the moments of some parts of the video alone, of this rate; the file is read from its start, so
            that times are the same, but decoded only in these. None of them may lie in the video.
        device: decodes the file, as long as that is regular; else, and from where it fails, software does.

    Raises:
        UnreadableMedia: no such file, no media file, or (when iterated) no picture that decodes, too
            elongated ones, or more than :data:`LONGEST_VIDEO` seconds of them.
        NoVideoStream: sound or text only.
        InvalidValue: a rate out of range.
    """
    scaler = partial(InputScaler, size)
    grid = Grid.regular(rate) if parts is None else parts
    return FrameStream(path, grid=grid, scaler=scaler, watcher=watcher, stills=stills, device=device)


def of_one_size(images: Iterable[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
    """Frames in order, each (height, width, 3) uint8 RGB, stacked as far as neighbours have the same sides,
    (n, height, width, 3): of a file whose pictures change their shape, an encoder may take several.
    """
    return [np.stack([*group]) for _, group in groupby(images, lambda image: image.shape)]


def sample_stills(path: Path, times: Sequence[float], *, longest_side: int) -> FrameStream:
    """The frame on screen at each of some moments, decoding only what these need; past the end, the last one.

    To be used as a context manager. Errors as in :func:`sample_frames`.

    Args:
        times: seconds from the video's zero, rising; at least one.
        longest_side: pixels, at least 1, of the longer side of a still, which keeps the displayed aspect
            ratio; smaller pictures are not enlarged.
    """
    if longest_side < 1:
        raise InvalidValue(f"longest side {longest_side}: give at least 1 pixel")
    return FrameStream(path, grid=Moments.at(times), scaler=partial(SideScaler, longest_side))


class FrameStream:
    """Frames of a video at given moments. The properties are exact after the last one."""

    def __init__(
        self,
        path: Path,
        *,
        grid: Grid,
        scaler: Callable[[Fraction], Scaler],
        watcher: Watcher | None = None,
        stills: Sequence[StillMaker] = (),
        device: Opener | None = None,
    ) -> None:
        self._path, self._grid, self._scaler = Path(path), grid, scaler
        self._watcher, self._stills = watcher, stills
        self._files = ExitStack()
        self._decoded_before = 0
        self._source = self._open(device)
        self._frames = self._run()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
        """Seconds from the video's zero until its last picture leaves the screen, where it stays while there
        are sound and words; 0 before the first one.
        """
        return self._source.duration

    @property
    def checksum(self) -> str:
        """Of all that was read, as by :func:`moviola.media.read_through`; empty for chosen times."""
        return "" if self._source.beside is None else str(self._source.checksum)

    @property
    def decoded(self) -> int:
        return self._decoded_before + self._source.decoded

    @property
    def lost(self) -> int:
        """Frames whose picture does not decode: the last good one replaces them."""
        return self._source.lost

    @property
    def broken_at(self) -> float | None:
        """Seconds at which the file first proved damaged, None for a sound file."""
        at = self._source.broken_at
        return None if at is None else max(0.0, self._source.seconds(at))

    def _open(self, device: Opener | None = None) -> Source:
        self._files.close()
        if self._grid.count is not None:
            return Source(*self._files.enter_context(open_video(self._path)))
        return self._files.enter_context(open_whole(self._path, device))

    def _run(self) -> Iterator[SampledFrame]:
        scale: Scaler | None = None
        last: Picture | None = None
        for k, picture in self._pictures():
            time = float(self._grid.exact(k))
            if time > LONGEST_VIDEO:
                raise UnreadableMedia(self._path, reason("too long", hours=LONGEST_VIDEO // 3600))
            since = self._source.seconds(picture.since)
            try:
                if last is None or picture.since != last.since:
                    aspect = pixel_aspect(self._source.stream)
                    scale = scale or self._scaler(aspect)
                    image = scale(picture.frame)
                if self._watcher:
                    self._watcher.sampled(time, since, picture.frame)
                for still in self._stills:
                    still.sampled(self._grid.number(k), time, picture.frame, aspect)
            except DAMAGE as error:
                raise UnreadableMedia(self._path, str(error)) from error
            last = picture
            yield SampledFrame(time, since, image)
        if last is None and self._grid.number(0) == 0:
            raise UnreadableMedia(self._path, reason("no picture"))
        self._source.note_shortfall()
        if self._grid.count is None:  # all of the file was read
            self._source.note_gaps()

    def _pictures(self) -> Iterator[tuple[int, Picture]]:
        """(k, picture) for k = 0, 1, …; pruned as long as that is sure to be exact, then with everything."""
        # Before a part that is not the first one, a watcher knows the pictures.
        before = self._grid.number(0) - 1
        k, since = 0, -math.inf if before < 0 else float(self._grid.first + before * self._grid.step)
        try:
            for k, picture in needed_pictures(self._source, self._grid, self._watcher):
                since = self._source.seconds(picture.since)
                yield k, picture
                k += 1
            return
        except CannotPrune:
            if self._watcher:
                self._watcher.cut_off(since)
            if self._source.begun:
                self._decoded_before = self._source.decoded
                self._source = self._open()
        yield from every_picture(self._source, self._grid, k, self._watcher, since)
