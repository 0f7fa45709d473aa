"""When, where and with what the videos of a library were taken.

The best time is that of the file's tags, container or name (:mod:`moviola.media.capture`); failing that, the
file's modification time, which any copying may change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Literal, get_args

from moviola.library.disk.camera_zones import CameraZones
from moviola.library.disk.database import among
from moviola.library.disk.schema import VideoRow
from moviola.types import Capture, Waypoint

__all__ = ["ZONES", "Captures", "Clock", "Taken", "Zone", "clock_of", "taken_of"]


Zone = Literal["recorded", "utc", "none"]
ZONES: tuple[Zone, ...] = get_args(Zone)
Clock = tuple[int, int, int]
"""A time in :data:`ZONES`: the zone's place there, microseconds of the clock since 1970, and those that this
clock is east of UTC, 0 where that is unknown.
"""

_EPOCH, _TICK = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Taken:
    """When a video was taken.

    Attributes:
        wall: local clock time without a zone; if the place is unknown, the clock of this machine's zone.
        zone: whether the file says the offset (``"recorded"``), universal time alone (``"utc"``), or a wall
            clock without a zone (``"none"``).
        source: ``"zone"`` is a time in the zone that was given for its camera, ``"file"`` the file's
            modification time.
        offset: seconds east of UTC, where the file gives it.
    """

    wall: datetime
    zone: Zone
    source: Literal["tags", "satellites", "container", "name", "zone", "file"]
    offset: float | None = None

    @property
    def instant(self) -> datetime:
        """The time with a zone; this machine's where none is recorded."""
        if self.offset is None:
            return self.wall.astimezone()
        return self.wall.replace(tzinfo=timezone(timedelta(seconds=self.offset)))

    def __str__(self) -> str:
        said = self.wall if self.zone == "none" else self.instant
        return said.isoformat(timespec="seconds")


_COLUMNS = "video, taken, source, latitude, longitude, make, model"
_ROUTES = "SELECT video, points FROM routes"
_CAPTURES = f"SELECT {_COLUMNS} FROM captures"


class Captures(CameraZones):
    """The tables ``captures`` and ``routes`` of a catalogue."""

    def captures(self, rows: Collection[int] | None = None) -> dict[int, Capture]:
        """Capture data by row number, of all or some of the videos whose files were read, in the zones of
        their cameras.
        """
        where, values = among("video", rows)
        found = self._rows_of("captures", f"{_CAPTURES} WHERE {where}", values)
        return self._in_zones({row: self._capture(row, *values) for row, *values in found})

    def has_places(self) -> bool:
        """Whether the place of any video is known."""
        return bool(self._rows_of("captures", "SELECT 1 FROM captures WHERE latitude IS NOT NULL LIMIT 1"))

    def capture(self, row: int) -> Capture:
        """Capture data of one video; empty where its file was not read."""
        return self._in_zones({row: self.capture_of_file(row)})[row]

    def capture_of_file(self, row: int) -> Capture:
        """The same as the file has it, whatever zone was given for its camera."""
        rows = self._rows_of("captures", f"{_CAPTURES} WHERE video = ?", (row,))
        return self._capture(*rows[0]) if rows else Capture()

    def put_captures(self, captures: Mapping[int, Capture]) -> None:
        """Store capture data by row number."""
        rows = [(row, *astuple(capture)) for row, capture in captures.items()]
        self._put_all(f"captures ({_COLUMNS})", rows)

    def routes(self, rows: Collection[int] | None = None) -> dict[int, tuple[Waypoint, ...]]:
        """Where cameras were while they recorded, by row number, of all or some of the videos of which it is
        known.
        """
        where, values = among("video", rows)
        found = self._rows_of("routes", f"{_ROUTES} WHERE {where}", values)
        return {row: self._route(row, text) for row, text in found}

    def put_route(self, row: int, route: Sequence[Waypoint]) -> None:
        """Store where the camera of a video was."""
        self._put_all("routes (video, points)", [(row, json.dumps(route, separators=(",", ":")))])

    def _route(self, row: int, text: str) -> tuple[Waypoint, ...]:
        try:
            return tuple(
                (float(second), float(north), float(east)) for second, north, east in json.loads(text)
            )
        except (TypeError, ValueError) as error:
            raise self._damaged(f"route of video {row}") from error

    def _capture(self, row: int, *values: object) -> Capture:
        capture = Capture(*values)  # type: ignore[arg-type]
        try:
            if capture.taken:
                datetime.fromisoformat(capture.taken)
            if not {type(capture.latitude), type(capture.longitude)} <= {float, type(None)}:
                raise TypeError(capture.latitude)
            return capture
        except (TypeError, ValueError) as error:
            raise self._damaged(f"capture of video {row}") from error


def taken_of(video: VideoRow, capture: Capture) -> Taken:
    """The best known time at which a video was taken."""
    said, zone, offset = _said_of(video, capture)
    source = (capture.source or "tags") if capture.taken else "file"
    if zone == "none":
        return Taken(said, zone, source)
    if zone == "utc":
        # By its stamp, as that says which of two equal times it is on a clock that is put back.
        return Taken(datetime.fromtimestamp(said.timestamp()), zone, source)
    return Taken(said.replace(tzinfo=None), zone, source, offset.total_seconds())


def clock_of(video: VideoRow, capture: Capture) -> Clock:
    """The same as whole numbers, whatever this machine's zone."""
    said, zone, offset = _said_of(video, capture)
    return ZONES.index(zone), (said.replace(tzinfo=UTC) - _EPOCH) // _TICK, offset // _TICK


def _said_of(video: VideoRow, capture: Capture) -> tuple[datetime, Zone, timedelta]:
    """When a video was taken, as its file says it, and how far east of UTC that is, 0 where it is unknown."""
    if not capture.taken:
        return datetime.fromtimestamp(video.mtime_ns / 1e9, UTC), "utc", timedelta()
    said = datetime.fromisoformat(capture.taken)
    offset = said.utcoffset()
    if offset is None:
        return said, "none", timedelta()
    # Satellites know the zone where the camera's clock is another one; a name may have one.
    recorded = capture.source in ("tags", "zone", "") or (
        capture.source in ("satellites", "name") and bool(offset)
    )
    return said, "recorded" if recorded else "utc", offset
