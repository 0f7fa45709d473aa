"""Recordings joined in one file, each with its own time stamps: where they join, and the shifts needed.

Transport and program streams can be concatenated (``cat a.vob b.vob``): time stamps then run back in the
middle of the file. Pictures show where (:class:`~moviola.media.source.Source`); sound, whose packets are a
little before or behind, is shifted by the same amount.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import av.container

from moviola.media.container import DAMAGE, open_video

__all__ = ["BACKWARD", "Joint", "SoundTimes", "is_joined"]

BACKWARD = Fraction(1, 2)
"""Seconds: time stamps that run back by more begin a new recording."""

# Formats that can be concatenated; the others have one index, or clusters with times of their own.
_JOINABLE = {"mpegts", "mpeg"}
# Places of a file where its time stamps are read. Of recordings that are longer than the distance of two
# places, at least one shows that time runs back.
_PLACES = 48


@dataclass(frozen=True, slots=True)
class Joint:
    """The end of a recording and the beginning of the next.

    Attributes:
        before, after: the last time stamp of one and the first of the other, in seconds, as they are stored.
        offset: seconds added to the time stamps from there on.
    """

    before: Fraction
    after: Fraction
    offset: Fraction


class SoundTimes:
    """Shifts the time stamps of sound by as much as those of the pictures beside it."""

    def __init__(self, joints: Sequence[Joint]) -> None:
        self._left = deque(joints)
        self._offset = Fraction(0)
        self._last: Fraction | None = None

    def moved(self, stamp: Fraction) -> Fraction:
        """Shift of a time stamp in seconds; to be called in file order."""
        if self._left and self._last is not None:
            joint = self._left[0]
            jump, whole = stamp - self._last, joint.after - joint.before
            if abs(jump - whole) < abs(jump):
                self._offset = self._left.popleft().offset
        self._last = stamp
        return self._offset


def is_joined(container: av.container.InputContainer) -> bool:
    """Whether the time stamps of a file run back somewhere, judged by some places of it.

    Args:
        container: the open file, which stays as it is.
    """
    if container.format.name not in _JOINABLE:
        return False
    path = Path(container.name)
    status = path.stat()
    return _runs_back(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _runs_back(path: Path, size: int, _changed: int) -> bool:
    stamps: list[Fraction] = []
    with open_video(path) as (container, stream):
        assert stream.time_base is not None
        for place in range(_PLACES):
            try:
                container.seek(size * place // _PLACES, unsupported_byte_offset=True)
                for packet in container.demux(stream):
                    if packet.dts is not None:
                        stamps.append(packet.dts * Fraction(stream.time_base))
                        break
            except DAMAGE:
                continue
    return any(later < earlier - BACKWARD for earlier, later in pairwise(stamps))
