"""Formats of what cameras measure while they record: what one packet says of time and place.

- GPMF of GoPro: keys of four letters, each with a type, a size and a number, nested. ``GPS5`` are places,
  ``GPSU`` universal times, ``GPSF`` and ``GPSP`` how good they are; ``GPS9`` has all of it. GoPro describes
  it at github.com/gopro/gpmf-parser.
- Camera Motion Metadata of Google (``camm``): type 5 are places, type 6 places with their times.
- Real Time Metadata of Sony (``rtmd``): sets of SMPTE RDD 18, whose items ``85xx`` are those of EXIF's GPS.
- Local sets of drones (MISB ST 0601, in MPEG-TS): item 2 is the time, 13 and 14 are the place of the camera.

A stream is known by its packets, since programs that copy it change its name. What a field says beyond the
end of its packet is not there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

__all__ = ["Reading", "is_place", "reader_of"]

_DEEPEST = 8
# A dilution of precision from which on places are wrong by far.
_WORST = 10.0
_EPOCH, _MILLENNIUM = datetime(1970, 1, 1, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)
_GPS_EPOCH = datetime(1980, 1, 6, tzinfo=UTC)
# Seconds by which satellites' clocks are ahead of universal time since 2017.
_LEAP = timedelta(seconds=18)
_MOTION_SIZES = {0: 12, 1: 8, 2: 12, 3: 12, 4: 12, 5: 24, 6: 56, 7: 12}
# Keys of sets by SMPTE begin so; that of MISB's set.
_SMPTE = b"\x06\x0e\x2b\x34"
_DRONE = _SMPTE + bytes.fromhex("020b01010e01030101000000")

Reading = tuple[datetime | None, tuple[float, float] | None, str]
"""Time, place, and name of the camera of a packet."""


def reader_of(packet: bytes) -> Callable[[bytes], Reading] | None:
    """What reads the packets of a stream with this one; None for a format that is not known."""
    return next((read for is_of, read in _FORMATS if is_of(packet)), None)


def is_place(latitude: float, longitude: float) -> bool:
    """Whether these are degrees of a place; no satellite is written as two zeros."""
    return abs(latitude) <= 90 and abs(longitude) <= 180 and (latitude, longitude) != (0.0, 0.0)


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


# -- Sony ----------------------------------------------------------------------------------------------------


def _is_sony(data: bytes) -> bool:
    at = int.from_bytes(data[:2], "big")
    return 16 <= at <= 64 and data[at : at + 4] == _SMPTE


def _sony(data: bytes) -> Reading:
    items = dict(_sony_items(data))
    if items.get(0x8509, b"A")[:1] == b"V":  # satellites are lost
        return None, None, ""
    angles = [_angle(items.get(value, b""), items.get(sign, b"")) for sign, value in _SONY_ANGLES]
    time = None
    day = items.get(0x851D, b"").split(b"\0")[0].decode("ascii", "replace")
    if len(clock := _ratios(items.get(0x8507, b""))) == 3:
        try:
            time = datetime.strptime(day, "%Y:%m:%d").replace(tzinfo=UTC)
            time += timedelta(hours=clock[0], minutes=clock[1], seconds=clock[2])
        except (ValueError, OverflowError):
            time = None
    north, east = angles
    place = None if north is None or east is None or not is_place(north, east) else (north, east)
    return time, place, ""


# Items of a sign and of an angle: north and east.
_SONY_ANGLES = ((0x8501, 0x8502), (0x8503, 0x8504))


def _sony_items(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The items of all sets of a packet, by number."""
    at = int.from_bytes(data[:2], "big")
    while at + 4 <= len(data):
        if data[at : at + 4] == _SMPTE:  # items of a set follow its key and its length
            _, at = _length(data, at + 16)
            continue
        tag, size = struct.unpack_from(">HH", data, at)
        if not tag or at + 4 + size > len(data):
            return
        yield tag, data[at + 4 : at + 4 + size]
        at += 4 + size


def _ratios(values: bytes) -> list[float]:
    """Fractions of two whole numbers; none where one has no value."""
    if not values or len(values) % 8:
        return []
    pairs = [*struct.iter_unpack(">2I", values)]
    return [above / below for above, below in pairs] if all(below for _, below in pairs) else []


def _angle(values: bytes, sign: bytes) -> float | None:
    """Degrees of degrees, minutes and seconds; below 0 in the south and west."""
    parts = _ratios(values)
    if len(parts) != 3 or sign[:1] not in (b"N", b"S", b"E", b"W"):
        return None
    return (parts[0] + parts[1] / 60 + parts[2] / 3600) * (-1 if sign[:1] in (b"S", b"W") else 1)


# -- drones --------------------------------------------------------------------------------------------------


def _is_drone(data: bytes) -> bool:
    return data.startswith(_DRONE)


def _drone(data: bytes) -> Reading:
    size, at = _length(data, len(_DRONE))
    items: dict[int, bytes] = {}
    end = min(len(data), at + size)
    while at + 2 <= end:
        tag, (size, at) = data[at], _length(data, at + 1)
        if at + size > end:
            break
        items[tag] = data[at : at + size]
        at += size
    time, place = None, None
    if len(stamp := items.get(2, b"")) == 8:
        time = _after(_EPOCH, microseconds=int.from_bytes(stamp, "big"))
    if len(north := items.get(13, b"")) == len(east := items.get(14, b"")) == 4:
        degrees = [int.from_bytes(one, "big", signed=True) / (2**31 - 1) for one in (north, east)]
        if all(-1 <= one <= 1 for one in degrees) and is_place(degrees[0] * 90, degrees[1] * 180):
            place = degrees[0] * 90, degrees[1] * 180
    return time, place, ""


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A length by the basic encoding rules (ITU-T X.690), and the place after it."""
    first = data[at] if at < len(data) else 0
    more = first & 127 if first & 128 else 0
    return (int.from_bytes(data[at + 1 : at + 1 + more], "big") if more else first), at + 1 + more


_FORMATS: tuple[tuple[Callable[[bytes], bool], Callable[[bytes], Reading]], ...] = (
    (_is_gpmf, _gpmf),
    (_is_sony, _sony),
    (_is_drone, _drone),
    (_is_motion, _motion),
)
"""Whether a packet is of a format, and what it says."""
