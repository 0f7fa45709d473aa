"""``catalogue.sqlite``: which videos are in, where their features lie, what is said in them.

A row of ``videos`` appears, changes and disappears in one transaction together with its cues, after its
features were synced to disk: a video is wholly in or not in. Row numbers are never used twice, so a row
number stands for one state of one video for ever: indexes compare row numbers to see what they lack.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from moviola.errors import LibraryError, NotFound
from moviola.types import Cue

__all__ = ["CATALOGUE_FILE", "Catalogue", "CueRow", "Extent", "Job", "VideoRow"]

CATALOGUE_FILE = "catalogue.sqlite"

State = Literal["ready", "partial", "refused"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT OR IGNORE INTO meta VALUES ('generation', 0);
CREATE TABLE IF NOT EXISTS feature_ends (
    kind TEXT PRIMARY KEY, shard INTEGER NOT NULL, rows INTEGER NOT NULL
);
INSERT OR IGNORE INTO feature_ends VALUES ('frames', 0, 0), ('cues', 0, 0);
CREATE TABLE IF NOT EXISTS videos (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    video_id TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    hash TEXT NOT NULL,
    sidecars TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ready', 'partial', 'refused')),
    error TEXT NOT NULL DEFAULT '',
    duration REAL NOT NULL DEFAULT 0,
    width INTEGER NOT NULL DEFAULT 0,
    height INTEGER NOT NULL DEFAULT 0,
    codec TEXT NOT NULL DEFAULT '',
    frame_shard INTEGER, frame_offset INTEGER, frame_count INTEGER, frame_crc INTEGER,
    cue_shard INTEGER, cue_offset INTEGER, cue_count INTEGER, cue_crc INTEGER
);
CREATE INDEX IF NOT EXISTS videos_by_hash ON videos (hash);
CREATE VIRTUAL TABLE IF NOT EXISTS cues USING fts5 (
    text, video UNINDEXED, number UNINDEXED, start UNINDEXED, stop UNINDEXED,
    tokenize = "porter unicode61 remove_diacritics 2"
);
CREATE TABLE IF NOT EXISTS jobs (
    job INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL, total INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'running', started TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, ended TEXT
);
"""


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a video's feature rows lie: shard number, first row, number of rows, CRC-32 of their bytes."""

    shard: int
    offset: int
    count: int
    crc: int


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
class Job:
    """The newest long piece of work: what, how far, and whether it ended (``running`` may mean killed)."""

    kind: str
    total: int
    done: int
    state: str
    started: str


