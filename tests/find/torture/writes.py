"""*Writes*: the n-th call that changes a file fails, or is the last one before a kill, for every n.

Calls are made to fail where Python makes them: opening to write, writing, syncing, renaming, deleting, making
folders, and every statement that changes the catalogue. After a kill nothing reaches the disk any more: all
later calls fail too, those of ``finally`` included, so that what lies there is what a killed process leaves.

What must hold for each n: the operation ends in an error that names the file, or succeeds all the same;
a reader of the library then gets the answers of before or after, from videos that are whole, and finds each
export and judging task as it was before or after, never half; the same operation again succeeds, and then the
library verifies, answers as an undisturbed one, and holds no draft.
"""

from __future__ import annotations

import builtins
import errno
import gc
import io
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from disturbed import Disturbed
from moviola.errors import MoviolaError
from moviola.files import drafts
from moviola.library.disk import database
from operations import CHANGES, OPERATIONS

__all__ = ["DISTURBER", "WAYS", "Changes", "Watcher", "Writes"]

WAYS = ("ENOSPC", "EIO", "EROFS", "EINTR", "kill")
_CHANGING = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "CREATE", "COMMIT")
_FULL = 2  # of SQLite's setting: each commit is synced before it returns
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watcher(Protocol):
    """Who is shown what an operation does."""

    def before_call(self) -> None:
        """A call that changes a file is about to happen."""

    def synced(self, handle: int) -> None:
        """A file or folder was synced."""

    def committed(self, database: Path, durable: bool) -> None:
        """A database has committed; whether it has synced that, too."""


class Killed(BaseException):
    """Stands for the end of the process."""


