"""*Writes*: the n-th call that changes a file fails, or is the last one before a kill, for every n.

Calls are made to fail where Python makes them: opening to write, writing, syncing, renaming, deleting, making
folders, and every statement that changes the catalogue. After a kill nothing reaches the disk any more: all
later calls fail too, those of ``finally`` included, so that what lies there is what a killed process leaves.

What must hold for each n: the call ends in an error that names the file, or succeeds all the same; whoever
opens the library then gets the answers of before or after, from videos that are whole; the same call again
succeeds, and then the library verifies, answers as an undisturbed one, and holds no draft.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flips import flip_bit
from moviola.errors import MoviolaError
from moviola.library.disk import database
from moviola.search import Library, Marked, MarkedMoment
from sample import MODEL, answers, films_in, library_of, restored

__all__ = ["DISTURBER", "OPERATIONS", "Operated", "Writes"]

OPERATIONS: dict[str, Callable[[Library, Path], object]] = {
    "index": lambda library, films: library.index(films, ocr=False),
    "remove": lambda library, films: library.remove({"b"} & set(_ids(library))),
    "use": lambda library, films: library.use(refiner=MODEL),
    "compact": lambda library, films: library.compact(),
    "repair": lambda library, films: library.repair(),
    "teach": lambda library, films: library.teach("walls", Marked(None, (MarkedMoment("a", 0, 3),))),
}
"""What is disturbed; each may be done again."""


def _damage(library: Path) -> None:
    """Damage what can be made again."""
    for path in (*library.glob("index/segments*"), library / "cache" / "videos.table"):
        flip_bit(path, path.stat().st_size // 2)


PREPARED: dict[str, Callable[[Path], None]] = {"repair": _damage}
"""What happens to a library before an operation."""

WAYS = ("ENOSPC", "EIO", "EROFS", "EINTR", "kill")
_CHANGING = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "CREATE", "COMMIT")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Killed(BaseException):
    """Stands for the end of the process."""


class _Disturber:
    """Counts calls that change something below a folder, and lets one fail, or shows all to somebody."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self._before_call: Callable[[], None] | None = None
        self._synced: Callable[[int], None] | None = None
        self.calls = self.fails_at = 0
        self.way = ""
        self.dead = False

    @contextmanager
    def disturbing(self, folder: Path, fails_at: int, way: str) -> Iterator[None]:
        self.folder, self.calls, self.fails_at, self.way, self.dead = str(folder), 0, fails_at, way, False
        opened, synced, plain = io.open, os.fsync, builtins.open
        execute, many = database._Connection.execute, database._Connection.executemany
        io.open = builtins.open = self._open(opened)  # type: ignore[assignment]
        os.fsync = self._sync(synced)  # type: ignore[assignment]
        database._Connection.execute = self._statement(execute)  # type: ignore[method-assign]
        database._Connection.executemany = self._statement(many)  # type: ignore[method-assign]
        try:
            yield
        finally:
            self.folder = None
            io.open, os.fsync, builtins.open = opened, synced, plain
            database._Connection.execute = execute  # type: ignore[method-assign]
            database._Connection.executemany = many  # type: ignore[method-assign]

    @contextmanager
    def watching(
        self, folder: Path, before_call: Callable[[], None], synced: Callable[[int], None]
    ) -> Iterator[None]:
        """Let all calls succeed; show each before it happens, and the handle of each file that is synced."""
        self._before_call, self._synced = before_call, synced
        try:
            with self.disturbing(folder, 0, ""):
                yield
        finally:
            self._before_call = self._synced = None

    def call(self, path: Any, error: Callable[[str], Exception] | None = None) -> None:
        """Something below the folder is about to change."""
        if self.folder is None or not isinstance(path, str | os.PathLike | bytes):
            return
        named = os.fsdecode(path)
        if not named.startswith(self.folder):
            return
        self.calls += 1
        if self._before_call is not None:
            self._before_call()
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
        elif event == "os.rename":
            self.call(arguments[1])
        elif event in ("os.remove", "os.mkdir", "os.rmdir", "os.truncate"):
            self.call(arguments[0])

    def _sync(self, synced: Callable[[int], None]) -> Callable[[Any], None]:
        def instead(file: Any) -> None:
            self.call(self.folder, _error_of_a_handle)
            synced(file)
            if self._synced is not None:
                self._synced(file if isinstance(file, int) else file.fileno())

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
            raw = Raw(path, mode.replace("b", "").replace("t", ""))
            buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            if "b" in mode:
                return buffered
            return io.TextIOWrapper(
                buffered, encoding=options.get("encoding"), newline=options.get("newline")
            )

        return instead

    def _statement(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def instead(connection: Any, statement: str, *values: Any) -> Any:
            if statement.lstrip().upper().startswith(_CHANGING):
                self.call(self.folder, _sqlite_error)
            return run(connection, statement, *values)

        return instead


DISTURBER = _Disturber()
sys.addaudithook(DISTURBER.heard)


class Operated:
    """A library, and what it answers before and after each operation.

    Args:
        folder: an empty one to work in.

    Attributes:
        films: what ``index`` finds; one film is new, another has changed.
        original, copy: the library before, and the place of the one that is disturbed.
        calls: how many calls of each operation change something.
    """

    def __init__(self, folder: Path) -> None:
        self.films, self.copy = films_in(folder / "films", "ab"), folder / "library"
        self.original = library_of(self.films, folder / "original", model=False)
        films_in(self.films, "bc")
        (self.films / "b.srt").unlink()
        self._before = answers(self.original)
        self._after, self.calls = {}, {}
        for name, operation in OPERATIONS.items():
            with Library(self.fresh(name)) as library:
                with DISTURBER.disturbing(self.copy, 0, ""):
                    operation(library, self.films)
                self.calls[name] = DISTURBER.calls
            self._after[name] = answers(self.copy)

    def fresh(self, name: str) -> Path:
        """A copy of the library, before an operation."""
        restored(self.original, self.copy)
        PREPARED.get(name, lambda _: None)(self.copy)
        return self.copy

    def usable(self, name: str) -> Generator[str, None, str]:
        """Whoever opens the library now gets the answers of before or after, and videos that are whole.

        Gives what must not happen; returns which answers these are.
        """
        with Library(self.copy, read_only=True) as reader:
            held = set(_ids(reader))
            lost = [problem for problem in reader.verify() if problem.video_id or not problem.repairable]
        if lost:
            yield f"damaged: {lost[0].video_id} {lost[0].message}"
        if not {"a"} <= held <= {"a", "b", "c"} or (name != "remove" and "b" not in held):
            yield f"lost: only {', '.join(sorted(held))} are left"
        now = answers(self.copy)
        if now not in (self._before, self._after[name]):
            yield "neither the answers of before nor of after"
        return "as before" if now == self._before else "as after"

    def done_again(self, name: str) -> Iterator[str]:
        """The operation succeeds now, and leaves what an undisturbed one does; gives what must not happen."""
        with Library(self.copy) as again:
            OPERATIONS[name](again, self.films)
            if problems := again.verify():
                yield f"not sound after it was done again: {problems[0].message}"
        if answers(self.copy) != self._after[name]:
            yield "other answers than an undisturbed library's"
        if drafts := sorted(path.name for path in self.copy.rglob("*.tmp")):
            yield f"drafts are left: {', '.join(drafts)}"


class Writes(Operated):
    """A library, and every call of every operation in an order of the seed's.

    Args:
        folder: an empty one to work in.
        seed: of the order.

    Attributes:
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder)
        self._draw = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def points(self) -> list[tuple[str, int, str]]:
        """An operation, the number of the call, and how it ends, for every call."""
        found = [
            (name, number, way)
            for name, calls in self.calls.items()
            for number in range(1, calls + 1)
            for way in WAYS
        ]
        self._draw.shuffle(found)
        return found

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Disturb one after the other until all are done, or ``goes_on`` says no."""
        for name, number, way in self.points():
            if not goes_on():
                return
            self.counts["tried"] += 1
            for problem in self.disturb(name, number, way):
                self.failures.append(f"{name}, call {number}, {way}: {problem}")

    def disturb(self, name: str, number: int, way: str) -> Iterator[str]:
        """Let one call of an operation fail; gives what must not happen."""
        folder = self.fresh(name)
        try:
            library = Library(folder)
            try:
                with DISTURBER.disturbing(folder, number, way):
                    OPERATIONS[name](library, self.films)
                self.counts["succeeded all the same"] += 1
            except Killed:
                self.counts["killed"] += 1
            except MoviolaError as error:
                self.counts["refused"] += 1
                if str(folder) not in str(error):
                    yield f"no file is named: {error}"
            finally:
                library.close()
            yield from self.usable(name)
            yield from self.done_again(name)
        except Exception as error:  # that none comes is what is tried
            yield f"{type(error).__name__}: {error}"


def _ids(library: Library) -> list[str]:
    return [video.video_id for video in library.videos()]


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
