"""Whether a file or a folder is there, for paths that nobody has checked before.

``Path.is_file`` and ``Path.is_dir`` raise an error for names that are too long, in folders that this user may
not look into, and on drives that fail.
"""

from __future__ import annotations

import os

__all__ = ["is_file", "is_folder", "is_gone"]


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
