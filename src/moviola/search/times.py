"""Times as people write them: seconds, clock times, and ranges; and what is a number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import TypeVar

from moviola.errors import InvalidValue
from moviola.types import require_kind

__all__ = ["is_integer", "is_number", "parse_range", "parse_seconds"]

_CLOCK = r"(?:(?:(\d+):)?([0-5]?\d):)?(\d+(?:\.\d*)?|\.\d+)\s*s?"
Bound = TypeVar("Bound")


def parse_seconds(text: str, what: str) -> float:
    """Seconds of ``12.5``, ``12.5s``, ``1:02.5`` or ``1:02:03``; ``what`` names the text in messages.

    Raises:
        InvalidValue: another form.

    >>> parse_seconds("1:02:03.5", "time")
    3723.5
    """
    found = re.fullmatch(_CLOCK, text.strip())
    hours, minutes, seconds = (float(part or 0) for part in found.groups()) if found else (math.inf,) * 3
    total = hours * 3600 + minutes * 60 + seconds
    if not found or (found[2] is not None and seconds >= 60) or math.isinf(total):
        raise InvalidValue(f"{what} {text!r:.100} is no time; write seconds (12.5) or a clock time (1:02:03)")
    return total


def parse_range(
    text: str | None, what: str, parse: Callable[[str, str], Bound]
) -> tuple[Bound | None, Bound | None]:
    """The bounds of ``LOW..HIGH``; either may be left out (None), and both by None as text.

    Args:
        what: its name in messages.
        parse: reads one bound; its second argument is ``what``.

    Raises:
        InvalidValue: no ``..``, both bounds left out, or a bound that ``parse`` refuses.

    >>> parse_range("10..1:00", "length", parse_seconds)
    (10.0, 60.0)
    """
    if text is None:
        return None, None
    require_kind(what, text, str, "a text, LOW..HIGH")
    low, dots, high = text.partition("..")
    if not dots or not (low.strip() or high.strip()):
        raise InvalidValue(f"{what} {text!r}: write LOW..HIGH; either may be left out, as in 10..")
    return parse(low, what) if low.strip() else None, parse(high, what) if high.strip() else None


def is_number(value: object, least: float, most: float = math.inf) -> bool:
    """Whether a value is a number that a ``float`` can hold, within some bounds, both included."""
    try:
        return isinstance(value, Real) and least <= float(value) <= most
    except OverflowError:  # an integer of more than 308 digits
        return False


def is_integer(value: object, least: int) -> bool:
    """Whether a value is an integer, numpy's included, and at least ``least``; ``True`` is none."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least
