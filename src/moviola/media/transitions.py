"""Transitions between shots, from the pictures of a stretch: cuts, dissolves, fades; wipes (:mod:`.sweeps`).

Arithmetic on tiny pictures, (n, 18, 32, 3) uint8 RGB of the whole frame, and the seconds (n,) at which they
come on screen. Distances are means over a picture's values, 0–255. The numbers below were set on films cut
from real clips (``benchmarks/footage/README.md``).

A *cut* is a step between neighbouring pictures that stands out from those around it (as in the adaptive
detector of PySceneDetect): pans and action have many large steps, a flash comes back to where it was.

A *dissolve* from A to B goes in a straight line, unlike what moves: every picture is ``(1-a)A + aB`` with a
rising evenly from 0 to 1. The squared distance of X from there is ``(1-a)|X-A|² + a|X-B|² - a(1-a)|A-B|²``
(Stewart). A *fade* is a straight line to black or white and one back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from moviola.media.sweeps import sweeps
from moviola.threads import one_blas_thread

__all__ = [
    "LONGEST_DISSOLVE", "Slope", "Transition", "TransitionKind", "joined_fades", "transitions",
    "transitions_of_some",
]  # fmt: skip

TransitionKind = Literal["cut", "dissolve", "fade", "wipe"]

LONGEST_DISSOLVE = 2.2
"""Seconds of the longest dissolve, or of each half of a fade, that is found."""

# Of a cut: least step, and least factor above the second largest step within _AROUND seconds, in fine and in
# coarse pictures; coarse ones are blind to what moves, and see a change of light and colour.
_FINE, _COARSE_CUT = (14.0, 2.5), (7.0, 3.0)
_COARSE = (3, 4)
_AROUND = 0.5
# A picture shifted by this many rows and columns, to less than half of the step, is a jerk of the camera, or
# part of a pan in few pictures per second.
_MOVED = (3, 5)
# A picture that returns within this many seconds to less than half the step was only lit up.
_FLASH = 0.4
# Of a dissolve: least root mean square between both ends, most deviation from the straight line as a share of
# that, the least share of the picture that changes (titles come and go over a shot that stays), and the
# correlation from which on only the light has changed.
_FAR, _BENT, _WIDE, _ALIKE = 35.0, 0.19, 0.28, 0.9
_SHORTEST_DISSOLVE = 4  # pictures
# With missing pictures: margins by which a step may be smaller and a slope nearer or more bent, and the
# fewest steps of a slope, to count among all pictures.
_DOUBT, _SHORTEST_HINT = 1.2, 2
# A blank picture: spread over the frame, and brightness of black and of white.
_EVEN, _BLACK, _WHITE = 8.0, 32.0, 224.0

Pictures = NDArray[np.uint8]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Transition:
    """A cut, a dissolve, a fade to black or white and back, or a wipe: one picture sweeps another away.

    Attributes:
        kind: which of them.
        start, end: seconds; pictures between show something of both shots. Equal for a cut: the time at which
            the first picture of the new shot comes on screen.
    """

    kind: TransitionKind
    start: float
    end: float

    @property
    def time(self) -> float:
        """Start of the new shot in seconds: the middle of the transition."""
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class Slope:
    """A straight line from one picture to another: its seconds, and whether it begins or ends blank."""

    start: float
    end: float
    from_blank: bool
    to_blank: bool


def transitions(times: Floats, pictures: Pictures) -> list[Transition | Slope]:
    """Cuts, and straight lines between pictures (n, 18, 32, 3) uint8 RGB of one stretch of a video, in order
    of time; they come on screen at ``times``, (n,) float64 rising seconds.
    """
    cut = cuts(times, pictures)
    return _marks(times, pictures, cut, *_gradual(times, pictures, cut))


def transitions_of_some(
    times: Floats, pictures: Pictures, missing: NDArray[np.int64]
) -> list[Transition | Slope] | None:
    """Like :func:`transitions`, from some of the pictures of a stretch; None: all pictures are needed.

    Cuts are then those between neighbours, at their exact frame; slopes begin and end at given pictures. None
    where a cut or a short slope may hide between two pictures, or where steps of the missing ones may be so
    much smaller that another one stands out.

    Args:
        times, pictures: see :func:`transitions`.
        missing: (n - 1,) number of pictures missing between each and the next.
    """
    cut = cuts(times, pictures)
    lines, swept = _gradual(times, pictures, cut)
    if missing.any():
        straight, sweeping = _gradual(times, pictures, cut, shortest=_SHORTEST_HINT, doubt=_DOUBT)
        known = [*lines, *swept]
        if _may_hide_cuts(times, pictures, missing) or not all(
            _meets_any(hint, known) for hint in (*straight, *sweeping)
        ):
            return None
    return _marks(times, pictures, cut, lines, swept)


def _marks(
    times: Floats,
    pictures: Pictures,
    places: Sequence[int],
    lines: Sequence[tuple[int, int]],
    swept: Sequence[tuple[int, int]],
) -> list[Transition | Slope]:
    seconds = times.tolist()
    marks: list[Transition | Slope] = [
        *(Transition("cut", seconds[place], seconds[place]) for place in places),
        *(Slope(seconds[p], seconds[q], _blank(pictures[p]), _blank(pictures[q])) for p, q in lines),
        *(Transition("wipe", seconds[first], seconds[last]) for first, last in swept),
    ]
    return sorted(marks, key=lambda mark: mark.start)


def _meets_any(stretch: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(stretch[0] < last and first < stretch[1] for first, last in others)


def joined_fades(marks: Iterable[Transition | Slope]) -> list[Transition]:
    """Transitions between shots, of all marks of a video in order: slopes into and out of a blank picture are
    one fade, the others dissolves.

    A slope from black at the beginning, or to black at the end, leads to no other shot; nor does one beside a
    cut to or from black, which is the transition there.
    """
    joined: list[Transition] = []
    out: Slope | None = None
    for mark in marks:
        if isinstance(mark, Transition):
            joined.append(mark)
        elif not (mark.from_blank or mark.to_blank):
            joined.append(Transition("dissolve", mark.start, mark.end))
        elif out is not None and not mark.to_blank:
            joined.append(Transition("fade", out.start, mark.end))
        out = mark if isinstance(mark, Slope) and mark.to_blank else None
    return joined


def cuts(times: Floats, pictures: Pictures) -> list[int]:
    """Places (> 0) of the pictures that begin a new shot after a cut."""
    flat = _flat(pictures)
    steps, coarse = _steps(flat), _steps(_coarse(pictures))
    standing = [
        step + 1
        for step in np.flatnonzero((steps >= _FINE[0]) | (coarse >= _COARSE_CUT[0])).tolist()
        if (
            _stands_out(times, steps, steps, step, _FINE)
            or _stands_out(times, coarse, coarse, step, _COARSE_CUT)
        )
        and not _only_moved(pictures[step], pictures[step + 1], steps[step] / 2)
    ]
    return _without_flashes(times, flat, steps, standing)


def _flat(pictures: Pictures) -> NDArray[np.float32]:
    return pictures.reshape(len(pictures), -1).astype(np.float32)


def _steps(flat: NDArray[np.float32]) -> Floats:
    """(n - 1,) mean distance of each picture from the one before."""
    steps: Floats = np.abs(np.diff(flat, axis=0)).mean(axis=1, dtype=np.float64)
    return steps


def _coarse(pictures: Pictures) -> NDArray[np.float32]:
    """Means of a few fields of each picture, (n, fields)."""
    count, height, width, _ = pictures.shape
    rows, columns = _COARSE
    fields = pictures.reshape(count, rows, height // rows, columns, width // columns, 3)
    means: NDArray[np.float32] = fields.mean(axis=(2, 4), dtype=np.float32).reshape(count, -1)
    return means


def _may_hide_cuts(times: Floats, pictures: Pictures, missing: NDArray[np.int64]) -> bool:
    """Whether all pictures may show another cut than the given ones: what goes on evenly makes several
    pictures' step out of as many small ones.
    """
    for values, (least, factor) in ((_flat(pictures), _FINE), (_coarse(pictures), _COARSE_CUT)):
        steps = _steps(values)
        smallest = steps / (missing + 1)
        for step in np.flatnonzero(steps >= least / _DOUBT).tolist():
            enough = least / _DOUBT if missing[step] else least
            if _stands_out(times, steps, smallest, step, (enough, factor)) and (
                missing[step] or not _stands_out(times, steps, steps, step, (least, factor))
            ):
                return True
    return False


def _stands_out(times: Floats, steps: Floats, others: Floats, step: int, limits: tuple[float, float]) -> bool:
    """Whether a step is large, and larger than the others around it; one other cut may be near."""
    least, factor = limits
    if steps[step] < least:
        return False
    at = times[step + 1]
    first = min(int(np.searchsorted(times, at - _AROUND)), step - 1) - 1
    stop = max(int(np.searchsorted(times, at + _AROUND)), step + 3)
    around = np.concatenate([others[max(first, 0) : step], others[step + 1 : stop]])
    usual = np.partition(around, -2)[-2] if len(around) > 1 else 0.0
    return bool(steps[step] >= factor * (usual + 0.5))


def _only_moved(before: Pictures, after: Pictures, least: float) -> bool:
    """Whether some small shift of a picture (18, 32, 3) comes nearer to another one than ``least``."""
    height, width = before.shape[:2]
    first, second = before.astype(np.float32), after.astype(np.float32)
    rows, columns = _MOVED
    for down in range(-rows, rows + 1):
        for right in range(-columns, columns + 1):
            ours = first[max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)]
            theirs = second[max(-down, 0) : height - max(down, 0), max(-right, 0) : width - max(right, 0)]
            if np.abs(ours - theirs).mean() < least:
                return True
    return False


def _without_flashes(
    times: Floats, flat: NDArray[np.float32], steps: Floats, places: Sequence[int]
) -> list[int]:
    """Drop steps after which the picture soon returns to what it was, and the steps between."""
    left: list[int] = []
    lit_until = 0
    for number, place in enumerate(places):
        if place <= lit_until:
            continue
        for other in places[number + 1 :]:
            if times[other] - times[place] > _FLASH:
                break
            back = float(np.abs(flat[place - 1] - flat[other]).mean())
            if back < 0.5 * min(steps[place - 1], steps[other - 1]):
                lit_until = other
        if place > lit_until:
            left.append(place)
    return left


def _gradual(
    times: Floats,
    pictures: Pictures,
    cut_places: Sequence[int],
    *,
    shortest: int = _SHORTEST_DISSOLVE,
    doubt: float = 1.0,
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Stretches in which pictures go in a straight line from one to another, and those in which one sweeps
    another away, with no cut inside.

    First and last picture of each, at least ``shortest`` steps apart, in order; of overlapping stretches the
    one that goes farthest and straightest.
    """
    count = len(pictures)
    usual = float(np.median(np.diff(times))) if count > 1 else 1.0
    most = min(round(LONGEST_DISSOLVE / max(usual, 1e-3)) + 1, count - 1)
    if most < shortest:
        return [], []
    flat = _flat(pictures)
    with one_blas_thread():  # beside other decoding threads, more cost half as much again
        products = (flat @ flat.T).astype(np.float64)
    own = np.diag(products)
    squared = np.maximum(own[:, None] + own[None, :] - 2 * products, 0) / flat.shape[1]  # mean squares (n, n)
    cuts_before = np.cumsum(np.isin(np.arange(count), cut_places), dtype=np.int64)
    lengths = np.unique(np.geomspace(shortest, most, 16).round().astype(np.int64))
    candidates: list[tuple[float, int, int]] = []
    for length in lengths.tolist():
        far, bent = _straightness(times, squared, length)
        usable = (far >= _FAR / doubt) & (bent <= _BENT * doubt)
        usable &= cuts_before[length:] == cuts_before[:-length]
        for place in np.flatnonzero(usable).tolist():
            merit = float(far[place] * (1 - 3 * bent[place]))
            candidates.append((-merit, place, place + length))
    chosen: list[tuple[int, int]] = []
    for _, first, last in sorted(candidates):
        if not _meets_any((first, last), chosen) and _another_scene(pictures[first], pictures[last]):
            chosen.append((first, last))
    swept: list[tuple[int, int]] = []
    for first, last in sweeps(times, pictures, squared, lengths.tolist(), cuts_before, doubt=doubt):
        if not _meets_any((first, last), [*chosen, *swept]) and _another_scene(
            pictures[first], pictures[last]
        ):
            swept.append((first, last))
    return sorted(chosen), sorted(swept)


