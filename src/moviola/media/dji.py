"""Places that cameras and drones of DJI measure: tracks ``djmd``, a message of Protocol Buffers a picture.

DJI has published no description. The first packet names the model; where a place lies in those behind it is
known of the models below, from what ExifTool and others have found out. Field 1 of a place says whether it is
in degrees, else it is in radians, but for two models that do not say so.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from moviola.media.measurements import Reading, is_place

__all__ = ["Dji", "dji_of"]

_NAME = re.compile(rb"dvtm_([\w-]{2,40})\.proto")
# Bytes in which the first packet names its model.
_HEAD = 4096
# Fields that lead to a place, by the names of models.
_PLACES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("Mini4_Pro", "Mini5Pro", "Air3", "Air3s", "Mavic4"), (3, 3, 4, 1)),
    **dict.fromkeys(("wm265e", "pm320", "wm261", "wa345e"), (3, 3, 4, 1)),
    **dict.fromkeys(("AVATA2", "dji_neo"), (3, 4, 4, 1)),
    **dict.fromkeys(("ac203", "ac204", "ac206", "oq101"), (3, 4, 2, 1)),
}  # fmt: skip
_IN_DEGREES = frozenset({"Mavic4", "Mini5Pro"})

Field = tuple[int, int | bytes]
"""Number of a field, and its value: a whole number, or bytes."""


@dataclass(frozen=True, slots=True)
class Dji:
    """Reads the packets of a track after that which names its model."""

    model: str

    def __call__(self, packet: bytes) -> Reading:
        """Time, which is not known, place, and no name of a camera."""
        return None, self._place(packet), ""

    def _place(self, packet: bytes) -> tuple[float, float] | None:
        inside: int | bytes | None = packet
        for number in _PLACES[self.model]:
            inside = dict(_fields(inside)).get(number) if isinstance(inside, bytes) else None
        if not isinstance(inside, bytes):
            return None
        found = dict(_fields(inside))
        angles = [found.get(number) for number in (2, 3)]
        if not all(isinstance(one, bytes) and len(one) == 8 for one in angles):
            return None
        north, east = (struct.unpack("<d", one)[0] for one in angles if isinstance(one, bytes))
        if not (found.get(1) == 1 or self.model in _IN_DEGREES):
            north, east = math.degrees(north), math.degrees(east)
        return (north, east) if is_place(north, east) else None


def dji_of(packet: bytes) -> Dji | None:
    """What reads a track whose first packet this is; None of another format, or a model that is not known."""
    named = _NAME.search(packet, 0, _HEAD)
    model = named[1].decode() if named else ""
    return Dji(model) if model in _PLACES else None


def _fields(message: bytes) -> Iterator[Field]:
    """The fields of a message, up to the first that is not whole; the last of a number counts."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(message, at)
        elif kind in (1, 2, 5):
            size, at = (8, at) if kind == 1 else (4, at) if kind == 5 else _varint(message, at)
            value, at = message[at : at + size], at + size
        else:
            return
        if at > len(message):
            return
        yield number, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A whole number of seven bits a byte, and the place behind it, beyond the end where it is not whole."""
    value = 0
    for count in range(10):
        if at + count >= len(message):
            break
        value |= (message[at + count] & 127) << 7 * count
        if message[at + count] < 128:
            return value, at + count + 1
    return 0, len(message) + 1
