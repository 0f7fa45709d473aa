"""Places that dash cameras with chips of Novatek write (Viofo and many others).

A box ``gps `` in the index of the MP4 says where the blocks of places are, one a second, among the pictures:
boxes ``free`` that begin with ``GPS ``. In a block are the clock as six whole numbers of 32 bits (hour,
minute, second, year, month, day), a letter for whether satellites are seen, those of north or south, and east
or west, and the place as degrees times a hundred and minutes, in floating point of 32 bits. Where in the
block that begins depends on the camera. The clock is that on the spot, as far as the camera's zone was set.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from moviola.media.boxes import boxes_in
from moviola.media.measurements import is_place
from moviola.media.subtitles.values import Fix

__all__ = ["has_box_of_places", "read_dash_camera"]

_RECORD = struct.Struct("<6I4c2f")
# Bytes of a block within which its values begin; blocks of a file at most, which are a day.
_WITHIN, _MOST = 128, 100_000


def has_box_of_places(path: Path) -> bool:
    """Whether the index of an MP4 has such a box, whatever it holds."""
    with suppress(OSError), path.open("rb") as file:
        return _box_of_places(file) is not None
    return False


def read_dash_camera(path: Path) -> tuple[Fix, ...]:
    """Clock and place by second since the first block; none of a damaged file, or of other blocks."""
    found: dict[int, Fix] = {}
    first: datetime | None = None
    with suppress(OSError), path.open("rb") as file:
        for block in _blocks(file):
            if (read := _reading(block)) is None:
                continue
            clock, place = read
            first = first or clock
            second = int((clock - first).total_seconds())
            if second >= 0:
                found.setdefault(second, Fix(float(second), clock.isoformat(), *(place or ())))
    return tuple(found[second] for second in sorted(found))


def _box_of_places(file: BinaryIO) -> tuple[int, int] | None:
    for kind, start, end in boxes_in(file, 0, file.seek(0, 2)):
        if kind == b"moov":
            return next(((a, e) for inner, a, e in boxes_in(file, start, end) if inner == b"gps "), None)
    return None


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """The beginnings of the blocks that the box names."""
    if (box := _box_of_places(file)) is None:
        return
    start, end = box
    file.seek(start)
    table = file.read(min(end - start, 8 + 8 * _MOST))[8:]
    for at, size in struct.iter_unpack(">2I", table[: len(table) // 8 * 8]):
        file.seek(at)
        block = file.read(min(size, _WITHIN + _RECORD.size))
        if block[4:12] == b"freeGPS ":
            yield block


def _reading(block: bytes) -> tuple[datetime, tuple[float, float] | None] | None:
    """Clock and place of a block; no place where no satellite was seen."""
    for at in range(12, min(_WITHIN, len(block) - _RECORD.size + 1), 4):
        hour, minute, second, year, month, day, active, north, east, _, *angles = _RECORD.unpack_from(
            block, at
        )
        if active not in (b"A", b"V", b"\0") or not 0 < year < 3000:
            continue
        try:
            clock = datetime(year + 2000 if year < 100 else year, month, day, hour, minute, second)
        except ValueError:
            continue
        if active != b"A":
            return clock, None
        if north in (b"N", b"S") and east in (b"E", b"W"):
            place = [
                _degrees(one, sign in (b"S", b"W")) for one, sign in zip(angles, (north, east), strict=True)
            ]
            return clock, (place[0], place[1]) if is_place(*place) else None
    return None


def _degrees(value: float, below: bool) -> float:
    """Degrees of a number whose last two digits before the point are minutes."""
    degrees = int(value / 100) if abs(value) < 1e6 else 1e6
    return (degrees + (value - 100 * degrees) / 60) * (-1 if below else 1)
