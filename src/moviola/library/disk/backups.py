"""``backups/`` of a library: what is replaced is moved there, and nothing there is ever written over."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from moviola.errors import LibraryError

__all__ = ["set_aside"]


def set_aside(library: Path, path: Path) -> Path:
    """Move a file or folder of a library to ``backups/NAME``, or ``NAME-2`` and so on where that is taken.

    Raises:
        LibraryError: it cannot be moved; it stays where it is.
    """
    first = library / "backups" / path.name
    place, numbers = first, count(2)
    try:
        first.parent.mkdir(exist_ok=True)
        while place.exists() or place.is_symlink():
            place = first.with_name(f"{path.name}-{next(numbers)}")
        return path.rename(place)
    except OSError as error:
        raise LibraryError(
            f"{path}: cannot be moved to {place} ({error.strerror}); see that both can be written, and "
            "try again"
        ) from error
