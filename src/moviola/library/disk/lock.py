"""The write lock of a library."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from moviola.files.drafts import DRAFTS, is_abandoned
from moviola.files.locks import exclusive, is_held

__all__ = ["LOCK", "drafts_in", "is_being_written", "sweep_drafts", "writing"]

LOCK = ".lock"
"""Name of the lock file."""

_FOLDERS = (".", "backups", "index", "models/*", "concepts", "concepts/next", "cache", "cache/facts")
"""Where drafts are written; readers, who hold no lock, write some of those in the cache."""
_OF_THE_HOLDER = "index/*-new.*", "cache/facts/*-new.*"
"""Files without the name of a draft that only the lock's holder writes."""


def writing(folder: Path) -> AbstractContextManager[None]:
    """Hold the write lock of a library, which the system releases when the process ends; errors as in
    :func:`moviola.files.locks.exclusive`.
    """
    return exclusive(folder / LOCK)


def is_being_written(folder: Path) -> bool:
    """Whether a process holds the write lock of a library; changes nothing."""
    return is_held(folder / LOCK)


def drafts_in(folder: Path) -> list[Path]:
    """Files and folders that processes which have ended left half written; where a writer is at work, its
    unfinished index may be among them.
    """
    drafts = (draft for place in _FOLDERS for draft in folder.glob(f"{place}/{DRAFTS}"))
    return [
        *filter(is_abandoned, drafts),
        *(draft for place in _OF_THE_HOLDER for draft in folder.glob(place)),
    ]


def sweep_drafts(folder: Path) -> None:
    """Delete what killed writers left half written; under the lock."""
    for draft in drafts_in(folder):
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)