class _Disturber:
    """Counts calls that change something below a folder, and lets one fail, or shows all to a watcher."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self._watcher: Watcher | None = None
        self.calls = self.fails_at = 0
        self.way = ""
        self.dead = False

    @contextmanager
    def disturbing(self, folder: Path, fails_at: int, way: str) -> Iterator[None]:
        self.folder, self.calls, self.fails_at, self.way, self.dead = str(folder), 0, fails_at, way, False
        opened, synced, plain = io.open, os.fsync, builtins.open
        execute, many = database._Connection.execute, database._Connection.executemany
        started = drafts._started
        if way == "kill" or self._watcher is not None:  # what it leaves is that of a process that has ended
            drafts._started = lambda process: "1"
        io.open = builtins.open = self._open(opened)  # type: ignore[assignment]
        os.fsync = self._sync(synced)  # type: ignore[assignment]
        database._Connection.execute = self._statement(execute)  # type: ignore[method-assign]
        database._Connection.executemany = self._statement(many)  # type: ignore[method-assign]
        try:
            yield
        finally:
            self.folder, drafts._started = None, started
            io.open, os.fsync, builtins.open = opened, synced, plain
            database._Connection.execute = execute  # type: ignore[method-assign]
            database._Connection.executemany = many  # type: ignore[method-assign]

    @contextmanager
    def watching(self, folder: Path, watcher: Watcher) -> Iterator[None]:
        """Let all calls succeed, and show them."""
        self._watcher = watcher
        try:
            with self.disturbing(folder, 0, ""):
                yield
        finally:
            self._watcher = None

    def call(self, path: Any, error: Callable[[str], Exception] | None = None) -> None:
        """Something below the folder is about to change."""
        if self.folder is None or not isinstance(path, str | os.PathLike | bytes):
            return
        named = os.fsdecode(path)
        if not named.startswith(self.folder):
            return
        self.calls += 1
        if self._watcher is not None:
            self._watcher.before_call()
        if self.dead or (self.calls == self.fails_at and self.way == "kill"):
            self.dead = True
            raise Killed
        if self.calls == self.fails_at:
            raise error(self.way) if error else _os_error(self.way, named)

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit event of Python's."""
        if self.folder is None:
            return
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & _WRITING:
                self.call(arguments[0])
        elif event in ("os.rename", "os.link", "os.symlink"):
            self.call(arguments[1])
        elif event in ("os.remove", "os.mkdir", "os.rmdir", "os.truncate"):
            self.call(arguments[0])

    def _sync(self, synced: Callable[[int], None]) -> Callable[[Any], None]:
        def instead(file: Any) -> None:
            self.call(self.folder, _error_of_a_handle)
            synced(file)
            if self._watcher is not None:
                self._watcher.synced(file if isinstance(file, int) else file.fileno())

        return instead

    def _open(self, opened: Callable[..., Any]) -> Callable[..., Any]:
        disturber = self

        class Raw(io.FileIO):
            def write(self, data: Any, /) -> int:
                disturber.call(disturber.folder, _error_of_a_handle)
                return super().write(data)

        def instead(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            path = file if isinstance(file, str | os.PathLike) else None
            inside = self.folder is not None and path is not None and str(path).startswith(self.folder)
            if not inside or not set(mode) & set("wxa+"):
                return opened(file, mode, *arguments, **options)
            raw = Raw(path, mode.replace("b", "").replace("t", ""), opener=options.get("opener"))
            buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            if "b" in mode:
                return buffered
            return io.TextIOWrapper(
                buffered, encoding=options.get("encoding"), newline=options.get("newline")
            )

        return instead

    def _statement(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def instead(connection: Any, statement: str, *values: Any) -> Any:
            changing = statement.lstrip().upper().startswith(_CHANGING)
            if changing:
                self.call(self.folder, _sqlite_error)
            done = run(connection, statement, *values)
            if changing and self._watcher is not None and not connection.in_transaction:
                plain = sqlite3.Connection.execute
                ((_, _, file), *_) = plain(connection, "PRAGMA database_list").fetchall()
                ((synchronous,),) = plain(connection, "PRAGMA synchronous").fetchall()
                self._watcher.committed(Path(file), synchronous >= _FULL)
            return done

        return instead


DISTURBER = _Disturber()
sys.addaudithook(DISTURBER.heard)


class Writes(Disturbed[int, str]):
    """Each call by its number, and how it ends."""

    names: Iterable[str] = OPERATIONS

    def points(self) -> list[tuple[str, int, str]]:
        """Every call of every operation, in each way."""
        return [
            (name, number, way)
            for name in self.names
            for number in range(1, self._calls(name) + 1)
            for way in WAYS
        ]

    def _calls(self, name: str) -> int:
        """How many calls of an operation change something."""
        folder = self.fresh(name)
        with DISTURBER.disturbing(folder, 0, ""):
            self.operate(name)
        return DISTURBER.calls

    def disturb(self, name: str, number: int, way: str) -> Iterator[str]:
        """Let one call of an operation fail; gives what must not happen."""
        folder, done = self.fresh(name), False
        try:
            with DISTURBER.disturbing(folder, number, way):
                self.operate(name)
            self.counts["succeeded all the same"] += 1
            done = True
        except Killed:
            self.counts["killed"] += 1
        except MoviolaError as error:
            self.counts["refused"] += 1
            if str(folder) not in str(error):
                yield f"no file is named: {error}"
        gc.collect()  # of a killed process the system releases all locks
        yield from self.usable(name, done=done)
        yield from self.done_again(name)


class Changes(Writes):
    """The same of changes of encoder."""

    names = CHANGES


def _os_error(way: str, path: str) -> OSError:
    number = getattr(errno, way)
    return OSError(number, os.strerror(number), path)


def _error_of_a_handle(way: str) -> OSError:
    """The system does not name the file, of which it only knows the handle."""
    number = getattr(errno, way)
    return OSError(number, os.strerror(number))


def _sqlite_error(way: str) -> sqlite3.OperationalError:
    # SQLite itself calls again after EINTR, and reports what stays interrupted as an error of the disk.
    codes = {
        "ENOSPC": "SQLITE_FULL", "EIO": "SQLITE_IOERR", "EROFS": "SQLITE_READONLY", "EINTR": "SQLITE_IOERR",
    }  # fmt: skip
    error = sqlite3.OperationalError(codes[way])
    error.sqlite_errorcode = getattr(sqlite3, codes[way])
    return error
