"""One writer at a time, for the library as a whole."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from moviola.files.locks import exclusive

__all__ = ["writing"]


def writing(folder: Path) -> AbstractContextManager[None]:
    """Hold the write lock of the library in ``folder``; the system drops it when the process ends, however.

    Raises:
        LibraryLocked: another writer holds it; the message names its process id.
        InvalidValue: the folder cannot be written.
    """
    return exclusive(folder / ".lock")
