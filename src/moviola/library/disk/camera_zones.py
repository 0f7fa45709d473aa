"""Zones of cameras' clocks, as their owners know them.

Many cameras write what their clock shows as if it were universal time, or without a zone. Where a zone was
given for a camera, by the make and model that its files name, times of its clock are local times of that
zone, in videos that are there and in those that come. Times to which the camera wrote a zone itself, and
those of satellites, stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from moviola.errors import InvalidValue
from moviola.files.names import folded
from moviola.library.disk.database import Database
from moviola.types import Capture, several

__all__ = ["CameraZone", "CameraZones", "camera_zones_of"]

_OFFSET = r"(?i:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?"
_FURTHEST = timedelta(hours=14)


@dataclass(frozen=True, slots=True)
class CameraZone:
    """The zone of a camera's clock: ``camera`` is its make and model, or the model alone, case ignored,
    ``zone`` what :func:`zone_of` reads; empty: as its files say.
    """

    camera: str
    zone: str

    @classmethod
    def parse(cls, text: str) -> CameraZone:
        """``CAMERA=ZONE``, as on the command line. Raises InvalidValue: another form, or no zone."""
        camera, sign, zone = (part.strip() for part in text.rpartition("="))
        if not (sign and camera):
            raise InvalidValue(
                f"camera zone {text!r:.200}: write CAMERA=ZONE, such as 'HERO9 Black=Europe/Berlin', with "
                "the make and model that `moviola show` prints, or the model alone"
            )
        if zone:
            zone_of(zone)
        return cls(camera, zone)

    def is_of(self, capture: Capture) -> bool:
        """Whether a video was taken with this camera."""
        return folded(self.camera) in {folded(capture.camera), folded(capture.model)} - {""}


def camera_zones_of(texts: Sequence[str] | None) -> list[CameraZone]:
    """Zones as on the command line; none of None. Errors as in :meth:`CameraZone.parse`."""
    return [CameraZone.parse(text) for text in several("camera_zones", texts or ())]


def zone_of(text: str) -> tzinfo:
    """A zone by its name in the IANA database (``Europe/Berlin``), its hours east (``+02:00``), or ``UTC``.

    Raises:
        InvalidValue: no such zone.
    """
    if text.upper() in ("UTC", "GMT", "Z"):
        return UTC
    if offset := re.fullmatch(_OFFSET, text):
        sign, hours, minutes = offset.groups()
        east = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if east <= _FURTHEST:
            return timezone(-east if sign == "-" else east)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise _no_zone(text) from error
    except KeyError as error:
        raise _no_zone(text) from error


def _no_zone(text: str) -> InvalidValue:
    return InvalidValue(f"zone {text!r:.200}: no such zone; write Europe/Berlin, +02:00 or UTC")


class CameraZones(Database):
    """The ``camera_zones`` table of a catalogue."""

    def camera_zones(self) -> list[CameraZone]:
        """The zones that were given, by camera."""
        rows = self._rows_of("camera_zones", "SELECT camera, zone FROM camera_zones ORDER BY camera")
        return [CameraZone(camera, zone) for camera, zone in rows]

    def put_camera_zones(self, zones: Iterable[CameraZone]) -> None:
        """Store zones; an empty one is forgotten."""
        for one in zones:
            known = [(old.camera,) for old in self.camera_zones() if folded(old.camera) == folded(one.camera)]
            for old in known:
                self._rows("DELETE FROM camera_zones WHERE camera = ?", old)
            if one.zone:
                self._put_all("camera_zones (camera, zone)", [(one.camera, one.zone)])

    def _in_zones(self, captures: Mapping[int, Capture]) -> dict[int, Capture]:
        """Capture data with times in the zones of their cameras."""
        zones = self.camera_zones()
        return {row: _zoned(capture, zones) for row, capture in captures.items()}


def _zoned(capture: Capture, zones: Collection[CameraZone]) -> Capture:
    given = next((one for one in zones if one.is_of(capture)), None)
    if given is None or "T" not in capture.taken or capture.source == "satellites":
        return capture
    said = datetime.fromisoformat(capture.taken)
    if said.tzinfo is not None and capture.source != "container":
        return capture
    local = said.replace(tzinfo=zone_of(given.zone))
    return replace(capture, taken=local.isoformat(), source="zone")
