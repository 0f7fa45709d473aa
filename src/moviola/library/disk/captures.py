"""When, where and with what the videos of a library were taken.

The best time there is of a video is that of its file's tags, container or name
(:mod:`moviola.media.capture`), else that at which the file was last changed, which every copying may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Literal

from moviola.errors import LibraryError
from moviola.library.disk.database import REMEDY, Database
from moviola.library.disk.video_row import VideoRow
from moviola.types import Capture

__all__ = ["Captures", "Taken", "taken_of"]


@dataclass(frozen=True, slots=True)
class Taken:
    """When a video was taken.

    Attributes:
        wall: what a clock showed there, without a zone; of a time whose place is not known what one of this
            machine's zone showed.
        zone: ``"recorded"``: the file says the offset; ``"utc"``: it says universal time alone; ``"none"``:
            it says a wall clock without a zone.
        source: ``"tags"``, ``"container"``, ``"name"``, or ``"file"`` for the time of its last change.
        offset: seconds east of universal time, where the file says it.
    """

    wall: datetime
    zone: Literal["recorded", "utc", "none"]
    source: Literal["tags", "container", "name", "file"]
    offset: float | None = None

    @property
    def instant(self) -> datetime:
        """The same with a zone; this machine's where none is recorded."""
        if self.offset is None:
            return self.wall.astimezone()
        return self.wall.replace(tzinfo=timezone(timedelta(seconds=self.offset)))

    def __str__(self) -> str:
        said = self.wall if self.zone == "none" else self.instant
        return said.isoformat(timespec="seconds")


class Captures(Database):
    """The table ``captures`` of a catalogue."""

    def captures(self) -> dict[int, Capture]:
        """What files say of their making, by row number of their videos; those that were read."""
        if not self._has("captures"):
            return {}
        rows = self._rows("SELECT video, taken, source, latitude, longitude, make, model FROM captures")
        return {row: self._capture(row, *values) for row, *values in rows}

    def capture(self, row: int) -> Capture:
        """The same of one video; nothing where its file was not read."""
        if not self._has("captures"):
            return Capture()
        found = self._rows(
            "SELECT taken, source, latitude, longitude, make, model FROM captures WHERE video = ?", (row,)
        )
        return self._capture(row, *found[0]) if found else Capture()

    def put_captures(self, captures: Mapping[int, Capture]) -> None:
        """Store what files say, by row number of their videos."""
        self._insert_all(
            "INSERT OR REPLACE INTO captures (video, taken, source, latitude, longitude, make, model) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(row, *astuple(capture)) for row, capture in captures.items()],
        )

    def _capture(self, row: int, *values: object) -> Capture:
        capture = Capture(*values)  # type: ignore[arg-type]
        try:
            if capture.taken:
                datetime.fromisoformat(capture.taken)
            if not all(
                value is None or isinstance(value, float) for value in (capture.latitude, capture.longitude)
            ):
                raise TypeError(capture.latitude)
        except (TypeError, ValueError) as error:
            raise LibraryError(
                f"{self.path}: damaged catalogue (capture of video {row}); {REMEDY}"
            ) from error
        return capture


def taken_of(video: VideoRow, capture: Capture) -> Taken:
    """When a video was taken, as well as that is known."""
    if not capture.taken:
        changed = datetime.fromtimestamp(video.mtime_ns / 1e9, UTC)
        return Taken(changed.astimezone().replace(tzinfo=None), "utc", "file")
    said = datetime.fromisoformat(capture.taken)
    source: Literal["tags", "container", "name"] = capture.source or "tags"
    offset = said.utcoffset()
    if offset is None:
        return Taken(said, "none", source)
    if source == "container":
        return Taken(said.astimezone().replace(tzinfo=None), "utc", source)
    return Taken(said.replace(tzinfo=None), "recorded", source, offset.total_seconds())
