"""Times as subtitle files write them. A stamp is read whole, or not at all."""

from __future__ import annotations

import re

__all__ = ["STAMP", "seconds_of"]

STAMP = (
    r"(?P<{0}sign>[-\u2212+]?)(?:(?P<{0}h>\d{{1,7}}) ?[:\uff1a] ?)?(?P<{0}m>\d{{1,7}}) ?[:\uff1a] ?"
    r"(?P<{0}s>\d{{1,2}})(?: ?(?:[.,;\uff0c\uff0e] ?|[:\uff1a](?=\d{{3}}(?!\d)))(?P<{0}f>\d{{1,9}}))?"
)
"""Pattern of a time with a name to begin its groups with, ``STAMP.format("a")``: hours, which may be missing,
minutes, seconds, and a decimal fraction after a full stop, a comma or a semicolon; of three digits also after
a colon. Signs may be of full width."""


def seconds_of(match: re.Match[str], name: str) -> float | None:
    """Seconds of a match of :data:`STAMP`, below zero with a minus sign; None where no clock shows it: 60
    seconds or more, or 60 minutes beside hours.
    """
    sign, hours, minutes, seconds, fraction = match.group(*(name + part for part in ("sign", *"hmsf")))
    if int(seconds) > 59 or (hours and int(minutes) > 59):
        return None
    digits = fraction or ""
    whole = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
    value = int(f"{whole}{digits}") / int(f"1{'0' * len(digits)}")
    return -value if sign in ("-", "\u2212") else value
