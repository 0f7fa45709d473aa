"""Long exports: progress, the file, cancellation."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Literal

from moviola.errors import InvalidValue, MoviolaError, NotFound
from moviola.server.pools import Pool
from moviola.server.problems import Busy
from moviola.server.progress import Progress

__all__ = ["Cancelled", "Exporting", "Exports", "own_folder"]

_MOST = 20  # exports that are remembered; the file of the oldest that has ended is deleted first

Write = Callable[[Path, Callable[[float], None]], Path]
"""Writes an export below a folder, says the share that is done, and returns the file."""


class Cancelled(Exception):
    """The export is not wanted any more."""


@dataclass(eq=False)
class Exporting:
    """An export.

    Attributes:
        name: its id.
        path: the file; None until it is done.
        error: why it has failed, with its class.
        ended: set when it is done, has failed or was cancelled.
    """

    name: str
    folder: Path
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    path: Path | None = None
    error: MoviolaError | None = None
    progress: Progress = field(default_factory=Progress)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def at(self, share: float) -> None:
        """Note the share that is done; ends a cancelled export."""
        if self.state == "cancelled":
            raise Cancelled
        self.progress.at(share)


class Exports:
    """Exports since the server started, written by a pool. For one event loop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: dict[str, Exporting] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, write: Write, patience: float) -> Exporting:
        """Begin an export, and wait some seconds for it.

        Raises:
            Busy: too many exports wait or lie here.
            MoviolaError: it has failed within that time.
        """
        ended = [one for one in self._known.values() if one.ended.is_set()]
        for one in ended[: max(0, len(self._known) - _MOST + 1)]:
            self._drop(one)
        if len(self._known) >= _MOST:
            raise Busy(f"{_MOST} exports wait or run; try again when one is done")
        one = Exporting(secrets.token_hex(16), own_folder())
        self._known[one.name] = one
        task = asyncio.create_task(self._run(one, write))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.wait([task], timeout=patience)
        if error := one.error or (task.exception() if task.done() else None):
            self._drop(one)
            raise error
        return one

    async def _run(self, one: Exporting, write: Write) -> None:
        try:
            with suppress(Cancelled):
                path = await self._pool.run(write, one.folder, one.at)
                if one.state == "running":
                    one.state, one.path = "done", path
        except MoviolaError as error:
            one.state, one.error = "failed", error
        except BaseException:
            one.state = "failed"
            raise
        finally:
            if one.state != "done":
                shutil.rmtree(one.folder, ignore_errors=True)
            one.ended.set()

    def get(self, name: str) -> Exporting:
        """An export; NotFound where it is unknown, or its file was deleted for later ones, or swept away."""
        found = self._known.get(name)
        if found and not (found.path and not found.path.is_file()):
            return found
        raise NotFound(f"export {name[:40]!r}: not here any more; begin it again")

    def cancel(self, name: str) -> None:
        """End an export, or delete its file; errors as in :meth:`get`."""
        one = self.get(name)
        if one.state == "running":
            one.state = "cancelled"  # the thread ends with its next picture
        self._drop(one)

    def _drop(self, one: Exporting) -> None:
        self._known.pop(one.name, None)
        if one.ended.is_set():
            shutil.rmtree(one.folder, ignore_errors=True)

    def close(self) -> None:
        """End all exports and delete their files."""
        for name in list(self._known):
            with suppress(NotFound):  # what was swept away
                self.cancel(name)


def own_folder() -> Path:
    """A new folder for one export. Raises InvalidValue: the temporary folder has no room, or is gone."""
    try:
        return Path(mkdtemp(prefix="moviola-export-"))
    except OSError as error:
        raise InvalidValue(
            f"export: cannot be stored on the server ({error.strerror}); make room in its temporary folder, "
            f"{gettempdir()}, or make that folder"
        ) from error