def _straightness(times: Floats, squared: Floats, length: int) -> tuple[Floats, Floats]:
    """Of each stretch of ``length`` steps the distance of its ends, and how far it strays from the line as a
    share of that, both (n - length,) root mean squares.
    """
    first = np.arange(len(times) - length)[:, None]
    last = first + length
    between = first + np.arange(1, length)
    share = (times[between] - times[first]) / (times[last] - times[first])
    ends = squared[first, last]
    off = (1 - share) * squared[first, between] + share * squared[last, between] - share * (1 - share) * ends
    far = np.sqrt(ends[:, 0])
    stray = np.sqrt(np.maximum(off, 0).mean(axis=1))
    return far, stray / np.maximum(far, 1e-6)


def _another_scene(before: Pictures, after: Pictures) -> bool:
    """Whether two pictures show different things: not one thing in another light, or from a bit further. Much
    of the picture has to change, rather than a part by much. Any picture differs from a blank one.
    """
    if _blank(before) or _blank(after):
        return True
    first, last = before.astype(np.float32), after.astype(np.float32)
    change = np.abs(last - first)
    wide = bool((change > 0.35 * np.sqrt((change**2).mean())).mean() >= _WIDE)
    first, last = first - first.mean(), last - last.mean()
    alike = float((first * last).sum()) >= _ALIKE * float(np.sqrt((first**2).sum() * (last**2).sum()))
    return wide and not alike and not _only_moved(before, after, float(change.mean()) / 2)


def _blank(picture: NDArray[np.uint8]) -> bool:
    """Whether a picture is black or white all over."""
    values = picture.astype(np.float32)
    brightness = float(values.mean())
    even = float(values.std(axis=(0, 1)).mean()) <= _EVEN
    return even and (brightness <= _BLACK or brightness >= _WHITE)
