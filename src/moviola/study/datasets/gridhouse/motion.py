"""Where things are within a beat: the geometry that cameras and cutters share, in cells."""

from __future__ import annotations

from moviola.study.datasets.gridhouse.episode import Beat
from moviola.study.datasets.gridhouse.world import DIRECTIONS

__all__ = ["Point", "beside", "between", "eased", "looked_at", "moved", "share_of"]

Point = tuple[float, float]


def share_of(beat: Beat, time: float) -> float:
    """How much of a beat has passed at a time in seconds, 0 to 1."""
    return min(1.0, max(0.0, (time - beat.start) / (beat.end - beat.start)))


def eased(share: float) -> float:
    """The same share of a way that starts and ends gently."""
    return share * share * (3 - 2 * share)


def between(a: Point, b: Point, share: float) -> Point:
    """The point at a share of the way from one to another."""
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def beside(where: Point, heading: int) -> Point:
    """The cell before a place."""
    dx, dy = DIRECTIONS[heading]
    return where[0] + dx, where[1] + dy


def moved(beat: Beat, share: float) -> Point:
    """Where the robot is during a beat."""
    return between(beat.position, beat.target, share) if beat.kind == "forward" else beat.position


def looked_at(beat: Beat, time: float) -> Point:
    """What a camera that follows looks at: the robot, and on the way from one to another."""
    share = eased(share_of(beat, time))
    return between(beat.position, beat.target, share) if beat.kind == "swap" else moved(beat, share)
