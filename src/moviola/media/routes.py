"""The way of a camera while it recorded, of places that were noted second by second."""

from __future__ import annotations

import math
from collections.abc import Iterable

from moviola.media.subtitles.values import Fix
from moviola.types import Waypoint

__all__ = ["route_of"]

# Metres by which places of a camera that stands differ; and of a degree of latitude.
_STANDING, _DEGREE = 5.0, 111_195.0
# Digits behind the point of degrees: a tenth of a metre.
_DIGITS = 6


def route_of(fixes: Iterable[Fix]) -> tuple[Waypoint, ...]:
    """Where a camera was and from when on, in order of time: the first place, and each that is away from the
    one before it by more than a place is sure.
    """
    route: list[Waypoint] = []
    for fix in sorted((fix for fix in fixes if fix.place), key=lambda fix: fix.time):
        assert fix.latitude is not None and fix.longitude is not None
        north, east = round(fix.latitude, _DIGITS), round(fix.longitude, _DIGITS)
        if not route or _metres(*route[-1][1:], north, east) > _STANDING:
            route.append((max(0.0, fix.time), north, east))
    return tuple(route)


def _metres(north: float, east: float, north2: float, east2: float) -> float:
    """The distance of near places."""
    across = (east2 - east + 180) % 360 - 180
    return _DEGREE * math.hypot(north2 - north, across * math.cos(math.radians(north)))
