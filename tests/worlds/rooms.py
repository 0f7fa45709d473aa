"""Films of rooms, for tests that need segments which differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from moviola.media import write_video

__all__ = ["RATE", "write_rooms"]

RATE = 5
"""Pictures a second."""


def write_rooms(path: Path, seconds: int, seed: int) -> None:
    """A film of a room of another colour every three seconds, each with a square in the opposite colour."""
    generator = np.random.default_rng(seed)
    frames = []
    for _ in range(-(-seconds // 3)):
        colour = generator.integers(0, 255, 3, np.uint8)
        wall = np.broadcast_to(colour, (64, 64, 3)).copy()
        left, top = generator.integers(0, 40, 2)
        wall[top : top + 20, left : left + 20] = 255 - colour
        frames += [wall] * (3 * RATE)
    write_video(path, frames[: seconds * RATE], rate=RATE)
