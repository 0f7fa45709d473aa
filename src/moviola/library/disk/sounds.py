"""Sounds in the videos of a library: their classes, patch by patch, as a reader gave them."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moviola.library.disk.database import Database

__all__ = ["HEARD", "MOST_CLASSES", "Sounds"]

MOST_CLASSES = 6
"""Classes that are kept of a patch, the likeliest first."""

HEARD = np.dtype([("class", "<u2"), ("share", "u1")])
"""A class by its number, and its probability as a share of 255; 0: none."""


class Sounds(Database):
    """The tables ``sounds`` and ``sound_classes`` of a catalogue."""

    def put_sounds(self, row: int, revision: str, names: Sequence[str], heard: NDArray[np.void]) -> None:
        """Store what a reader of a revision, whose classes have these names, has heard in a video: (n,
        MOST_CLASSES) HEARD.
        """
        self._rows("INSERT OR REPLACE INTO sound_classes VALUES (?, ?)", (revision, json.dumps([*names])))
        text = base64.b64encode(np.ascontiguousarray(heard, HEARD).tobytes()).decode("ascii")
        self._rows("INSERT OR REPLACE INTO sounds VALUES (?, ?, ?)", (row, revision, text))

    def has_sounds(self) -> bool:
        """Whether the sounds of any video were read."""
        return bool(self._rows_of("sounds", "SELECT 1 FROM sounds LIMIT 1"))

    def sounds_read(self) -> dict[int, str]:
        """Revisions of the readers by row number, of the videos whose sounds were read; earlier versions did
        not hear what is shorter than a patch.
        """
        return dict(self._rows_of("sounds", "SELECT video, revision FROM sounds WHERE heard != ''"))

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
        try:
            return np.frombuffer(base64.b64decode(text, validate=True), HEARD).reshape(-1, MOST_CLASSES)
        except (TypeError, ValueError, binascii.Error) as error:
            raise self._damaged(f"sounds of video {row}") from error
