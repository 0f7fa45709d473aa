"""Key frames of a video, spread over it, each decoded alone: what a film shows, at little cost.

A key frame needs no other picture. Where a file has an index of places and times, the next one is sought, and
little more than key frames is read; other files are read to their end, and their other packets passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import inf
from pathlib import Path

import numpy as np
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

from moviola.media.container import DAMAGE, open_video
from moviola.media.picture import InputScaler, pixel_aspect
from moviola.media.source import Source
from moviola.types import FrameSize

__all__ = ["key_frames"]


def key_frames(path: Path, size: FrameSize, apart: float) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """Key frames of a video in order, from its first one on, at least ``apart`` seconds from each other: the
    seconds from the video's zero at which each is shown first, and the picture, (height, width, 3) uint8 RGB.
    Those that do not decode are left out. Where a file has no time for each picture (AVI, MPEG), times are
    off by as many pictures as are decoded before they are shown.

    Raises:
        UnreadableMedia: no such file, or no media file.
        NoVideoStream: sound or text only.
    """
    with open_video(path) as (container, stream):
        source = Source(container, stream)
        seeks = source.run_ups()[0] == 0  # times are right at once after a seek
        scale: InputScaler | None = None
        due = -inf
        for packet in source.packets():
            ticks = packet.dts if source.numbered or packet.pts is None else packet.pts
            if ticks is None or packet.is_discard:
                continue
            if source.zero is None:
                source.zero = ticks
            time = source.seconds(ticks)
            if not packet.is_keyframe or time < due:
                continue
            try:
                picture = _decoded(source, packet)
                if picture is None:
                    continue
                scale = scale or InputScaler(size, pixel_aspect(stream))
                image = scale(picture)
            except DAMAGE:
                continue
            yield max(0.0, time), image
            due = time + apart
            if seeks:
                seeks = _sought(source, due)


def _decoded(source: Source, packet: Packet[VideoStream]) -> VideoFrame | None:
    """The picture of a key frame; what is decoded next is decoded as if nothing had been before."""
    frames = [*source.decode(packet), *source.restart()]
    return frames[0] if frames else None


def _sought(source: Source, time: float) -> bool:
    """Go to the first key frame at a time or after it. False where none is known there: the end is near, or
    the file has its index in pieces.
    """
    ticks = (source.zero or 0) + int(Fraction(time) / source.tick)
    try:
        source.container.seek(ticks, stream=source.stream, backward=False)
    except DAMAGE:
        return False
    return True
