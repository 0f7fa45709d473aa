"""Which videos have changed since a generation of the catalogue, so that what is made of them is made again
for these alone.

Triggers that a connection has for itself note every change of a table on videos, whichever method makes it.
How far back the notes go is kept beside the generation: one that was raised without notes, by another version
of moviola, makes them begin again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moviola.library.disk.database import Database

__all__ = ["Changes"]

_OF_FACTS = {
    "videos": "row", "captures": "video", "routes": "video", "copies": "video", "facts": "video",
    "cue_tracks": "video",
}  # fmt: skip
"""Tables of whose rows facts of videos are made, and the column with the video's row number."""
_TIMES = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}


def _notes(name: str, what: str, table: str, statements: str) -> str:
    return (
        f"CREATE TEMP TRIGGER IF NOT EXISTS {name}_{what} AFTER {what} ON main.{table} BEGIN {statements} END"
    )


_NOTING = (
    "CREATE TEMP TABLE IF NOT EXISTS touched (video INTEGER)",
    *(
        _notes(table, what, table, "".join(f"INSERT INTO touched VALUES ({row}.{column});" for row in rows))
        for table, column in _OF_FACTS.items()
        for what, rows in _TIMES.items()
    ),
    # The zone of a camera is one of all its videos.
    *(
        _notes("zones", what, "camera_zones", "INSERT INTO touched SELECT video FROM captures;")
        for what in _TIMES
    ),
)
_NOTED = "SELECT value FROM meta WHERE key = ?"
_NOTE = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class Changes(Database):
    """The ``changed`` table of a catalogue: the last generation in which each video changed."""

    @contextmanager
    def _noting_changes(self) -> Iterator[None]:
        """Note the videos that change inside, in a transaction that raises the generation."""
        for statement in _NOTING:
            self._rows(statement)
        self._rows("DELETE FROM touched")
        yield
        now = self._counter("generation")
        if self._counter("noted_to") != now - 1:
            self._rows("DELETE FROM changed")
            self._rows(_NOTE, ("noted_from", now - 1))
        self._rows(_NOTE, ("noted_to", now))
        self._rows("DELETE FROM changed WHERE video IN (SELECT video FROM touched)")
        self._rows("INSERT INTO changed SELECT DISTINCT video, ? FROM touched", (now,))
        self._rows("DELETE FROM touched")

    def changed_since(self, generation: int) -> set[int] | None:
        """Row numbers of the videos that have come, gone or changed since a generation; None where that is
        not known.
        """
        now = self._counter("generation")
        if generation == now:
            return set()
        known = self._counter("noted_to") == now and 0 <= self._counter("noted_from") <= generation < now
        if not known:
            return None
        rows = self._rows("SELECT video FROM changed WHERE generation > ?", (generation,))
        return {row for (row,) in rows}

    def _counter(self, key: str) -> int:
        """A counter; -1 where there is none."""
        rows = self._rows(_NOTED, (key,))
        return int(rows[0][0]) if rows else -1
