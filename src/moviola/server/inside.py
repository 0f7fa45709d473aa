"""Checks that sources are inside the allowed folders, links followed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from moviola.errors import NotFound, printable
from moviola.media import walk_files
from moviola.server.problems import Forbidden

__all__ = ["require_inside", "resolved"]


def resolved(path: Path) -> Path:
    """The path with links resolved.

    Raises:
        NotFound: links in a circle.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise NotFound(f"{path}: its links cannot be followed ({error})") from error


def require_inside(source: Path, folder: Path) -> None:
    """Refuse a file or folder that is, or contains, a link out of a folder.

    Args:
        source: a resolved path.
        folder: likewise.

    Raises:
        Forbidden: names the link.
    """
    for path in (source, *(walk_files(source) if source.is_dir() else ())):
        if path != source and not path.is_symlink():
            continue
        with suppress(NotFound):  # a circle of links leads nowhere
            if resolved(path).is_relative_to(folder):
                continue
            raise Forbidden(f"{printable(path)}: a link out of {folder}; remove it, or copy the file")
