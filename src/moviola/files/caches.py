"""Folders of files that can be rebuilt: the user's cache, and a library's own where it can be written; and
which libraries were used lately.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from moviola.files.writing import write_text

__all__ = ["cache_of", "note_used", "used_lately", "user_cache"]

_MOST_USED = 3


def user_cache() -> Path:
    """The folder for moviola in the user's cache; it may not exist yet."""
    from platformdirs import user_cache_path

    return user_cache_path("moviola")


def cache_of(library: Path) -> Path:
    """``cache/`` of a library, or where that cannot be written a folder in the user's cache."""
    own = library / "cache"
    nearest = own if own.exists() else library
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return own
    return user_cache() / "libraries" / hashlib.sha256(str(library.resolve()).encode()).hexdigest()[:16]


def note_used(libraries: Sequence[Path]) -> None:
    """Remember libraries as those that were used last, in the user's cache where that can be written, and
    unless ``MOVIOLA_CONFIG`` is empty: then nothing of the user's counts.
    """
    with suppress(OSError, ValueError):  # of ValueError: names that are not Unicode
        named, known = [str(one.resolve()) for one in libraries], _used()
        if known[: len(named)] != named and os.environ.get("MOVIOLA_CONFIG") != "":
            write_text(_noted(), "\n".join([*dict.fromkeys([*named, *known])][:_MOST_USED]) + "\n")


def used_lately() -> list[Path]:
    """Folders of the libraries that :func:`note_used` remembers and that are there, the last used first."""
    return [folder for folder in map(Path, _used()) if folder.is_dir()]


def _used() -> list[str]:
    if os.environ.get("MOVIOLA_CONFIG") == "":
        return []
    try:
        return [line for line in _noted().read_text("utf-8").splitlines() if line]
    except (OSError, ValueError):
        return []


def _noted() -> Path:
    return user_cache() / "used.txt"
