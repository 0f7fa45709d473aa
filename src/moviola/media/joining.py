"""One film made of pieces of many videos, with one size, one rate, one sound track."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter
from av.video.stream import VideoStream
from numpy.typing import NDArray

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.files.writing import draft_of
from moviola.media.container import DAMAGE, new_mp4
from moviola.media.picture import LetterboxScaler, pixel_aspect
from moviola.media.sound import read_sound
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
    """Write parts one after the other as an MP4 that browsers play: H.264, AAC, the index in front.

    Each picture of the film shows the video's picture at that time: a faster video loses pictures, a slower
    one repeats some. Other shapes get black bars. Where a video is silent or ends before its piece does,
    there is silence, or its last picture. Each titled piece is a chapter.

    Args:
        parts: at least one, each of at least one picture.
        out: the MP4; it appears complete or not at all.
        rate: pictures per second, constant.
        size: width and height in pixels, even.
        sound: whether there is a sound track (stereo, 48 kHz).
        progress: called with the seconds that are written; what it raises ends the writing.

    Raises:
        UnreadableMedia: no such file, no media file, nothing decodes there.
        NoVideoStream: sound or text only.
        InvalidValue: no parts, an odd size, or a place that cannot be written.
    """
    if not parts or min(part.frames for part in parts) < 1:
        raise InvalidValue(f"{out}: nothing to join; give at least one part of at least one picture")
    if min(size) < 2 or size[0] % 2 or size[1] % 2:
        raise InvalidValue(f"size {size[0]}x{size[1]}: both sides must be even for H.264 4:2:0")
    with draft_of(out) as draft, new_mp4(draft) as target:
        target.set_chapters(_chapters(parts, rate))
        track = target.add_stream("libx264", rate=rate)
        track.width, track.height, track.pix_fmt = *size, "yuv420p"
        track.codec_context.options = {"crf": "20", "preset": "veryfast"}
        context = track.codec_context
        context.colorspace = context.color_primaries = context.color_trc = _BT709
        context.color_range = ColorRange.MPEG
        streams: list[Iterator[Packet[Any]]] = [_encoded_pictures(parts, track, rate, size)]
        if sound:
            audio = target.add_stream("aac", rate=_SOUND_RATE, layout="stereo")
            streams.append(_encoded_sound(parts, audio, rate))
        for packet in heapq.merge(*streams, key=lambda p: (p.dts or 0) * p.time_base):
            progress(float((packet.dts or 0) * packet.time_base))
            target.mux(packet)


_BT709 = 1  # for primaries, transfer and matrix alike (ITU-T H.273)


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
        images = _still(part) if isinstance(part, Card) else _pictures(part, rate, size)
        for image in images:
            picture = to_yuv.reformat(
                VideoFrame.from_ndarray(image, format="rgb24"),
                format="yuv420p",
                dst_colorspace=Colorspace.ITU709,
                threads=1,
            )
            picture.pts, picture.time_base = number, 1 / rate
            number += 1
            yield from track.encode(picture)
    yield from track.encode(None)


def _still(card: Card) -> Iterator[NDArray[np.uint8]]:
    image = np.ascontiguousarray(card.image)
    return (image for _ in range(card.frames))


def _pictures(piece: Piece, rate: Fraction, size: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    """The video's pictures at the times of the film's pictures."""
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


def _encoded_sound(
    parts: Sequence[Piece | Card], track: AudioStream, rate: Fraction
) -> Iterator[Packet[AudioStream]]:
    """Sound of the parts, each as long as its pictures, so that no rounding adds up."""
    number = at = 0
    for part in parts:
        number += part.frames
        until = round(number / rate * _SOUND_RATE)
        for samples in _sound(part, until - at):
            frame = AudioFrame.from_ndarray(np.ascontiguousarray(samples.T), format="fltp", layout="stereo")
            frame.sample_rate, frame.pts, frame.time_base = _SOUND_RATE, at, Fraction(1, _SOUND_RATE)
            at += len(samples)
            yield from track.encode(frame)
    yield from track.encode(None)


def _sound(part: Piece | Card, count: int) -> Iterator[NDArray[np.float32]]:
    """``count`` samples of two channels, (n, 2), in pieces of at most a second."""
    left = count
    if isinstance(part, Piece):
        heard = read_sound(part.path, rate=_SOUND_RATE, seconds=1.0, start=float(part.start), channels=2)
        for samples in heard:
            samples = samples[:left]
            left -= len(samples)
            if len(samples):
                yield samples
            if not left:
                return
    while left:
        silence = np.zeros((min(left, _SOUND_RATE), 2), np.float32)
        left -= len(silence)
        yield silence
