"""One film made of pieces of many videos, with one size, one rate, one sound track."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter
from av.video.stream import VideoStream
from numpy.typing import NDArray

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.files.writing import draft_of
from moviola.media.container import DAMAGE, add_h264, new_mp4
from moviola.media.picture import BT709, LetterboxScaler, pixel_aspect
from moviola.media.sound import encoded_sound, sound_up_to
from moviola.media.stills import pictures_from

__all__ = ["Card", "Piece", "join"]

_SOUND_RATE = 48_000
# Delay of a picture that does not count as late: time stamps are rounded, in Matroska to 1 ms.
_LATENESS = Fraction(1, 16)


@dataclass(frozen=True, slots=True)
class Piece:
    """A number of pictures of the film, from ``start`` seconds of a video on."""

    path: Path
    start: Fraction
    frames: int
    title: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """A still, (height, width, 3) uint8 RGB in the film's size, for a number of pictures, in silence."""

    image: NDArray[np.uint8]
    frames: int


def join(
    parts: Sequence[Piece | Card],
    out: Path,
    *,
    rate: Fraction,
    size: tuple[int, int],
    sound: bool = True,
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Write parts, at least one, of at least one picture each, as an MP4 that browsers play: H.264, AAC.

    A video of another rate loses pictures or repeats some; other shapes get black bars. Where a video is
    silent or ends before its piece does, there is silence, or its last picture. Each titled piece is a
    chapter.

    Args:
        out: the MP4; it appears complete or not at all.
        rate: pictures per second, constant.
        size: width and height in pixels, even.
        sound: whether there is a sound track (stereo, 48 kHz).
        progress: called with the seconds that are written; what it raises ends the writing.

    Raises:
        UnreadableMedia, NoVideoStream: see :func:`moviola.media.cut`.
        InvalidValue: no parts, an odd size, or a place that cannot be written.
    """
    if not parts or min(part.frames for part in parts) < 1:
        raise InvalidValue(f"{out}: nothing to join; give at least one part of at least one picture")
    if min(size) < 2 or size[0] % 2 or size[1] % 2:
        raise InvalidValue(f"size {size[0]}x{size[1]}: both sides must be even for H.264 4:2:0")
    with draft_of(out) as draft, new_mp4(draft) as target:
        target.set_chapters(_chapters(parts, rate))
        track = add_h264(target, rate, size)
        context = track.codec_context
        context.colorspace = context.color_primaries = context.color_trc = BT709
        context.color_range = ColorRange.MPEG
        streams: list[Iterator[Packet[Any]]] = [_encoded_pictures(parts, track, rate, size)]
        if sound:
            audio = target.add_stream("aac", rate=_SOUND_RATE, layout="stereo")
            streams.append(encoded_sound(audio, _sound(parts, rate)))
        for packet in heapq.merge(*streams, key=lambda p: (p.dts or 0) * p.time_base):
            progress(float((packet.dts or 0) * packet.time_base))
            target.mux(packet)


def _chapters(parts: Sequence[Piece | Card], rate: Fraction) -> list[Any]:
    """A chapter for each titled piece and the cards before it, in milliseconds; MP4 has none with gaps."""
    made: list[Any] = []
    begun = at = 0
    for part in parts:
        at += part.frames
        if isinstance(part, Piece):
            start, end = (round(frame / rate * 1000) for frame in (begun, at))
            about = {"start": start, "end": end, "time_base": Fraction(1, 1000)}
            if part.title:
                made.append({"id": len(made) + 1, **about, "metadata": {"title": part.title}})
            begun = at
    return made


def _encoded_pictures(
    parts: Sequence[Piece | Card], track: VideoStream, rate: Fraction, size: tuple[int, int]
) -> Iterator[Packet[VideoStream]]:
    to_yuv = VideoReformatter()
    number = 0
    for part in parts:
        images = repeat(part.image, part.frames) if isinstance(part, Card) else _pictures(part, rate, size)
        for image in images:
            picture = to_yuv.reformat(
                VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24"),
                format="yuv420p",
                dst_colorspace=Colorspace.ITU709,
                threads=1,
            )
            picture.pts, picture.time_base = number, 1 / rate
            number += 1
            yield from track.encode(picture)
    yield from track.encode(None)


def _pictures(piece: Piece, rate: Fraction, size: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    scale: LetterboxScaler | None = None
    first = piece.start + _LATENESS / rate
    shown: tuple[VideoFrame, NDArray[np.uint8]] | None = None
    for source, picture in pictures_from(piece.path, first, 1 / rate, piece.frames):
        if shown is None or shown[0] is not picture.frame:
            scale = scale or LetterboxScaler(*size, pixel_aspect(source.stream))
            try:
                shown = picture.frame, scale(picture.frame)
            except DAMAGE as error:
                raise UnreadableMedia(piece.path, str(error)) from error
        yield shown[1]


def _sound(parts: Sequence[Piece | Card], rate: Fraction) -> Iterator[NDArray[np.float32]]:
    """Sound (n, 2) of the parts, each as long as its pictures, so that no rounding adds up."""
    number = at = 0
    for part in parts:
        number += part.frames
        left = round(number / rate * _SOUND_RATE) - at
        at += left
        if isinstance(part, Piece):
            start = float(part.start)
            for samples in sound_up_to(left, part.path, rate=_SOUND_RATE, start=start, channels=2):
                left -= len(samples)
                yield samples
        while left:
            silence = np.zeros((min(left, _SOUND_RATE), 2), np.float32)
            left -= len(silence)
            yield silence