class Catalogue:
    """One connection to the catalogue. Writers hold the library's lock; readers need none (WAL)."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / CATALOGUE_FILE
        self._db = self._connect(read_only)
        self._db.execute("PRAGMA foreign_keys = ON")

    def _connect(self, read_only: bool) -> sqlite3.Connection:
        try:
            if not read_only:
                db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
                db.executescript(_SCHEMA)
                return db
            uri = self.path.resolve().as_uri()
            db = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)
            try:
                db.execute("SELECT count(*) FROM meta").fetchone()
            except sqlite3.OperationalError:
                db.close()
                db = self._connect_standing_still(uri)
            return db
        except sqlite3.DatabaseError as error:
            raise LibraryError(
                f"{self.path}: damaged catalogue ({error}); restore a copy or index into a new library"
            ) from error

    def _connect_standing_still(self, uri: str) -> sqlite3.Connection:
        """On a read-only file system WAL works only for a file that is declared to stand still."""
        journal = self.path.with_name(self.path.name + "-wal")
        if journal.exists() and journal.stat().st_size:
            raise LibraryError(
                f"{self.path}: changes wait in {journal.name}; open the library once where it can be written"
            )
        return sqlite3.connect(
            f"{uri}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )

    def close(self) -> None:
        """Close the connection; the object cannot be used afterwards."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes inside happen, or none; ends by moving the generation on."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see one state of the catalogue, whatever a writer does meanwhile."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("COMMIT")

    @property
    def generation(self) -> int:
        """Moves on with every change; a reader that sees another number than before looks again."""
        return int(self._db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0])

    def integrity_problem(self) -> str:
        """What SQLite's own check finds, or an empty string."""
        try:
            answer = str(self._db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        except sqlite3.DatabaseError as error:
            return str(error)
        return "" if answer == "ok" else answer

    def videos(self) -> list[VideoRow]:
        """All videos, refused ones too, by video id."""
        return [_video(row) for row in self._db.execute(_SELECT + " ORDER BY video_id")]

    def video(self, video_id: str) -> VideoRow:
        """One video by id.

        Raises:
            NotFound: no such video; the message offers near names.
        """
        row = self._db.execute(_SELECT + " WHERE video_id = ?", (video_id,)).fetchone()
        if row is None:
            from difflib import get_close_matches

            near = get_close_matches(video_id, [video.video_id for video in self.videos()], n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else "; `moviola list` shows what is there"
            raise NotFound(f"{video_id}: no such video in this library{hint}")
        return _video(row)

    def put(self, video: VideoRow, cues: Sequence[Cue]) -> VideoRow:
        """Store a video with its cues in place of what stood under its id or path; gives the new row."""
        for (old,) in self._db.execute(
            "SELECT row FROM videos WHERE video_id = ? OR path = ?", (video.video_id, video.path)
        ).fetchall():
            self.drop(old)
        columns = _columns(video)
        marks = ", ".join("?" * len(columns))
        cursor = self._db.execute(
            f"INSERT INTO videos ({', '.join(columns)}) VALUES ({marks})", tuple(columns.values())
        )
        row = int(cursor.lastrowid or 0)
        self._db.executemany(
            "INSERT INTO cues (text, video, number, start, stop) VALUES (?, ?, ?, ?, ?)",
            [(cue.text, row, number, cue.start, cue.end) for number, cue in enumerate(cues)],
        )
        for kind, extent in (("frames", video.frames), ("cues", video.cues)):
            if extent is not None:
                self.set_feature_end(kind, extent.shard, extent.offset + extent.count)
        return _video(self._db.execute(_SELECT + " WHERE row = ?", (row,)).fetchone())

    def feature_end(self, kind: str) -> tuple[int, int]:
        """Shard and row behind the last feature of a kind that was ever committed."""
        shard, rows = self._db.execute(
            "SELECT shard, rows FROM feature_ends WHERE kind = ?", (kind,)
        ).fetchone()
        return int(shard), int(rows)

    def set_feature_end(self, kind: str, shard: int, rows: int) -> None:
        """Move that end on."""
        self._db.execute("UPDATE feature_ends SET shard = ?, rows = ? WHERE kind = ?", (shard, rows, kind))

    def moved(self, row: int, path: str, size: int, mtime_ns: int, sidecars: str) -> None:
        """The same content lies elsewhere now, or was only touched."""
        self._db.execute(
            "UPDATE videos SET path = ?, size = ?, mtime_ns = ?, sidecars = ? WHERE row = ?",
            (path, size, mtime_ns, sidecars, row),
        )

    def relocate(self, row: int, frames: Extent | None, cues: Extent | None) -> None:
        """The features of a video were copied to other places (compaction)."""
        columns = {**_extent_columns("frame", frames), **_extent_columns("cue", cues)}
        assignments = ", ".join(f"{name} = ?" for name in columns)
        self._db.execute(f"UPDATE videos SET {assignments} WHERE row = ?", (*columns.values(), row))

    def drop(self, row: int) -> None:
        """Forget a video and its cues."""
        self._db.execute("DELETE FROM cues WHERE video = ?", (row,))
        self._db.execute("DELETE FROM videos WHERE row = ?", (row,))

    def cues(self, row: int) -> list[Cue]:
        """The cues of a video, in the order in which their text features lie."""
        rows = self._db.execute("SELECT start, stop, text FROM cues WHERE video = ? ORDER BY number", (row,))
        return [Cue(start, stop, text) for start, stop, text in rows]

    def cue_count(self) -> int:
        """Number of cues in the library."""
        return int(self._db.execute("SELECT count(*) FROM cues").fetchone()[0])

    def match_cues(self, words: Sequence[str], limit: int) -> list[CueRow]:
        """Cues that hold any of the words (stemmed), best BM25 first."""
        if not words:
            return []
        expression = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
        rows = self._db.execute(
            "SELECT video, number, start, stop, text, -bm25(cues) FROM cues WHERE cues MATCH ? "
            "ORDER BY bm25(cues), video, number LIMIT ?",
            (expression, limit),
        )
        return [
            CueRow(video, n, Cue(start, stop, text), score) for video, n, start, stop, text, score in rows
        ]

    def cues_with(self, word: str) -> int:
        """In how many cues a word (stemmed) stands."""
        expression = '"' + word.replace('"', '""') + '"'
        row = self._db.execute("SELECT count(*) FROM cues WHERE cues MATCH ?", (expression,)).fetchone()
        return int(row[0])

    def begin_job(self, kind: str, total: int) -> int:
        """Note that long work begins; it stays ``running`` if the process is killed."""
        cursor = self._db.execute("INSERT INTO jobs (kind, total) VALUES (?, ?)", (kind, total))
        return int(cursor.lastrowid or 0)

    def advance_job(self, job: int) -> None:
        """One more piece is done."""
        self._db.execute("UPDATE jobs SET done = done + 1 WHERE job = ?", (job,))

    def end_job(self, job: int, state: Literal["done", "interrupted"]) -> None:
        """The work ended by itself or was interrupted."""
        self._db.execute("UPDATE jobs SET state = ?, ended = CURRENT_TIMESTAMP WHERE job = ?", (state, job))

    def last_job(self) -> Job | None:
        """The newest job."""
        row = self._db.execute(
            "SELECT kind, total, done, state, started FROM jobs ORDER BY job DESC LIMIT 1"
        ).fetchone()
        return Job(*row) if row else None


_SELECT = (
    "SELECT row, video_id, path, size, mtime_ns, hash, sidecars, state, error, duration, width, height,"
    " codec, frame_shard, frame_offset, frame_count, frame_crc,"
    " cue_shard, cue_offset, cue_count, cue_crc FROM videos"
)


def _video(row: Sequence[Any]) -> VideoRow:
    frames, cues = row[13:17], row[17:21]
    extents = [None if part[0] is None else Extent(*part) for part in (frames, cues)]
    return VideoRow(*row[:13], *extents)


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
