"""What cameras measure while they record, in data streams of MP4 and MOV: places and times.

- GPMF of GoPro: keys of four letters, each with a type, a size and a number, nested. ``GPS5`` are places,
  ``GPSU`` universal times, ``GPSF`` and ``GPSP`` how good they are; ``GPS9`` has all of it. GoPro describes
  it at github.com/gopro/gpmf-parser.
- Camera Motion Metadata of Google (``camm``): type 5 are places, type 6 places with their times.

A stream is known by its packets, since programs that copy it change its name. What a field says beyond the
end of its packet is not there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from av.container import InputContainer
from av.stream import DataStream, Discard

from moviola.media.container import DAMAGE

__all__ = ["Measured", "is_place", "read_measured"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What measurements say of a film.

    Attributes:
        stream: number of the stream in the file.
        began: universal time at which the film begins; None if unknown.
        place: the first place, degrees north and east; None where no satellite was seen.
        camera: name of a GoPro; empty for others.
    """

    stream: int
    began: datetime | None = None
    place: tuple[float, float] | None = None
    camera: str = ""

    def and_then(self, later: Measured) -> Measured:
        """This, and what it lacks of what comes later."""
        return replace(
            self, began=self.began or later.began, place=self.place or later.place,
            camera=self.camera or later.camera,
        )  # fmt: skip


# Packets by which a stream is known; and that are read of a file at most: a GoPro writes one a second, other
# cameras some hundred.
_SAMPLE, _MOST = 4, 50_000
_DEEPEST = 8
# A dilution of precision from which on places are wrong by far.
_WORST = 10.0
_MILLENNIUM, _GPS_EPOCH = datetime(2000, 1, 1, tzinfo=UTC), datetime(1980, 1, 6, tzinfo=UTC)
# Seconds by which satellites' clocks are ahead of universal time since 2017.
_LEAP = timedelta(seconds=18)
_MOTION_SIZES = {0: 12, 1: 8, 2: 12, 3: 12, 4: 12, 5: 24, 6: 56, 7: 12}

Reading = tuple[datetime | None, tuple[float, float] | None, str]
"""Time, place, and name of the camera of a packet."""


def is_place(latitude: float, longitude: float) -> bool:
    """Whether these are degrees of a place; no satellite is written as two zeros."""
    return abs(latitude) <= 90 and abs(longitude) <= 180 and (latitude, longitude) != (0.0, 0.0)


def read_measured(container: InputContainer) -> tuple[Measured, ...]:
    """The measurements of an open file, one of each stream whose format is known; damage ends it.

    Every stream is read until it has said when and where; nothing is decoded.
    """
    streams = {s.index: s for s in container.streams if isinstance(s, DataStream) and s.time_base}
    if not streams or not container.format.name.startswith("mov,"):
        return ()
    zero = min((_second(s.start_time, s.time_base) for s in container.streams.video), default=0.0)
    found: dict[int, Measured] = {}
    unknown = dict.fromkeys(streams, _SAMPLE)
    with suppress(*DAMAGE):
        for number, packet in enumerate(container.demux(*streams.values())):
            index = packet.stream_index
            if number > _MOST or not (unknown or found):
                break
            read = next((read for is_of, read in _FORMATS if is_of(data := bytes(packet))), None)
            if read is not None:
                known = found.get(index, Measured(index))
                time, place, camera = read(data)
                at = _second(packet.pts, packet.time_base) - zero
                began = None if time is None else _earlier(time, at)
                found[index] = known.and_then(Measured(index, began, place, camera))
                unknown.pop(index, None)
            elif index in unknown:
                unknown[index] -= 1
            whole = index in found and found[index].began and found[index].place
            if whole or unknown.get(index) == 0:
                unknown.pop(index, None)
                streams[index].discard = Discard.all
            if not unknown and all(one.began and one.place for one in found.values()):
                break
    return tuple(found.values())


def _second(stamp: int | None, tick: Fraction | None) -> float:
    return float((stamp or 0) * (tick or 0))


def _earlier(time: datetime, seconds: float) -> datetime | None:
    try:
        return time - timedelta(seconds=seconds)
    except OverflowError:
        return None


# -- GPMF ----------------------------------------------------------------------------------------------------

Entry = tuple[bytes, int, int, memoryview]
"""Key, type, size of an element in bytes, and all elements."""


def _is_gpmf(data: bytes) -> bool:
    return len(data) >= 8 and data[:5] == b"DEVC\0"


