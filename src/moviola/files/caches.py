"""Folders of files that can be rebuilt: the user's cache, and a library's own where it can be written."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["cache_of", "user_cache"]


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
