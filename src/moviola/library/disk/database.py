"""SQLite files for many threads and processes: one connection per thread, errors that name the file."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from weakref import WeakSet

from moviola.errors import InvalidValue, LibraryError, LibraryLocked
from moviola.files.presence import READ_ONLY, is_file, is_read_only

__all__ = ["REMEDY", "Database", "LateDatabase", "is_kept_from", "named", "run_script"]

REMEDY = "restore a copy or index into a new library"
"""Remedy for a damaged catalogue."""

_KEPT_FROM = frozenset({
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM,
})  # fmt: skip


class _Connection(sqlite3.Connection):
    """Weak references let :meth:`Database.close` reach all of them."""


class _Own:
    """A thread's connection, closed when the thread ends; no reference cycle may delay that."""

    def __init__(self, db: _Connection) -> None:
        self.db = db

    def __del__(self) -> None:
        self.db.close()


class Database:
    """A SQLite file that exists; each thread has a connection of its own.

    Readers need no lock (WAL), a library's writers hold its own; opened read-only, it works on a read-only
    file system. Every method raises :class:`LibraryError` where the file is missing or damaged, and
    :class:`LibraryLocked` where another process has held it for too long.

    Attributes:
        holds, remedy: description of the file, and what helps where it is damaged; for messages.
    """

    holds, remedy = "catalogue", REMEDY

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        if not path.is_file():
            raise LibraryError(f"{path}: missing; {self.remedy}")
        self._read_only, self._closed = read_only, False
        self._own = threading.local()
        self._open: WeakSet[_Connection] = WeakSet()
        self._opening = threading.Lock()

    @property
    def _db(self) -> sqlite3.Connection:
        own: _Own | None = getattr(self._own, "connection", None)
        if own is None:
            with self._opening:
                if self._closed:
                    raise LibraryError(f"{self.path}: this library was closed; open it again")
                own = self._own.connection = _Own(self._connect())
                self._open.add(own.db)
        return own.db

    def _connect(self) -> _Connection:
        db = self._connection("ro" if self._read_only else "rw")
        if not self._read_only:
            db.execute("PRAGMA synchronous = FULL")
            # Rows that are replaced count as deleted, too (library.disk.changes).
            db.execute("PRAGMA recursive_triggers = ON")
            db.execute("PRAGMA temp_store = MEMORY")
            return db
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return db
        except sqlite3.OperationalError as error:
            db.close()
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
        # On a read-only file system WAL works only for a file that is declared immutable.
        journal = self.path.with_name(self.path.name + "-wal")
        if journal.exists() and journal.stat().st_size:
            raise LibraryError(
                f"{self.path}: changes wait in {journal.name}; open the library once where it can be written"
            )
        return self._connection("ro&immutable=1")

    def _connection(self, mode: str) -> _Connection:
        uri = f"{self.path.resolve().as_uri()}?mode={mode}"
        # Used by one thread, but closed by the thread that closes the library.
        return sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, factory=_Connection
        )

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and fetch all rows, so that no cursor stays open."""
        with named(self.path, self.holds, self.remedy):
            return self._db.execute(statement, values).fetchall()

    def _insert_row(self, into: str, values: Mapping[str, Any], where_taken: str = "ABORT") -> int:
        """Insert values by column; returns the row's number."""
        columns, marks = ", ".join(values), ", ".join("?" * len(values))
        statement = f"INSERT OR {where_taken} INTO {into} ({columns}) VALUES ({marks})"
        with named(self.path, self.holds, self.remedy):
            return int(self._db.execute(statement, [*values.values()]).lastrowid or 0)

    def _put_all(self, into: str, rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows into columns, ``table (column, ...)``, replacing those of the same key."""
        marks = ", ".join("?" * (into.count(",") + 1))
        with named(self.path, self.holds, self.remedy):
            self._db.executemany(f"INSERT OR REPLACE INTO {into} VALUES ({marks})", rows)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A transaction: one writer at a time; all changes inside happen, or none."""
        self._rows("BEGIN IMMEDIATE")
        try:
            yield
            self._rows("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite has rolled back by itself where the disk is full
                self._rows("ROLLBACK")
            raise

    def copy_to(self, path: Path) -> None:
        """Copy the file as it is now, with pending changes of its journal, to a new one."""
        with named(self.path, self.holds, self.remedy), closing(sqlite3.connect(path)) as copy:
            self._db.backup(copy)

    def _damaged(self, what: str) -> LibraryError:
        return LibraryError(f"{self.path}: damaged {self.holds} ({what}); {self.remedy}")

    def _has(self, table: str) -> bool:
        """Whether the file has a table, which earlier versions may lack."""
        return bool(self._rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)))

    def _rows_of(self, table: str, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """:meth:`_rows` of a statement on a table that earlier versions lack; no rows without it."""
        return self._rows(statement, values) if self._has(table) else []

    def close(self) -> None:
        """Close the connections of all threads; the object cannot be used afterwards."""
        with self._opening:
            self._closed = True
            for db in list(self._open):
                db.close()
        self._own = threading.local()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads of this thread inside see one state of the catalogue, even while a writer commits."""
        self._rows("BEGIN")
        try:
            yield
        finally:
            self._rows("COMMIT")

    def one_state(self) -> AbstractContextManager[None]:
        """:meth:`snapshot`, or the one or the transaction in which this thread is."""
        return nullcontext() if self._db.in_transaction else self.snapshot()

    def integrity_problem(self) -> str:
        """Findings of SQLite's own check; empty if there are none."""
        try:
            answer = str(self._db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            return str(error)
        return "" if answer == "ok" else answer


class LateDatabase(Database):
    """A SQLite file that the first write makes; without it there is nothing to read.

    Attributes:
        script: makes the tables that are missing.
        tables: all tables; a file without the first one counts as missing.
        format: number of the form of what is in the file, kept in it; the first write upgrades earlier ones.
    """

    script: str
    tables: tuple[str, ...]
    format = 0

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path, self._read_only, self._there = path, read_only, False
        self._first = threading.Lock()  # opening drops the connections of all threads

    def _is_there(self, table: str = "") -> bool:
        """Whether there is something to read, in a table; another process may have made the file since."""
        with self._first:
            self._open_if_made()
        return self._there and (not table or self._has(table))

    def _rows_of(self, table: str, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._rows(statement, values) if self._is_there(table) else []

    def _open_if_made(self) -> None:
        if not self._there and self.path.is_file():
            self._open_file()

    def _open_file(self) -> None:
        super().__init__(self.path, read_only=self._read_only)
        if self._version > self.format:
            raise LibraryError(
                f"{self.path}: format {self._version}, but this moviola reads {self.format}; update moviola"
            )
        self._there = self._has(self.tables[0])

    @property
    def _version(self) -> int:
        return int(self._rows("PRAGMA user_version")[0][0])

    def _make(self) -> None:
        """Make the file and the tables that are missing, before a write."""
        with self._first:
            self._open_if_made()
            if self._there and all(map(self._has, self.tables)) and self._version == self.format:
                return
            if self._there and self._version < self.format:
                self._back_up()
            run_script(self.path, self.script, self.holds, self.remedy)
            if not self._there:
                self._open_file()
            with self._changing():
                if (version := self._version) < self.format:  # another process may have been first
                    self._upgrade(version)
                    self._rows(f"PRAGMA user_version = {self.format}")

    def _back_up(self) -> None:
        """Keep the file as it is, before it is upgraded."""

    def _upgrade(self, version: int) -> None:
        """Make of the rows of an earlier format those of the present one, inside a transaction."""

    def problem(self) -> str:
        """Findings of SQLite's own check; empty if there are none, or no file."""
        return self.integrity_problem() if self._is_there() else ""

    def close(self) -> None:
        if self._there:
            super().close()


def run_script(path: Path, script: str, holds: str = "catalogue", remedy: str = REMEDY) -> None:
    """Make tables in a file, which is made where it is missing, and set it to WAL."""
    with named(path, holds, remedy), closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(script)


def among(column: str, rows: Collection[int] | None) -> tuple[str, list[str]]:
    """A condition that a column is one of some numbers, None: any, and its values."""
    if rows is None:
        return "1", []
    return f"{column} IN (SELECT value FROM json_each(?))", [json.dumps([*rows])]


@contextmanager
def named(path: Path, holds: str = "catalogue", remedy: str = REMEDY) -> Iterator[None]:
    """Errors of SQLite as moviola's, which name the file and the remedy."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InvalidValue(f"{error.object!r}: not Unicode text; give the file another name") from error
    except sqlite3.ProgrammingError:
        raise  # a defect of ours, not of the file
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the message may quote damaged text
        code = getattr(error, "sqlite_errorcode", 0)
        kind = code & 0xFF  # the other bits hold the extended code
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LibraryLocked(f"{path}: another process is writing; try again when it has ended") from error
        if kind == sqlite3.SQLITE_FULL:
            raise LibraryError(f"{path}: the disk is full; free some space and try again") from error
        if kind == sqlite3.SQLITE_IOERR and code != sqlite3.SQLITE_IOERR_SHORT_READ:
            raise LibraryError(
                f"{path}: {error}; check that its drive is connected and works, then try again"
            ) from error
        if kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            if is_read_only(path.parent):
                raise LibraryError(f"{path.parent}: {READ_ONLY}") from error
            raise LibraryError(
                f"{path}: {error}; it and its folder must be readable, and writable to change anything"
            ) from error
        raise LibraryError(f"{path}: damaged {holds} ({error}); {remedy}") from error


def is_kept_from(path: Path, error: LibraryError) -> bool:
    """Whether an error of :func:`named` says that this user, or this moment, cannot read a file, and not that
    it is damaged.
    """
    code = getattr(error.__cause__, "sqlite_errorcode", 0)
    return is_file(path) and code & 0xFF in _KEPT_FROM and code != sqlite3.SQLITE_IOERR_SHORT_READ