def _entries(data: memoryview) -> Iterator[Entry]:
    """The entries of one level, up to the first that is not whole."""
    at = 0
    while at + 8 <= len(data):
        key = bytes(data[at : at + 4])
        kind, size, count = struct.unpack_from(">BBH", data, at + 4)
        values = data[at + 8 : at + 8 + size * count]
        if not any(key) or len(values) < size * count:
            return
        yield key, kind, size, values
        at += 8 + -(-size * count // 4) * 4


def _gpmf(data: bytes) -> Reading:
    time, place, camera = None, None, ""
    levels = [(memoryview(data), 0)]
    while levels:
        level, depth = levels.pop(0)
        own: dict[bytes, Entry] = {}
        for entry in _entries(level):
            own[entry[0]] = entry
            if entry[1] == 0 and depth < _DEEPEST:
                levels.append((entry[3], depth + 1))
        time_, place_ = _fix_of(own)
        time, place = time or time_, place or place_
        if name := own.get(b"DVNM"):
            camera = camera or _text(name[3])
    # Older ones call themselves so.
    return time, place, "" if camera.lower() == "camera" else camera


def _fix_of(own: dict[bytes, Entry]) -> tuple[datetime | None, tuple[float, float] | None]:
    """Time and place of a stream by its entries, where enough satellites were seen."""
    scale = _numbers(own.get(b"SCAL"))
    if (nine := own.get(b"GPS9")) and nine[2] == 32 and len(scale) == 9 and all(scale):
        for at in range(0, len(nine[3]), 32):
            values = [v / by for v, by in zip(struct.unpack_from(">7i2H", nine[3], at), scale, strict=True)]
            if values[8] >= 2 and values[7] <= _WORST and is_place(*values[:2]):
                return _after(_MILLENNIUM, days=values[5], seconds=values[6]), (values[0], values[1])
        return None, None
    fix, dilution = _numbers(own.get(b"GPSF")), _numbers(own.get(b"GPSP"))
    if not fix or fix[0] < 2 or (dilution and dilution[0] / 100 > _WORST):
        return None, None
    time = _said_time(_text(own[b"GPSU"][3])) if b"GPSU" in own else None
    five = own.get(b"GPS5")
    if five and five[1:3] == (ord("l"), 20) and len(scale) in (1, 5) and all(scale):
        for at in range(0, len(five[3]), 20):
            north, east = struct.unpack_from(">2i", five[3], at)
            place = north / scale[0], east / scale[len(scale) > 1]
            if is_place(*place):
                return time, place
    return time, None


def _numbers(entry: Entry | None) -> list[float]:
    """The numbers of an entry; none of another type."""
    if entry is None:
        return []
    _, kind, size, values = entry
    codes = {"b": "b", "B": "B", "s": "h", "S": "H", "l": "i", "L": "I", "f": "f", "d": "d"}
    code = codes.get(chr(kind))
    if code is None or not size or size % struct.calcsize(code) or len(values) > 1000:
        return []
    return [float(value) for (value,) in struct.iter_unpack(f">{code}", values)]


def _text(values: memoryview) -> str:
    return bytes(values).split(b"\0")[0].decode("latin-1").strip()


def _said_time(text: str) -> datetime | None:
    """A time of ``yymmddhhmmss.sss``."""
    try:
        return datetime.strptime(text[:12], "%y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _after(epoch: datetime, **passed: float) -> datetime | None:
    try:
        return epoch + timedelta(**passed)
    except (OverflowError, ValueError):
        return None


# -- motion --------------------------------------------------------------------------------------------------


def _is_motion(data: bytes) -> bool:
    return (
        data[:2] == b"\0\0" and len(data) >= 4 and len(data) - 4 == _MOTION_SIZES.get(data[2] | data[3] << 8)
    )


def _motion(data: bytes) -> Reading:
    kind, time = data[2], None
    if kind == 5:
        place = struct.unpack_from("<2d", data, 4)
    elif kind == 6:
        seconds, fix, north, east = struct.unpack_from("<di2d", data, 4)
        place = (north, east)
        if fix < 2:
            return None, None, ""
        time = _after(_GPS_EPOCH - _LEAP, seconds=seconds)
    else:
        return None, None, ""
    return time, (place[0], place[1]) if is_place(*place) else None, ""


_FORMATS: tuple[tuple[Callable[[bytes], bool], Callable[[bytes], Reading]], ...] = (
    (_is_gpmf, _gpmf),
    (_is_motion, _motion),
)
"""Whether a packet is of a format, and what it says."""
