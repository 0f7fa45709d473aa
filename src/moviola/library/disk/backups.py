"""``backups/`` of a library: what is replaced is moved there, and nothing there is ever written over."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from moviola.errors import LibraryError
from moviola.files.writing import atomic_write, make_folders

__all__ = ["keep_copy", "set_aside"]


def set_aside(library: Path, path: Path) -> Path:
    """Move a file or folder of a library to ``backups/NAME``, or ``NAME-2`` and so on where that is taken.

    Raises:
        LibraryError: it cannot be moved; it stays where it is.
    """
    first = library / "backups" / path.name
    place, numbers = first, count(2)
    try:
        make_folders(first.parent)
        while place.exists() or place.is_symlink():
            place = first.with_name(f"{path.name}-{next(numbers)}")
        return path.rename(place)
    except OSError as error:
        raise LibraryError(
            f"{path}: cannot be moved to {place} ({error.strerror}); see that both can be written, and "
            "try again"
        ) from error


def keep_copy(library: Path, path: Path) -> Path:
    """Copy a file of a library to ``backups/``, by a free name, unless the same content is there already.

    Raises:
        OSError: it cannot be read or written.
    """
    content, first = path.read_bytes(), library / "backups" / path.name
    place, numbers = first, count(2)
    while place.exists() or place.is_symlink():
        if place.is_file() and place.read_bytes() == content:
            return place
        place = first.with_name(f"{path.stem}-{next(numbers)}{path.suffix}")
    with atomic_write(place, "wb", follow=False) as file:
        file.write(content)
    return place
