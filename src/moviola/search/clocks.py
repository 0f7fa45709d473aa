"""When videos were taken, as numbers that can be compared: of each the time on its clock, and the instant.

Zones are those of this machine, at the time of the question; no library keeps them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from moviola.library.disk.captures import ZONES

__all__ = ["days", "instants", "microseconds", "walls"]

Integers = NDArray[np.int64]

_EPOCH, _TICK = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_DAY = timedelta(days=1) // _TICK
_UTC, _NONE = ZONES.index("utc"), ZONES.index("none")


def microseconds(time: datetime) -> int:
    """Since 1970, of an instant, or on a clock without a zone."""
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _TICK


def walls(clocks: Integers) -> Integers:
    """Microseconds (V,) of local clock time since 1970, :attr:`moviola.library.Taken.wall`.

    ``clocks`` are :data:`moviola.library.disk.captures.Clock`, (V, 3).
    """
    zone, time, offset = clocks.reshape(-1, 3).T
    found, utc = time.copy(), zone == _UTC
    universal = (time - offset)[utc]
    found[utc] = universal + _offsets(universal, _local_offset)
    return found


def instants(clocks: Integers) -> Integers:
    """Microseconds (V,) since 1970, :attr:`moviola.library.Taken.instant`, of the same."""
    zone, time, offset = clocks.reshape(-1, 3).T
    found, none = time - offset, zone == _NONE
    local = time[none]
    # Not the offset of the instant: in the hour that a clock leaves out that is the one after it.
    clock = _EPOCH.replace(tzinfo=None)
    found[none] = local - _offsets(local, lambda at: at - microseconds((clock + at * _TICK).astimezone()))
    return found


def days(clocks: Integers) -> dict[str, int]:
    """Number of videos by the local day on which they were taken, ``2024-05-01``, in order."""
    found, counts = np.unique(walls(clocks) // _DAY, return_counts=True)
    dates = ((_EPOCH + timedelta(days=day)).date().isoformat() for day in found.tolist())
    return dict(zip(dates, counts.tolist(), strict=True))


def _local_offset(at: int) -> int:
    """Microseconds east of UTC, in this machine's zone, at an instant."""
    return ((_EPOCH + at * _TICK).astimezone().utcoffset() or timedelta()) // _TICK


def _offsets(times: Integers, offset: Callable[[int], int]) -> Integers:
    """Microseconds (n,) east of UTC at some times (n,), which are looked up by the day; one by one on a day
    that begins and ends with others.
    """
    found, place = np.unique(times // _DAY, return_inverse=True)
    edges = [(offset(day * _DAY), offset((day + 1) * _DAY - 1)) for day in found.tolist()]
    first, last = np.array(edges, np.int64).reshape(-1, 2).T
    offsets = first[place]
    for one in np.flatnonzero((first != last)[place]).tolist():
        offsets[one] = offset(int(times[one]))
    return offsets
