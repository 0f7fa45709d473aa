"""Frames and timecodes: the frames of a span, and the labels of frames.

Conventions: frames are counted from 0; a range ``(first, end)`` is half-open, like spans. The first frame of
a span is the one on screen at its start, its end the first frame that begins at or after its end, so that an
edit shows exactly the frames of the clip that :func:`moviola.media.cut` makes. Times within a sixteenth of a
frame of a frame's beginning count as that beginning: files round their time stamps, Matroska to a
millisecond.

Timecodes are those of SMPTE ST 12-1. Drop-frame counting leaves out numbers, not frames: 00 and 01 (00 to 03
at 59.94) at the start of each minute that is no multiple of ten. Its labels are the library ``timecode``'s.

Examples:
    >>> from fractions import Fraction
    >>> from moviola.export.timebase import Timebase
    >>> from moviola.types import Span
    >>> counted = Timebase(Fraction(30000, 1001), drop_frame=True)
    >>> first, end = counted.frames(Span(60.06, 61))
    >>> counted.timecode(first), end - first, counted.frame_of(counted.timecode(first)) == first
    ('00:01:00;02', 29, True)
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from moviola.errors import InvalidValue
from moviola.types import Span

if TYPE_CHECKING:
    from timecode.timecode import Timecode

__all__ = ["STANDARD_RATES", "Timebase", "nominal_rate", "parse_rate", "sequence_rate"]

STANDARD_RATES = tuple(
    map(Fraction, ("24000/1001", "24", "25", "30000/1001", "30", "50", "60000/1001", "60"))
)
"""Timeline rates of all editing programs, rising."""

_NEAR_FRAME = Fraction(1, 16)
# Pictures per second below which an average of a varying rate says nothing about when they change.
_SLIDES = 5
# Tolerances: between the average of a varying rate and the camera's nominal rate, and for a rounded constant
# rate: 29.97 for 30000/1001.
_VARIATION = Fraction(2, 100)
_ROUNDING = Fraction(5, 10_000)
_TIMECODE = re.compile(r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d)([:;])(\d\d)")


@dataclass(frozen=True, slots=True)
class Timebase:
    """An exact rate in frames per second, and the way of counting.

    Raises:
        InvalidValue: a rate that is not above 0, or drop-frame counting at another rate than 29.97, 59.94 and
            their multiples by 2.
    """

    rate: Fraction
    drop_frame: bool = False

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise InvalidValue(f"rate {self.rate}: give frames a second, above 0")
        if self.drop_frame and not can_drop(self.rate):
            raise InvalidValue(
                f"drop-frame at {float(self.rate):g} frames a second: only 29.97 and 59.94 have it; "
                "leave it off"
            )

    @property
    def base(self) -> int:
        """Frames per second of timecode: 30 at 29.97."""
        return max(1, round(self.rate))

    def frames(self, span: Span) -> tuple[int, int]:
        """The frames of a span, at least one: ``(first, end)``."""
        first = math.floor(Fraction(span.start) * self.rate + _NEAR_FRAME)
        end = math.ceil(Fraction(span.end) * self.rate - _NEAR_FRAME)
        return first, max(first + 1, end)

    def seconds(self, frames: int) -> Fraction:
        """Duration of a number of frames."""
        return frames / self.rate

    def timecode(self, frame: int) -> str:
        """The label of a frame, ``01:00:00:00``; ``;`` before the frames in drop-frame counting.

        After 23:59:59 it starts again at zero.
        """
        if self.drop_frame:
            return str(self._of(frames=frame + 1))
        # The library writes milliseconds at a rate of 1000.
        seconds, frames = divmod(frame, self.base)
        minutes, seconds = divmod(seconds, 60)
        return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}:{seconds:02d}:{frames:02d}"

    def frame_of(self, timecode: str) -> int:
        """The frame of a label ``hh:mm:ss:ff``; ``;`` before the frames is for drop-frame counting only.

        Raises:
            InvalidValue: no timecode, or a number that this counting does not have.
        """
        match = _TIMECODE.fullmatch(timecode)
        if not match or int(match[5]) >= self.base:
            raise InvalidValue(
                f"timecode {timecode!r}: write hh:mm:ss:ff, with frames from 00 to {self.base - 1:02d}"
            )
        plain = timecode.replace(";", ":")
        frame = self._number(plain)
        if (match[4] == ";" and not self.drop_frame) or self.timecode(frame).replace(";", ":") != plain:
            counting = "drop-frame" if self.drop_frame else "non-drop"
            raise InvalidValue(
                f"timecode {timecode!r}: does not exist in {counting} counting; use the one after it"
            )
        return frame

    def nearest_label(self, timecode: str, base: int) -> int:
        """The frame for a label of a counting of ``base`` frames a second: the same hours to seconds."""
        clock, frames = timecode.replace(";", ":").rsplit(":", 1)
        return self._number(f"{clock}:{min(self.base - 1, round(int(frames) * self.base / base)):02d}")

    def _number(self, timecode: str) -> int:
        if self.drop_frame:
            return int(self._of(start_timecode=timecode).frames) - 1
        hours, minutes, seconds, frames = map(int, timecode.split(":"))
        return ((hours * 60 + minutes) * 60 + seconds) * self.base + frames

    def _of(self, **value: int | str) -> Timecode:
        from timecode.timecode import Timecode

        return Timecode(self.rate, **value)  # type: ignore[arg-type]


def can_drop(rate: Fraction) -> bool:
    """Whether a rate allows drop-frame counting: 29.97 and its multiples."""
    return (rate / Fraction(30000, 1001)).denominator == 1


def parse_rate(text: str) -> Fraction:
    """A rate as people write it: ``25``, ``23.976``, ``29.97``, ``24000/1001``.

    Raises:
        InvalidValue: no number from 1/1001 to 1000.
    """
    try:
        # An exponent of some digits is a number of as many digits as it says.
        rate = Fraction(0) if "e" in text.lower() else Fraction(text)
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if not Fraction(1, 1001) <= rate <= 1000:
        raise InvalidValue(f"rate {text!r}: give frames a second, such as 25, 23.976 or 30000/1001")
    near = min(STANDARD_RATES, key=lambda standard: abs(standard - rate))
    return near if abs(near - rate) < Fraction(6, 1000) else rate.limit_denominator(1001)


def nominal_rate(average: Fraction | None, base: Fraction | None) -> Fraction:
    """The nominal rate of a file.

    Args:
        average, base: from :class:`moviola.media.MediaInfo`.

    Returns:
        the base rate where it is a standard one near the average; else the standard rate nearest to the
        average, where that is less than two in a hundred away, of a constant rate one in two thousand; else
        the average: an odd rate. 25 where the file says nothing, and for slides, which stand for seconds of
        their own.
    """
    if average is None or (average < _SLIDES and average != base):
        return Fraction(25)
    if base in STANDARD_RATES and abs(base - average) <= _VARIATION * average:
        return base
    near = min(STANDARD_RATES, key=lambda standard: abs(standard - average))
    allowed = _ROUNDING if base == average else _VARIATION
    return near if abs(near - average) <= allowed * average else average.limit_denominator(1001)


def sequence_rate(rates: Iterable[Fraction]) -> Fraction:
    """The rate of a timeline that holds videos of these rates, one for each moment.

    Returns:
        the one that most have, the first of several; if no program has it, the least standard rate that is
        a multiple of it (25 for 12.5), else the greatest that it is a multiple of (60 for 240), else the next
        whole one above.
    """
    counts = Counter(rates)
    if not counts:
        return Fraction(25)
    rate = max(counts, key=lambda known: counts[known])
    multiples = [standard for standard in STANDARD_RATES if (standard / rate).denominator == 1]
    parts = [standard for standard in STANDARD_RATES if (rate / standard).denominator == 1]
    above = [standard for standard in STANDARD_RATES if standard.denominator == 1 and standard >= rate]
    return next(iter([*multiples, *reversed(parts), *above]), STANDARD_RATES[-1])
