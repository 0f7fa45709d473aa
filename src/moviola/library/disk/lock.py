"""The write lock of a library."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from moviola.files.locks import exclusive

__all__ = ["sweep_drafts", "writing"]

# Folders where only the lock's holder writes. Other drafts in the cache may belong to readers at work.
_DRAFTS = (
    ".*.tmp", "backups/.*.tmp", "index/.*.tmp", "index/*-new.*", "models/*/*.tmp",
    "cache/.*.table.*.tmp", "cache/.*.npz.*.tmp",
)  # fmt: skip


def writing(folder: Path) -> AbstractContextManager[None]:
    """Hold the write lock of the library in ``folder``; the system releases it when the process ends.

    Raises:
        LibraryLocked: another writer holds it; the message names its process id.
        InvalidValue: the folder cannot be written.
    """
    return exclusive(folder / ".lock")


def sweep_drafts(folder: Path) -> None:
    """Delete what killed writers left half written; under the lock."""
    for pattern in _DRAFTS:
        for draft in folder.glob(pattern):
            if draft.is_dir():
                shutil.rmtree(draft, ignore_errors=True)
            else:
                draft.unlink(missing_ok=True)
