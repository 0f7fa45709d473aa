"""Sounds in the videos of a library: their likeliest classes, patch by patch, as a reader gave them."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moviola.library.disk.database import Database

__all__ = ["HEARD", "MOST_CLASSES", "Sounds", "levels", "log_odds"]

MOST_CLASSES = 16
"""Classes that are kept of a patch, the likeliest first."""

HEARD = np.dtype([("class", "<u2"), ("level", "u1")])
"""A class by its number, and the level of its log odds, see :func:`levels`; 0: none."""

# Steps of a level, and log odds of the lowest.
_STEP, _LOWEST = 0.1, -16.0
# What earlier versions kept: six classes by shares of 255.
_EARLIER, _MOST_EARLIER = np.dtype([("class", "<u2"), ("share", "u1")]), 6


def levels(probabilities: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Levels of the log odds of probabilities in [0, 1]: tenths above -16, from 1 to 255."""
    sure = np.clip(probabilities.astype(np.float64), 1e-9, 1 - 1e-9)
    steps = np.rint((np.log(sure / (1 - sure)) - _LOWEST) / _STEP)
    return np.clip(steps, 1, 255).astype(np.uint8)


def log_odds(level: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The log odds of levels, in [-15.9, 9.5]; of level 0 those of the lowest."""
    return (np.maximum(level, 1) * np.float32(_STEP) + np.float32(_LOWEST)).astype(np.float32)


class Sounds(Database):
    """The tables ``sounds`` and ``sound_classes`` of a catalogue."""

    def put_sounds(self, row: int, revision: str, names: Sequence[str], heard: NDArray[np.void]) -> None:
        """Store what a reader of a revision, whose classes have these names, has heard in a video: (n,
        MOST_CLASSES) HEARD.
        """
        self._rows("INSERT OR REPLACE INTO sound_classes VALUES (?, ?)", (revision, json.dumps([*names])))
        kept = base64.b64encode(np.ascontiguousarray(heard, HEARD).tobytes()).decode("ascii")
        text = f"{MOST_CLASSES}:{kept}"
        self._rows("INSERT OR REPLACE INTO sounds VALUES (?, ?, ?)", (row, revision, text))

    def has_sounds(self) -> bool:
        """Whether the sounds of any video were read."""
        return bool(self._rows_of("sounds", "SELECT 1 FROM sounds LIMIT 1"))

    def sounds_read(self) -> dict[int, str]:
        """Revisions of the readers by row number, of the videos whose sounds were read."""
        return dict(self._rows_of("sounds", "SELECT video, revision FROM sounds"))

    def sounds(self, revision: str) -> dict[int, NDArray[np.void]]:
        """What a reader of a revision has heard, (n, MOST_CLASSES) HEARD by row number, in rising order."""
        statement = "SELECT video, heard FROM sounds WHERE revision = ? ORDER BY video"
        rows = self._rows_of("sounds", statement, (revision,))
        return {row: self._heard(row, text) for row, text in rows}

    def sound_revision(self) -> str:
        """Revision of the reader that has read most videos, since no two are compared; empty without any."""
        read = Counter(self.sounds_read().values())
        return max(read, key=lambda revision: (read[revision], revision), default="")

    def sound_classes(self) -> dict[str, list[str]]:
        """Names of the classes by the revision of their reader."""
        rows = self._rows_of("sound_classes", "SELECT revision, names FROM sound_classes")
        try:
            return {revision: [str(name) for name in json.loads(names)] for revision, names in rows}
        except (TypeError, ValueError) as error:
            raise self._damaged("names of sounds") from error

    def _heard(self, row: int, text: str) -> NDArray[np.void]:
        kept = text.removeprefix(f"{MOST_CLASSES}:")
        try:
            data = base64.b64decode(kept, validate=True)
            if kept != text:
                return np.frombuffer(data, HEARD).reshape(-1, MOST_CLASSES)
            earlier = np.frombuffer(data, _EARLIER).reshape(-1, _MOST_EARLIER)
        except (TypeError, ValueError, binascii.Error) as error:
            raise self._damaged(f"sounds of video {row}") from error
        heard = np.zeros((len(earlier), MOST_CLASSES), HEARD)
        heard["class"][:, :_MOST_EARLIER] = earlier["class"]
        shares = np.asarray(earlier["share"] / 255, np.float32)
        heard["level"][:, :_MOST_EARLIER] = np.where(shares > 0, levels(shares), 0)
        return heard
