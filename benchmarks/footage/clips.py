"""Where the real footage lies, and the tables beside this file."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parents[1]))  # as a script

from measuring import VIDEOS, csv_rows

__all__ = ["VIDEOS", "Picture", "rows"]

Picture = NDArray[np.uint8]
"""(height, width, 3), or several of them."""


def rows(name: str) -> list[dict[str, str]]:
    """A table beside this file."""
    return csv_rows(Path(__file__).with_name(name))
