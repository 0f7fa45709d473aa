"""``catalogue.sqlite``: which videos are in, where their features lie, what is said in them.

A row of ``videos`` appears, changes and disappears in one transaction together with its cues, after its
features were synced to disk: a video is wholly in or not in. Row numbers are never used twice, so a row
number stands for one state of one video for ever: indexes compare row numbers to see what they lack.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from weakref import WeakSet

from moviola.errors import InvalidValue, LibraryError, LibraryLocked, NotFound
from moviola.features import Extent
from moviola.library.schema import COLUMNS, SCHEMA, SHOTS, VIDEO_TYPES
from moviola.types import Cue

__all__ = ["CATALOGUE_FILE", "Catalogue", "CueRow", "Job", "ShotRow", "VideoRow"]

CATALOGUE_FILE = "catalogue.sqlite"

State = Literal["ready", "partial", "refused"]

_REMEDY = "restore a copy or index into a new library"


@dataclass(frozen=True, slots=True)
class VideoRow:
    """One video of a library as the catalogue knows it; ``row`` is 0 before it is stored."""

    row: int
    video_id: str
    path: str
    size: int
    mtime_ns: int
    hash: str
    sidecars: str
    state: State
    error: str = ""
    duration: float = 0.0
    width: int = 0
    height: int = 0
    codec: str = ""
    frames: Extent | None = None
    cues: Extent | None = None


@dataclass(frozen=True, slots=True)
class CueRow:
    """A cue that matched: the video's row number, the cue's number in the video, its text and BM25 (> 0)."""

    video: int
    number: int
    cue: Cue
    score: float


@dataclass(frozen=True, slots=True)
class ShotRow:
    """A shot begins: its second, and after what (``"start"``, ``"cut"``, ``"dissolve"``, ``"fade"``).

    It lasts until the next one begins, or the video ends.
    """

    start: float
    opening: str


@dataclass(frozen=True, slots=True)
class Job:
    """The newest long piece of work: what, how far, and whether it ended (``running`` may mean killed)."""

    kind: str
    total: int
    done: int
    state: str
    started: str


class _Connection(sqlite3.Connection):
    """Closes itself when its thread ends; weak references let :meth:`Catalogue.close` reach all of them."""

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it was never opened
            self.close()


class Catalogue:
    """The catalogue of a library that exists, for any number of threads: each has a connection of its own.

    Writers hold the library's lock; readers need none (WAL). Every method raises :class:`LibraryError` where
    the file is damaged and :class:`LibraryLocked` where another process has held it for too long.

    Args:
        folder: the library.
        read_only: never write; works on a read-only file system.

    Raises:
        LibraryError: the file is missing, damaged or holds other tables than a catalogue.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / CATALOGUE_FILE
        if not self.path.is_file():
            raise LibraryError(f"{self.path}: missing; {_REMEDY}")
        self._read_only, self._closed = read_only, False
        self._own = threading.local()
        self._open: WeakSet[_Connection] = WeakSet()
        self._opening = threading.Lock()
        self._require_schema()

    @classmethod
    def create(cls, folder: Path) -> None:
        """Make an empty catalogue; one that is there already, whole or unfinished, keeps its content."""
        path = folder / CATALOGUE_FILE
        with _named(path), closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(SCHEMA)

    @property
    def _db(self) -> sqlite3.Connection:
        """The connection of this thread."""
        db: _Connection | None = getattr(self._own, "db", None)
        if db is None:
            with self._opening:
                if self._closed:
                    raise LibraryError(f"{self.path}: this library was closed; open it again")
                db = self._own.db = self._connect()
                self._open.add(db)
        return db

    def _connect(self) -> _Connection:
        if not self._read_only:
            db = self._connection("rw")
            db.execute("PRAGMA synchronous = FULL")
            return db
        db = self._connection("ro")
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            db.close()
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            return self._connect_standing_still()
        return db

    def _connect_standing_still(self) -> _Connection:
        """On a read-only file system WAL works only for a file that is declared to stand still."""
        journal = self.path.with_name(self.path.name + "-wal")
        if journal.exists() and journal.stat().st_size:
            raise LibraryError(
                f"{self.path}: changes wait in {journal.name}; open the library once where it can be written"
            )
        return self._connection("ro&immutable=1")

    def _connection(self, mode: str) -> _Connection:
        uri = f"{self.path.resolve().as_uri()}?mode={mode}"
        # Used by one thread, but closed by whichever closes the library.
        return sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, factory=_Connection
        )

    def _require_schema(self) -> None:
        """Refuse a file that lacks a table, a column or a counter."""
        for table, columns in COLUMNS.items():
            self._rows(f"SELECT {columns} FROM {table} LIMIT 0")
        counters = {key for (key,) in self._rows("SELECT key FROM meta")}
        kinds = {kind for (kind,) in self._rows("SELECT kind FROM feature_ends")}
        if "generation" not in counters or not kinds >= {"frames", "cues"}:
            raise LibraryError(f"{self.path}: damaged catalogue (a counter is missing); {_REMEDY}")

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; what it gives, as a whole, so that no cursor stays open."""
        with _named(self.path):
            return self._db.execute(statement, values).fetchall()

    def _insert(self, statement: str, values: Sequence[Any]) -> int:
        """Insert one row; gives its number."""
        with _named(self.path):
            return int(self._db.execute(statement, values).lastrowid or 0)

    def close(self) -> None:
        """Close the connections of all threads; the object cannot be used afterwards."""
        with self._opening:
            self._closed = True
            for db in list(self._open):
                db.close()
        self._own = threading.local()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes inside happen, or none; ends by moving the generation on."""
        self._rows("BEGIN IMMEDIATE")
        try:
            self._rows(SHOTS)
            yield
            self._rows("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
            self._rows("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite has rolled back by itself where the disk is full
                self._rows("ROLLBACK")
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads of this thread inside see one state of the catalogue, whatever a writer does."""
        self._rows("BEGIN")
        try:
            yield
        finally:
            self._rows("COMMIT")

    @property
    def generation(self) -> int:
        """Moves on with every change; a reader that sees another number than before looks again."""
        return int(self._rows("SELECT value FROM meta WHERE key = 'generation'")[0][0])

    def integrity_problem(self) -> str:
        """What SQLite's own check finds, or an empty string."""
        try:
            answer = str(self._db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            return str(error)
        return "" if answer == "ok" else answer

    def videos(self) -> list[VideoRow]:
        """All videos, refused ones too, by video id."""
        return [self._video(row) for row in self._rows(_SELECT + " ORDER BY video_id")]

    def video(self, video_id: str) -> VideoRow:
        """One video by id.

        Raises:
            NotFound: no such video; the message offers near names.
        """
        found = self._rows(_SELECT + " WHERE video_id = ?", (video_id,))
        if not found:
            from difflib import get_close_matches

            near = get_close_matches(video_id, [video.video_id for video in self.videos()], n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else "; `moviola list` shows what is there"
            raise NotFound(f"{video_id}: no such video in this library{hint}")
        return self._video(found[0])

    def put(self, video: VideoRow, cues: Sequence[Cue], shots: Sequence[ShotRow] = ()) -> VideoRow:
        """Store a video with its cues and shots in place of what stood under its id or path; gives the new
        row.
        """
        same = "SELECT row FROM videos WHERE video_id = ? OR path = ?"
        for (old,) in self._rows(same, (video.video_id, video.path)):
            self.drop(old)
        columns = _columns(video)
        marks = ", ".join("?" * len(columns))
        row = self._insert(
            f"INSERT INTO videos ({', '.join(columns)}) VALUES ({marks})", tuple(columns.values())
        )
        with _named(self.path):
            self._db.executemany(
                "INSERT INTO cues (text, video, number, start, stop) VALUES (?, ?, ?, ?, ?)",
                [(cue.text, row, number, cue.start, cue.end) for number, cue in enumerate(cues)],
            )
        self.set_shots(row, shots)
        for kind, extent in (("frames", video.frames), ("cues", video.cues)):
            if extent is not None:
                self.set_feature_end(kind, extent.shard, extent.offset + extent.count)
        return self._video(self._rows(_SELECT + " WHERE row = ?", (row,))[0])

    def feature_end(self, kind: str) -> tuple[int, int]:
        """Shard and row behind the last feature of a kind that was ever committed."""
        ((shard, rows),) = self._rows("SELECT shard, rows FROM feature_ends WHERE kind = ?", (kind,))
        return int(shard), int(rows)

    def set_feature_end(self, kind: str, shard: int, rows: int) -> None:
        """Move that end on."""
        self._rows("UPDATE feature_ends SET shard = ?, rows = ? WHERE kind = ?", (shard, rows, kind))

    def moved(self, row: int, path: str, size: int, mtime_ns: int, sidecars: str) -> None:
        """The same content lies elsewhere now, or was only touched."""
        self._rows(
            "UPDATE videos SET path = ?, size = ?, mtime_ns = ?, sidecars = ? WHERE row = ?",
            (path, size, mtime_ns, sidecars, row),
        )

    def relocate(self, row: int, frames: Extent | None, cues: Extent | None) -> None:
        """The features of a video were copied to other places (compaction)."""
        columns = {**_extent_columns("frame", frames), **_extent_columns("cue", cues)}
        assignments = ", ".join(f"{name} = ?" for name in columns)
        self._rows(f"UPDATE videos SET {assignments} WHERE row = ?", (*columns.values(), row))

    def drop(self, row: int) -> None:
        """Forget a video, its cues and its shots."""
        self._rows("DELETE FROM cues WHERE video = ?", (row,))
        self._rows("DELETE FROM shots WHERE video = ?", (row,))
        self._rows("DELETE FROM videos WHERE row = ?", (row,))

    def cues(self, row: int) -> list[Cue]:
        """The cues of a video, in the order in which their text features lie."""
        rows = self._rows("SELECT start, stop, text FROM cues WHERE video = ? ORDER BY number", (row,))
        return [self._cue(*row) for row in rows]

    def set_shots(self, row: int, shots: Sequence[ShotRow]) -> None:
        """Store the shots of a video in place of those it had."""
        self._rows("DELETE FROM shots WHERE video = ?", (row,))
        with _named(self.path):
            self._db.executemany(
                "INSERT INTO shots (video, number, start, opening) VALUES (?, ?, ?, ?)",
                [(row, number, shot.start, shot.opening) for number, shot in enumerate(shots)],
            )

    def shots(self, row: int) -> list[ShotRow]:
        """The shots of a video in order; none where nobody has looked for them."""
        if not self._has_shots:
            return []
        found = self._rows("SELECT start, opening FROM shots WHERE video = ? ORDER BY number", (row,))
        sound = (
            type(start) is float and 0 <= start < math.inf and type(name) is str for start, name in found
        )
        if not all(sound):
            raise LibraryError(f"{self.path}: damaged catalogue (shots of video {row}); {_REMEDY}")
        return [ShotRow(*shot) for shot in found]

    def videos_with_shots(self) -> set[int]:
        """Row numbers of the videos in which shots were looked for."""
        return (
            {row for (row,) in self._rows("SELECT DISTINCT video FROM shots")} if self._has_shots else set()
        )

    @property
    def _has_shots(self) -> bool:
        """Whether the table is there: not in a library that was built before and has not changed since."""
        return bool(self._rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'shots'"))

    def cue_count(self) -> int:
        """Number of cues in the library."""
        return int(self._rows("SELECT count(*) FROM cues")[0][0])

    def match_cues(
        self, words: Sequence[str], limit: int, videos: Collection[int] | None = None
    ) -> list[CueRow]:
        """Cues with any of the words (stemmed), best BM25 first; of some videos (row numbers) or all."""
        if not words:
            return []
        within = "" if videos is None else " AND video IN (SELECT value FROM json_each(?))"
        chosen = () if videos is None else (json.dumps(sorted(videos)),)
        expression = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
        rows = self._rows(
            f"SELECT video, number, start, stop, text, -bm25(cues) FROM cues WHERE cues MATCH ?{within} "
            "ORDER BY bm25(cues), video, number LIMIT ?",
            (expression, *chosen, limit),
        )
        return [CueRow(video, n, self._cue(*cue), score) for video, n, *cue, score in rows]

    def cues_with(self, word: str) -> int:
        """In how many cues a word (stemmed) stands."""
        expression = '"' + word.replace('"', '""') + '"'
        return int(self._rows("SELECT count(*) FROM cues WHERE cues MATCH ?", (expression,))[0][0])

    def begin_job(self, kind: str, total: int) -> int:
        """Note that long work begins; it stays ``running`` if the process is killed."""
        return self._insert("INSERT INTO jobs (kind, total) VALUES (?, ?)", (kind, total))

    def advance_job(self, job: int) -> None:
        """One more piece is done."""
        self._rows("UPDATE jobs SET done = done + 1 WHERE job = ?", (job,))

    def end_job(self, job: int, state: Literal["done", "interrupted"]) -> None:
        """The work ended by itself or was interrupted."""
        self._rows("UPDATE jobs SET state = ?, ended = CURRENT_TIMESTAMP WHERE job = ?", (state, job))

    def last_job(self) -> Job | None:
        """The newest job."""
        rows = self._rows("SELECT kind, total, done, state, started FROM jobs ORDER BY job DESC LIMIT 1")
        return Job(*rows[0]) if rows else None

    def _cue(self, start: Any, stop: Any, text: Any) -> Cue:
        if not (isinstance(start, float | int) and isinstance(stop, float | int) and isinstance(text, str)):
            raise LibraryError(f"{self.path}: damaged catalogue (a cue at {start!r}); {_REMEDY}")
        return Cue(start, stop, text)

    def _video(self, row: Sequence[Any]) -> VideoRow:
        """A row of ``videos`` as a value; SQLite itself does not mind what type a damaged column has."""
        extents = [row[13:17], row[17:21]]
        sound = all(type(value) is kind for value, kind in zip(row, VIDEO_TYPES, strict=False)) and all(
            set(map(type, extent)) == {type(None)} or all(type(n) is int and n >= 0 for n in extent)
            for extent in extents
        )
        if not (sound and 0 <= row[9] < math.inf):
            raise LibraryError(f"{self.path}: damaged catalogue (video {row[0]!r}); {_REMEDY}")
        return VideoRow(*row[:13], *(None if e[0] is None else Extent(*e) for e in extents))


_SELECT = f"SELECT {COLUMNS['videos']} FROM videos"


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Complaints of SQLite as errors that name the file and the remedy."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InvalidValue(f"{error.object!r}: no Unicode text; give the file another name") from error
    except sqlite3.ProgrammingError:
        raise  # a defect of ours, not of the file
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the message may quote damaged text
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of the number tells finer kinds apart
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LibraryLocked(f"{path}: another process is writing; try again when it has ended") from error
        if kind == sqlite3.SQLITE_FULL:
            raise LibraryError(f"{path}: the disk is full; free some space and try again") from error
        if kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise LibraryError(
                f"{path}: {error}; the library's folder must be readable, and writable to change anything"
            ) from error
        raise LibraryError(f"{path}: damaged catalogue ({error}); {_REMEDY}") from error


def _extent_columns(kind: str, extent: Extent | None) -> dict[str, int | None]:
    names = [f"{kind}_{part}" for part in ("shard", "offset", "count", "crc")]
    if extent is None:
        return dict.fromkeys(names)
    return dict(zip(names, (extent.shard, extent.offset, extent.count, extent.crc), strict=True))


def _columns(video: VideoRow) -> dict[str, object]:
    plain = (
        "video_id", "path", "size", "mtime_ns", "hash", "sidecars",
        "state", "error", "duration", "width", "height", "codec",
    )  # fmt: skip
    return {
        **{name: getattr(video, name) for name in plain},
        **_extent_columns("frame", video.frames),
        **_extent_columns("cue", video.cues),
    }
