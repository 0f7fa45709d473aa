"""``stills.sqlite``: small stills of videos, shown when their files are away, and their fingerprints.

They are keyed by content, not by row, and indexing into a new library makes them again: losing them costs
no answer. There is a still for each segment; at some 1.4 kB they are smaller than its features. A fingerprint
(:mod:`moviola.library.disk.fingerprints`) takes some 400 bytes a second: its pictures are kept as differences
from the one before, compressed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from moviola.library.disk.backups import set_aside
from moviola.library.disk.database import LateDatabase

if TYPE_CHECKING:
    from moviola.library.disk.fingerprints import Fingerprint

__all__ = ["StillStore"]

STILLS_FILE = "stills.sqlite"

_TABLES = """
CREATE TABLE IF NOT EXISTS stills (
    content TEXT NOT NULL, time REAL NOT NULL, picture BLOB NOT NULL, PRIMARY KEY (content, time)
);
CREATE TABLE IF NOT EXISTS timed_fingerprints (
    content TEXT PRIMARY KEY, times BLOB NOT NULL, frames BLOB NOT NULL
);
DROP TABLE IF EXISTS fingerprints;
"""
_FINGERPRINTS = "timed_fingerprints"  # others, without times, were kept before


class StillStore(LateDatabase):
    """The small stills and fingerprints of a library."""

    holds, remedy = "collection of stills", "`moviola repair` moves it to backups/, answers stay the same"
    script, tables = _TABLES, ("stills", _FINGERPRINTS)

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        super().__init__(folder / STILLS_FILE, read_only=read_only)

    def put(
        self, content: str, stills: Sequence[tuple[float, bytes]], fingerprint: Fingerprint | None
    ) -> None:
        """Store stills of some content, by its hash (seconds, and WebP bytes), and its fingerprint."""
        if not stills and fingerprint is None:
            return
        self._make()
        with self._changing():
            rows = [(content, time, picture) for time, picture in stills]
            self._put_all("stills (content, time, picture)", rows)
            if fingerprint is not None:
                # Times in milliseconds, and frames as differences from the one before, compressed.
                times = np.round(fingerprint.times * 1000).astype("<u4").tobytes()
                first = np.zeros_like(fingerprint.frames[:1])
                frames = zlib.compress(np.diff(fingerprint.frames, axis=0, prepend=first).tobytes())
                self._put_all(f"{_FINGERPRINTS} (content, times, frames)", [(content, times, frames)])

    def fingerprint(self, content: str) -> Fingerprint | None:
        """The fingerprint of some content; None where none is kept, or it is damaged."""
        from moviola.library.disk.fingerprints import SIDE, Fingerprint

        statement = f"SELECT times, frames FROM {_FINGERPRINTS} WHERE content = ?"
        found = self._rows_of(_FINGERPRINTS, statement, (content,))
        if not found:
            return None
        times, frames = found[0]
        try:
            stamps = np.frombuffer(times, "<u4") / 1000
            steps = np.frombuffer(zlib.decompress(frames), np.uint8).reshape(len(stamps), SIDE, SIDE)
        except (ValueError, TypeError, zlib.error):
            return None
        return Fingerprint(stamps, np.cumsum(steps, axis=0, dtype=np.uint8))

    def with_fingerprint(self) -> set[str]:
        return {
            content for (content,) in self._rows_of(_FINGERPRINTS, f"SELECT content FROM {_FINGERPRINTS}")
        }

    def nearest(self, content: str, time: float) -> bytes | None:
        """The still of some content that is nearest in time; None where there is none."""
        # By the index on content and time: a long film has thousands of stills.
        beside = " UNION ALL ".join(
            f"SELECT * FROM (SELECT time, picture FROM stills WHERE content = ? AND time {there} LIMIT 1)"
            for there in ("<= ? ORDER BY time DESC", "> ? ORDER BY time")
        )
        statement = f"SELECT picture FROM ({beside}) ORDER BY abs(time - ?), time LIMIT 1"
        rows = self._rows_of("stills", statement, (content, time, content, time, time))
        return bytes(rows[0][0]) if rows else None

    def keep_only(self, contents: Collection[str]) -> None:
        """Delete the stills and fingerprints of all other content."""
        others, kept = "content NOT IN (SELECT value FROM json_each(?))", json.dumps([*contents])
        for table in self.tables:
            self._rows_of(table, f"DELETE FROM {table} WHERE {others}", (kept,))
        self._rows_of("stills", "VACUUM")

    def put_aside(self) -> None:
        """Move the file to ``backups/``; another one is made when stills are kept."""
        self.close()
        self._there = False
        for path in (self.path.with_name(self.path.name + suffix) for suffix in ("-shm", "-wal", "")):
            if path.exists():
                set_aside(path.parent, path)
