"""One writer at a time: an advisory lock that the operating system drops when the process ends, however."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moviola.errors import LibraryLocked

__all__ = ["writing"]


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold the library's write lock.

    Raises:
        LibraryLocked: another process holds it; the message names its process id.
    """
    with (folder / ".lock").open("a+") as file:
        if not _acquire(file.fileno()):
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise LibraryLocked(
                f"{folder}: process {owner} is writing to this library; wait for it to end (reading goes on)"
            )
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield


def _acquire(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
