"""Lock files for one writer at a time; the operating system releases them when the process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from moviola.errors import InvalidValue, LibraryLocked
from moviola.files.presence import READ_ONLY, is_read_only
from moviola.files.regular import read_regular
from moviola.files.writing import write_text

__all__ = ["exclusive", "is_held"]


@contextmanager
def exclusive(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock file ``path`` of a folder; another process is refused at once, or waits until it is free.

    The owner's process id is in a file beside it, since a locked file cannot be read everywhere.

    Raises:
        LibraryLocked: another writer holds the lock, and ``wait`` is off; the message names its process id if
            known.
        InvalidValue: the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    owner = _owner_of(path)
    lock = FileLock(path, blocking=wait)
    try:
        lock.acquire()
    except Timeout:
        try:
            holder = f"process {int(read_regular(owner, 100, follow=False))}"
        except (OSError, ValueError):  # not yet written, or gone this moment
            holder = "another process"
        raise LibraryLocked(
            f"{path.parent}: {holder} is writing to this library; wait for it to end (reading goes on)"
        ) from None
    except OSError as error:
        if is_read_only(path.parent):
            raise InvalidValue(f"{path.parent}: {READ_ONLY}") from error
        raise InvalidValue(
            f"{path}: cannot be locked ({error.strerror}); give a folder that can be written"
        ) from error
    try:
        write_text(owner, str(os.getpid()), follow=False)
        yield
    finally:
        with suppress(OSError):  # the next writer overwrites it
            owner.unlink()
        lock.release()


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file ``path``; makes no file."""
    from filelock import FileLock, Timeout

    # The lock must be taken for an instant, in which a writer would be refused. So it is left alone where
    # no owner is named; where a killed one is, that instant remains.
    if not _owner_of(path).is_file():
        return False
    lock = FileLock(path, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        return True
    except OSError:  # it cannot be written here, so nobody writes
        return False
    lock.release()
    return False


def _owner_of(path: Path) -> Path:
    return path.with_name(path.name + ".owner")
