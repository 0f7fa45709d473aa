"""Copies of films that are no copies to a library: the same pictures, other bytes."""

from __future__ import annotations

from pathlib import Path

__all__ = ["film_like"]


def film_like(film: Path, path: Path, number: int = 0) -> Path:
    """Write an MP4 that plays alike, with a box behind it that is passed over; each number, other bytes."""
    content = number.to_bytes(8, "big")
    path.write_bytes(film.read_bytes() + (8 + len(content)).to_bytes(4, "big") + b"free" + content)
    return path
