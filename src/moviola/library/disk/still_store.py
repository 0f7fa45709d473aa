"""``stills.sqlite``: small stills of videos, shown when their files are away.

They are keyed by content, not by row, and indexing into a new library makes them again: losing them costs
no answer. There is one for each segment; at some 1.4 kB they are smaller than its features.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from moviola.library.disk.database import Database, named

__all__ = ["STILLS_FILE", "StillStore"]

STILLS_FILE = "stills.sqlite"

_TABLE = """
CREATE TABLE IF NOT EXISTS stills (
    content TEXT NOT NULL, time REAL NOT NULL, picture BLOB NOT NULL, PRIMARY KEY (content, time)
)
"""


class StillStore(Database):
    """The small stills of a library.

    Args:
        folder: the library.
        read_only: never write.
    """

    holds, remedy = "collection of stills", "delete it; answers stay the same"

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self._folder, self._writes, self._there = folder, not read_only, False
        self.path = folder / STILLS_FILE  # opened when first needed

    def _open_file(self) -> bool:
        if not self._there and self.path.is_file():
            super().__init__(self.path, read_only=not self._writes)
            self._there = self._has("stills")
        return self._there

    def put(self, content: str, stills: Sequence[tuple[float, bytes]]) -> None:
        """Store stills of some content, by its hash: seconds, and WebP bytes."""
        if not stills:
            return
        if not self._open_file():
            with (
                named(self.path, self.holds, self.remedy),
                closing(sqlite3.connect(self.path, isolation_level=None)) as db,
            ):
                db.execute("PRAGMA journal_mode = WAL")
                db.execute(_TABLE)
            self._open_file()
        self._rows("BEGIN IMMEDIATE")
        try:
            self._insert_all(
                "INSERT OR REPLACE INTO stills (content, time, picture) VALUES (?, ?, ?)",
                [(content, time, picture) for time, picture in stills],
            )
            self._rows("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._rows("ROLLBACK")
            raise

    def problem(self) -> str:
        """Findings of SQLite's own check; empty if there are none, or no stills."""
        return self.integrity_problem() if self._open_file() else ""

    def nearest(self, content: str, time: float) -> bytes | None:
        """The still of some content that is nearest in time; None where there is none."""
        if not self._open_file():
            return None
        rows = self._rows(
            "SELECT picture FROM stills WHERE content = ? ORDER BY abs(time - ?) LIMIT 1", (content, time)
        )
        return bytes(rows[0][0]) if rows else None

    def keep_only(self, contents: Collection[str]) -> None:
        """Delete the stills of all other content."""
        if self._open_file():
            self._rows(
                "DELETE FROM stills WHERE content NOT IN (SELECT value FROM json_each(?))",
                (json.dumps([*contents]),),
            )
            self._rows("VACUUM")

    def close(self) -> None:
        """Close all connections."""
        if self._there:
            super().close()
