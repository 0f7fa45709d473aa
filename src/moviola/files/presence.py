"""Whether a file or a folder is there, for paths that nobody has checked before.

``Path.is_file`` and ``Path.is_dir`` raise an error for names that are too long, in folders that this user may
not look into, and on drives that fail.
"""

from __future__ import annotations

import os

__all__ = ["READ_ONLY", "is_file", "is_folder", "is_gone", "is_read_only"]

READ_ONLY = (
    "lies on a disk that is mounted read-only; all that is there can be read, but nothing changed: mount the "
    "disk writable, or copy the folder to another one"
)
"""Words for a folder of :func:`is_read_only`."""


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is there; False where that cannot be found out."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is there; False where that cannot be found out."""
    return os.path.isdir(path)  # noqa: PTH112


def is_gone(path: str | os.PathLike[str]) -> bool:
    """Whether a file or a folder is certainly not there; False where that cannot be found out."""
    try:
        os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def is_read_only(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is on a file system that is mounted read-only, where the modes of files say nothing;
    False where that cannot be found out.
    """
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except (OSError, AttributeError):  # Windows has no such call
        return False
