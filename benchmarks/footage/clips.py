"""Where the real footage lies, and the tables beside this file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["HERE", "VIDEOS", "Picture", "rows"]

HERE = Path(__file__).resolve().parent
VIDEOS = HERE.parents[2] / "shared" / "videos"

Picture = NDArray[np.uint8]
"""(height, width, 3), or several of them."""


def rows(name: str) -> list[dict[str, str]]:
    """A table beside this file."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
