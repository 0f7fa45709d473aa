"""``cache/verdicts.sqlite``: verdicts of models that looked at moments, so that none is asked twice.

A verdict is kept by a digest of all that it depends on, and by the content of its video. The file may be
deleted: the model is then asked again. The oldest verdicts make room for new ones.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from pathlib import Path

from moviola.errors import LibraryError
from moviola.files.caches import cache_of
from moviola.library.disk.database import LateDatabase

__all__ = ["VerdictStore"]

VERDICTS_FILE = "verdicts.sqlite"
_FORMAT, _MOST, _KEEP = 1, 10_000, 0.9
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_TABLES = """
CREATE TABLE IF NOT EXISTS verdicts (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL,
    said TEXT NOT NULL, why TEXT NOT NULL
);
"""


class VerdictStore(LateDatabase):
    """The verdicts on moments of a library. Safe for threads.

    What cannot be read, or was written by another version, counts as missing; what is damaged is deleted.

    Args:
        library: its folder.
        most: verdicts that are kept.
    """

    holds, remedy = "cache of verdicts", "a search that a model looks at makes it again"
    script, tables, format = _TABLES, ("verdicts",), _FORMAT

    def __init__(self, library: Path, most: int = _MOST) -> None:
        super().__init__(cache_of(library) / VERDICTS_FILE)
        self._most = most

    def get(self, key: str) -> tuple[str, str] | None:
        """A verdict and its reason; None where none is kept."""
        try:
            rows = self._rows_of("verdicts", "SELECT said, why FROM verdicts WHERE key = ?", (key,))
        except LibraryError as error:
            self._give_up(error)
            return None
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def put(self, key: str, content: str, said: str, why: str) -> None:
        """Keep a verdict on some content, by its hash; where the disk is full, or not writable, it is not."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._make()
            with self._changing():
                self._put_all("verdicts (key, content, said, why)", [(key, content, said, why)])
                (count,) = self._rows("SELECT count(*) FROM verdicts")[0]
                if count > self._most:
                    oldest = "SELECT number FROM verdicts ORDER BY number LIMIT ?"
                    excess = count - int(self._most * _KEEP)
                    self._rows(f"DELETE FROM verdicts WHERE number IN ({oldest})", (excess,))
        except LibraryError as error:
            self._give_up(error)
        except OSError:
            return

    def keep_only(self, contents: Collection[str]) -> None:
        """Delete the verdicts on all other content."""
        others = "content NOT IN (SELECT value FROM json_each(?))"
        try:
            kept = json.dumps([*contents])
            self._rows_of("verdicts", f"DELETE FROM verdicts WHERE {others}", (kept,))
            self._rows_of("verdicts", "VACUUM")
        except LibraryError as error:
            self._give_up(error)

    def _upgrade(self, version: int) -> None:
        """Verdicts of an earlier format are asked for again."""
        self._rows("DELETE FROM verdicts")

    def _give_up(self, error: LibraryError) -> None:
        """Delete a damaged file, which is made again; one of another version, or of another user, stays."""
        if getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
            return
        self.close()
        self._there = False
        for suffix in ("-shm", "-wal", ""):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
