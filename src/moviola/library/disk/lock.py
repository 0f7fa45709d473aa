"""The write lock of a library."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from moviola.files.locks import exclusive, is_held

__all__ = ["LOCK", "drafts_in", "is_being_written", "sweep_drafts", "writing"]

LOCK = ".lock"
"""Name of the lock file."""

# What only the lock's holder writes. Other drafts in the cache may belong to readers at work, as those of the
# table of copies.
_DRAFTS = (
    ".*.tmp", "backups/.*.tmp", "index/.*.tmp", "index/*-new.*", "models/*/*.tmp", "concepts/.*.tmp",
    "cache/.videos.table.*.tmp", "cache/.columns.table.*.tmp", "cache/.names.table.*.tmp",
    "cache/.descriptions.table.*.tmp", "cache/.*.npz.*.tmp",
)  # fmt: skip


def writing(folder: Path) -> AbstractContextManager[None]:
    """Hold the write lock of a library, which the system releases when the process ends; errors as in
    :func:`moviola.files.locks.exclusive`.
    """
    return exclusive(folder / LOCK)


def is_being_written(folder: Path) -> bool:
    """Whether a process holds the write lock of a library; changes nothing."""
    return is_held(folder / LOCK)


def drafts_in(folder: Path) -> list[Path]:
    """Files and folders that writers have begun; left by killed ones where none is at work."""
    return [draft for pattern in _DRAFTS for draft in folder.glob(pattern)]


def sweep_drafts(folder: Path) -> None:
    """Delete what killed writers left half written; under the lock."""
    for draft in drafts_in(folder):
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)
