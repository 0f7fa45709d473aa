"""The real clips that films are cut from: stretches without a cut (`stretches.csv`), and their pictures."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.media import sample_frames
from moviola.types import FrameSize

__all__ = ["HERE", "VIDEOS", "Picture", "Stretch", "pictures", "rows", "stretches"]

HERE = Path(__file__).resolve().parent
VIDEOS = HERE.parents[2] / "shared" / "videos"

Picture = NDArray[np.uint8]


@dataclass(frozen=True)
class Stretch:
    """Seconds of a file that are one shot.

    Attributes:
        file: its name.
        start, end: seconds in it.
        scene: two clips of one scene are never neighbours, because nobody could say where one ends.
        copied: place among those that copies are made of; None for none of them.
    """

    file: str
    start: float
    end: float
    scene: str
    copied: int | None


def rows(name: str) -> list[dict[str, str]]:
    """A table beside this file."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stretches() -> list[Stretch]:
    """All stretches, in the order of the file."""
    return [
        Stretch(
            row["file"], float(row["start"]), float(row["end"]), row["scene"],
            int(row["copied"]) if row["copied"] else None,
        )
        for row in rows("stretches.csv")
    ]  # fmt: skip


def pictures(path: Path, start: float, seconds: float, rate: float, size: FrameSize) -> Iterator[Picture]:
    """Pictures (height, width, 3) uint8 of a stretch of a file, at a rate and in a size."""
    first = round(start * rate)
    with sample_frames(path, rate=rate, size=size) as stream:
        for frame in islice(stream, first, first + round(seconds * rate)):
            yield frame.image
