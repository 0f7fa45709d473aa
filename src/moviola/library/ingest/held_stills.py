"""Stills that a reader of text will want, held from when a film is decoded until its text is read.

They lie in a temporary database of SQLite, which no other process sees and which goes with this one, however
it ends: what is not held any more is decoded again, and reads the same. Of a film that is being decoded there
is a still a second; of what its shots are known of, only what is read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from threading import RLock
from typing import Any, Self

from moviola.media import ReadingStills

__all__ = ["MOST_HELD", "FilmStills", "HeldStills"]

MOST_HELD = 1 << 30
"""Bytes of all stills, from which on no more are held: some twelve hours of film whose shots are known."""


class HeldStills:
    """Stills by the digest of a film's content and by millisecond, for a reader of a ``longest_side``; safe
    for threads. Films with a shorter side below ``least_side`` pixels are left out.
    """

    def __init__(self, longest_side: int, rate: float, least_side: int) -> None:
        self.longest_side, self.rate, self.least_side = longest_side, rate, least_side
        self._lock, self._bytes, self._broken = RLock(), 0, False
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(
            "CREATE TABLE still (film TEXT, ms INTEGER, jpeg BLOB, PRIMARY KEY (film, ms))"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    @property
    def crowded(self) -> bool:
        """Whether it is time to read what is held: half of the room is taken."""
        return self._bytes >= MOST_HELD // 2

    def taken_of(self, film: str, width: int, height: int) -> ReadingStills | None:
        """What takes stills of a film of a size in pixels while it is decoded."""
        if min(width, height) < self.least_side:
            return None
        return ReadingStills(self.rate, self.longest_side, lambda ms, jpeg: self._put(film, ms, jpeg))

    def _put(self, film: str, ms: int, jpeg: bytes) -> None:
        with self._lock:
            if self._bytes < MOST_HELD:
                self._drop("film = ? AND ms = ?", film, ms)
                self.rows("INSERT INTO still VALUES (?, ?, ?)", film, ms, jpeg)
                self._bytes += len(jpeg)

    def of(self, film: str) -> FilmStills:
        """The stills of a film."""
        return FilmStills(self, film)

    def keep_only(self, film: str, wanted: Iterable[int], until: int) -> None:
        """Drop those of a film before the millisecond ``until`` that are not wanted."""
        kept = {*wanted}
        with self._lock:
            for (ms,) in self.rows("SELECT ms FROM still WHERE film = ? AND ms < ?", film, until):
                if ms not in kept:
                    self._drop("film = ? AND ms = ?", film, ms)

    def drop(self, films: Iterable[str]) -> None:
        """Drop all of some films."""
        with self._lock:
            for film in films:
                self._drop("film = ?", film)

    def _drop(self, which: str, *values: object) -> None:
        for (size,) in self.rows(f"SELECT length(jpeg) FROM still WHERE {which}", *values):
            self._bytes -= size
        self.rows(f"DELETE FROM still WHERE {which}", *values)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a query; none, and nothing is held any more, where the disk has no room for it."""
        with self._lock:
            try:
                return [] if self._broken else self._database.execute(query, values).fetchall()
            except sqlite3.Error:
                self._broken = True
                return []


@dataclass(frozen=True, slots=True)
class FilmStills:
    """The stills of one film."""

    held: HeldStills
    film: str

    def milliseconds(self) -> set[int]:
        """Those of which stills are held."""
        return {ms for (ms,) in self.held.rows("SELECT ms FROM still WHERE film = ?", self.film)}

    def still(self, ms: int) -> bytes | None:
        """A still; None where it is not held."""
        found = self.held.rows("SELECT jpeg FROM still WHERE film = ? AND ms = ?", self.film, ms)
        return found[0][0] if found else None
