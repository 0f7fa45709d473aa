"""Removed videos, kept with all their data until the next compaction."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from moviola.errors import InvalidValue, NotFound
from moviola.library.disk.cue_words import tracks_counted, with_terms
from moviola.library.disk.database import Database
from moviola.library.disk.places import is_below, moved_path
from moviola.library.disk.schema import ADDED, CUES_OF

__all__ = ["RemovedVideo", "RemovedVideos"]


@dataclass(frozen=True, slots=True)
class RemovedVideo:
    """A removed video as it was, with its former row number; ``since`` is the time of its removal, UTC,
    ``YYYY-MM-DD HH:MM:SS``.
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
        """Store the data of a video that is about to be removed, and the root above it."""
        content = {table: self._rows_on(row, table) for table in ("videos", "cues", *ADDED)}
        (video,) = content["videos"]
        columns = ("path", "volume", "patterns", "defaults")
        roots = self._rows_of("roots", f"SELECT {', '.join(columns)} FROM roots")
        above = sorted(
            (root for root in roots if is_below(video["path"], root[0])), key=lambda root: len(root[0])
        )
        content["roots"] = [dict(zip(columns, root, strict=True)) for root in above[-1:]]
        known = {name: video[name] for name in ("row", "video_id", "path", "hash")}
        self._insert_row("removed", {**known, "content": json.dumps(content)})

    def _rows_on(self, row: int, table: str) -> list[dict[str, Any]]:
        """The rows of a table that belong to a video, by column."""
        names = [name for (name,) in self._rows("SELECT name FROM pragma_table_info(?)", (table,))]
        of_video = {"videos": "row = ?", "cues": CUES_OF}.get(table, "video = ?")
        rows = self._rows(f"SELECT {', '.join(names)} FROM {table} WHERE {of_video}", (row,))
        return [dict(zip(names, values, strict=True)) for values in rows]

    def removed_content(self, row: int) -> dict[str, list[dict[str, Any]]]:
        """The rows of a removed video, by table; :class:`NotFound` if there is none of that row number."""
        rows = self._rows_of("removed", "SELECT content FROM removed WHERE row = ?", (row,))
        if not rows:
            raise NotFound(f"row {row}: not among the removed videos; `moviola library removed` shows them")
        content: dict[str, list[dict[str, Any]]] = json.loads(rows[0][0])
        return content

    def bring_back(self, row: int, **changes: Any) -> int:
        """Put a removed video in again, with some other values of its row in ``videos``; returns its new row
        number. :class:`InvalidValue` where its id or path belongs to another video now; other errors as in
        :meth:`removed_content`.
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
        for root in content.pop("roots", []):  # which may be forgotten by now; earlier versions kept none
            self._insert_row("roots", root, "IGNORE")
        new = self._insert_row("videos", video)
        for table, rows in content.items():
            for values in with_terms(rows) if table == "cues" else rows:
                # A further path may be another video's by now.
                self._insert_row(table, {**values, "video": new}, "IGNORE")
        if "cue_tracks" not in content:
            self._rows(*tracks_counted(new))
        self._rows("DELETE FROM copies WHERE video = ? AND path IN (SELECT path FROM videos)", (new,))
        self._rows("DELETE FROM removed WHERE row = ?", (row,))
        return new

    def move_removed(self, old: str, new: str) -> None:
        """Replace a folder in all paths of removed videos."""
        for row, path, text in self._rows("SELECT row, path, content FROM removed"):
            content = json.loads(text)
            for one in (*content["videos"], *content["copies"], *content.get("roots", ())):
                one["path"] = moved_path(one["path"], old, new)
            values = (moved_path(path, old, new), json.dumps(content), row)
            self._rows("UPDATE removed SET path = ?, content = ? WHERE row = ?", values)

    def leave_cues_of_removed(self) -> None:
        """Forget where features of cues of removed videos lie; their texts are kept."""
        none = {f"cue_{part}": None for part in ("shard", "offset", "count", "crc")}
        for row, text in self._rows("SELECT row, content FROM removed"):
            content = json.loads(text)
            content["videos"] = [{**video, **none} for video in content["videos"]]
            self._rows("UPDATE removed SET content = ? WHERE row = ?", (json.dumps(content), row))

    def forget_removed(self) -> None:
        """Delete all that is kept of removed videos."""
        self._rows("DELETE FROM removed")
