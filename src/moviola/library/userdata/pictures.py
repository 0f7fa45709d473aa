"""Pictures of saved searches, as they are kept."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["picture_name", "picture_to_keep"]


def picture_name(content: bytes) -> str:
    """The name of a picture: the first 32 hexadecimal digits of the SHA-256 of its bytes."""
    return hashlib.sha256(content).hexdigest()[:32]


def picture_to_keep(path: Path) -> tuple[str, bytes]:
    """Name and bytes of a picture file, or of the first frame of a video, as a library keeps it.

    Raises:
        MediaError: there is no picture in it.
    """
    from moviola.media import small_picture  # with PyAV, which most of what is kept does without

    content = small_picture(path)
    return picture_name(content), content
