"""What cameras measure while they record: places and times, in data streams, or in boxes beside these.

What a packet says is read by :mod:`moviola.media.measurements` and :mod:`moviola.media.dji`, the boxes of
dash cameras by :mod:`moviola.media.dash_cameras`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import islice
from pathlib import Path

from av.container import InputContainer
from av.stream import DataStream, Discard, Stream

from moviola.media.container import DAMAGE, open_container
from moviola.media.dash_cameras import has_box_of_places, read_dash_camera
from moviola.media.dji import Dji, dji_of
from moviola.media.measurements import reader_of
from moviola.media.subtitles.values import Fix

__all__ = ["Measured", "read_measured"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What measurements say of a film.

    Attributes:
        stream: number of the stream in the file; None: they are in no stream.
        began: universal time at which the film begins; None if unknown.
        fixes: places, in the time of the pictures and in its order, at most one a second.
        camera: name of a GoPro; empty for others.
    """

    stream: int | None
    began: datetime | None = None
    fixes: tuple[Fix, ...] = ()
    camera: str = ""


# Packets by which a stream is known; and that are read of a file at most: a GoPro writes one a second, other
# cameras some hundred.
_SAMPLE, _MOST = 4, 2_000_000


@dataclass(slots=True)
class _Stream:
    """A stream while it is read: packets by which it may still become known, and what they said."""

    unknown: int = _SAMPLE
    known: bool = False
    began: datetime | None = None
    camera: str = ""
    fixes: dict[int, Fix] = field(default_factory=dict)
    dji: Dji | None = None

    def take(self, packet: bytes, at: float) -> None:
        """Read a packet of a second of the film."""
        self.dji = self.dji or dji_of(packet)
        read = self.dji or reader_of(packet)
        if read is None:
            self.unknown -= 1
            return
        self.known = True
        time, place, camera = read(packet)
        self.began = self.began or (None if time is None else _earlier(time, at))
        self.camera = self.camera or camera
        if place and int(at) not in self.fixes:
            self.fixes[int(at)] = Fix(max(0.0, at), latitude=place[0], longitude=place[1])

    @property
    def wanted(self) -> bool:
        return self.known or self.unknown > 0


def read_measured(container: InputContainer, path: Path) -> tuple[Measured, ...]:
    """The measurements of an open file, one of each stream whose format is known; damage ends it.

    Those streams alone are read, at an opening of their own, and nothing is decoded.
    """
    found = [*_of_streams(path)] if any(map(_may_measure, container.streams)) else []
    if container.format.name.startswith("mov,") and has_box_of_places(path):
        found.append(Measured(None, fixes=read_dash_camera(path)))
    return tuple(found)


def _may_measure(stream: Stream) -> bool:
    return isinstance(stream, DataStream) and bool(stream.time_base)


def _of_streams(path: Path) -> Iterator[Measured]:
    streams: dict[int, _Stream] = {}
    with suppress(*DAMAGE), open_container(path) as container:
        own = [stream for stream in container.streams if _may_measure(stream)]
        streams = {stream.index: _Stream() for stream in own}
        for stream in container.streams:
            stream.discard = Discard.default if stream.index in streams else Discard.all
        zero = min((_second(s.start_time, s.time_base) for s in container.streams.video), default=0.0)
        for packet in islice(container.demux(*own), _MOST):
            if packet.size and (read := streams[packet.stream_index]).wanted:
                read.take(bytes(packet), _second(packet.pts, packet.time_base) - zero)
            if not any(one.wanted for one in streams.values()):
                break
    for index, read in streams.items():
        if read.known:
            yield Measured(
                index, read.began, tuple(read.fixes[second] for second in sorted(read.fixes)), read.camera
            )


def _second(stamp: int | None, tick: Fraction | None) -> float:
    return float((stamp or 0) * (tick or 0))


def _earlier(time: datetime, seconds: float) -> datetime | None:
    try:
        return time - timedelta(seconds=seconds)
    except OverflowError:
        return None
