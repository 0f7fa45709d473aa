"""Recordings that are joined in one file: their time stamps run back in the middle of it.

Transport and program streams can be concatenated (``cat a.vob b.vob``). Pictures show where; sound, whose
packets are a little before or behind, is shifted by the same amount.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Joint", "SoundTimes"]


@dataclass(frozen=True, slots=True)
class Joint:
    """The end of a recording and the beginning of the next: their time stamps, as stored, and what is added
    from there on, all in seconds.
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
