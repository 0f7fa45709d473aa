"""Removed videos, kept with all their data until the next compaction."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from moviola.errors import InvalidValue, NotFound
from moviola.library.disk.database import Database
from moviola.library.disk.schema import ADDED, CUES_OF

__all__ = ["RemovedVideo", "RemovedVideos"]

_TABLES = ("videos", "cues", *ADDED)


@dataclass(frozen=True, slots=True)
class RemovedVideo:
    """A removed video.

    Attributes:
        row: its former row number.
        video_id, path, hash: as they were.
        since: time of removal, UTC, ``YYYY-MM-DD HH:MM:SS``.
    """

    row: int
    video_id: str
    path: str
    hash: str
    since: str


class RemovedVideos(Database):
    """The ``removed`` table of a catalogue: rows of all tables on a video, as JSON."""

    def removed(self) -> list[RemovedVideo]:
        """Videos removed since the last compaction, newest first."""
        rows = self._rows_of(
            "removed", "SELECT row, video_id, path, hash, since FROM removed ORDER BY since DESC, row DESC"
        )
        return [RemovedVideo(*row) for row in rows]

    def keep_removed(self, row: int) -> None:
        """Store the data of a video that is about to be removed."""
        content = {}
        for table in _TABLES:
            names = self._columns_of(table)
            of_video = {"videos": "row = ?", "cues": CUES_OF}.get(table, "video = ?")
            rows = self._rows(f"SELECT {', '.join(names)} FROM {table} WHERE {of_video}", (row,))
            content[table] = [dict(zip(names, values, strict=True)) for values in rows]
        (video,) = content["videos"]
        self._rows(
            "INSERT OR REPLACE INTO removed (row, video_id, path, hash, content) VALUES (?, ?, ?, ?, ?)",
            (row, video["video_id"], video["path"], video["hash"], json.dumps(content)),
        )

    def removed_content(self, row: int) -> dict[str, list[dict[str, Any]]]:
        """What is known of a removed video: rows by table.

        Raises:
            NotFound: nothing with that row number was removed.
        """
        rows = self._rows_of("removed", "SELECT content FROM removed WHERE row = ?", (row,))
        if not rows:
            raise NotFound(f"row {row}: not among the removed videos; `moviola library removed` shows them")
        content: dict[str, list[dict[str, Any]]] = json.loads(rows[0][0])
        return content

    def bring_back(self, row: int, **changes: Any) -> int:
        """Put a removed video in again, under a new row number, which it gives.

        Args:
            row: that it had.
            changes: other values of its row in ``videos``.

        Raises:
            NotFound: as of :meth:`removed_content`.
            InvalidValue: its id or path belongs to another video now.
        """
        content = self.removed_content(row)
        (video,) = content.pop("videos")
        video = {name: value for name, value in video.items() if name != "row"} | changes
        taken = self._rows(
            "SELECT video_id FROM videos WHERE video_id = ? OR path = ?", (video["video_id"], video["path"])
        )
        if taken:
            raise InvalidValue(
                f"{video['video_id']}: {taken[0][0]} has its id or its file now; remove that one first"
            )
        new = self._insert(*_insertion("videos", video))
        for table, rows in content.items():
            for values in rows:
                self._rows(*_insertion(table, {**values, "video": new}))
        self._rows("DELETE FROM removed WHERE row = ?", (row,))
        return new

    def forget_removed(self) -> None:
        """Nothing that was removed can be brought back any more."""
        self._rows("DELETE FROM removed")

    def _columns_of(self, table: str) -> list[str]:
        return [name for (name,) in self._rows("SELECT name FROM pragma_table_info(?)", (table,))]


def _insertion(table: str, values: dict[str, Any]) -> tuple[str, tuple[Any, ...]]:
    marks = ", ".join("?" * len(values))
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values())
