"""A hash of pieces of a file, which stands for its content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from moviola.files.regular import open_regular

__all__ = ["content_hash"]

_CHUNK = 256 * 1024
_CHUNKS = 4


def content_hash(path: Path, size: int) -> str:
    """BLAKE2 over the size and four pieces of 256 KiB spread evenly, so that films are not read whole."""
    digest = hashlib.blake2b(str(size).encode(), digest_size=20)
    with os.fdopen(open_regular(path), "rb") as file:
        for piece in range(_CHUNKS):
            file.seek(max(0, (size - _CHUNK) * piece // (_CHUNKS - 1)))
            digest.update(file.read(_CHUNK))
    return digest.hexdigest()
