"""Checks that sources are inside the allowed folders, links followed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from moviola.errors import NotFound, printable
from moviola.media import walk_files
from moviola.server.problems import Forbidden

__all__ = ["require_inside", "resolved"]


def resolved(path: Path) -> Path:
    """The path with links resolved; NotFound where they go in a circle."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise NotFound(f"{path}: its links cannot be followed ({error})") from error


def require_inside(source: Path, folder: Path) -> None:
    """Refuse a file or folder that is, or contains, a link out of a folder; both are resolved paths."""
    links = (path for path in walk_files(source) if path.is_symlink()) if source.is_dir() else ()
    for path in (source, *links):
        with suppress(NotFound):  # a circle of links leads nowhere
            if not resolved(path).is_relative_to(folder):
                raise Forbidden(f"{printable(path)}: a link out of {folder}; remove it, or copy the file")
