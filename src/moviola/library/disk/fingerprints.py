"""Fingerprints of videos: up to four pictures a second as 16 x 16 grey fields, and where two of them show the
same.

Features say what is seen, and two takes of one road are alike in them. Fingerprints say whether it is the
same picture: what changes in one video from moment to moment changes in its copy in the same places, however
it was scaled, cropped, recoloured or compressed. Where nothing moves they cannot separate two takes, and
:func:`aligned` finds no agreement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIDE", "Alignment", "Fingerprint", "FingerprintMaker", "aligned"]

SIDE = 16
"""Fields of a side."""

LEAST = 2.5
"""Seconds that two videos must have in common."""

# Pictures of a second that are kept at most, besides one for each sampled frame.
_A_SECOND = 4
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
# Seconds between the frames of a first look, the first that makes no more than a number of comparisons.
_STEPS, _MOST = (0.5, 1.0, 2.0, 4.0, 8.0), 16_000_000
# Cosine of two frames without their means from which on they count as the same in a first look.
_ALIKE = 0.6
# Weight, in a first look, of the same cosine of what changes: of frames without the mean frame.
_OF_CHANGES = 0.3
# Runs of a first look that are measured, how many of these are refined, and the quality that the best must
# have for that.
_RUNS, _CLOSE, _PROMISING = 16, 2, 1.05
# Share of each side's length that cropping the one video or the other leaves; both, where a logo or a line of
# text lies near the edge of one.
_BOTH = (0.75, 0.75)
_ROUGH = ((1.0, 1.0), (0.87, 1.0), (1.0, 0.87), _BOTH)
_FINE = (
    _BOTH,
    *((size / 100, 1.0) for size in range(100, 74, -5)),
    *((1.0, size / 100) for size in range(95, 74, -5)),
)
# Seconds by which an offset is refined, and parts of a side by which cropping is, one round after the other.
_REFINED = ((-0.75, -0.5, -0.25, 0.25, 0.5, 0.75), (-0.125, 0.125), (-0.06, 0.06))
_CROPS = (0.025, 0.0125)
# A stretch ends where the cosines of frames fall this far below its median; and the most that a frame counts.
_BELOW, _ONE = 0.08, 0.15
# Seconds to the next picture of the other video that make a comparison exact.
_NEAR = 0.2
# What the quality of a match loses for each grey level by which the mean pictures differ.
_APART = 0.03
# Share of the frames, the least alike, that is ignored: they may lie across a cut.
_ACROSS = 0.1
# Minimum number of fields that are compared; the others may hold a logo or a line of text.
_SEEN = SIDE * SIDE * 3 // 4
# Minimum median cosine of the frames of a match, minimum correlation of what changes in a long one, what is
# added to the latter for a match of one second, and by how many levels of 255 something must change.
_FRAMES, _CHANGES, _OF_SHORT, _MOVING = 0.86, 0.93, 0.12, 0.5
# Variance, in squared levels, of what rounding and compression add. It lowers the correlation of small
# changes, which is corrected where they are a level or more.
_NOISE = 0.1
# Where nearly nothing moves: levels by which the mean pictures may differ, how many more where the little
# that changes correlates, the correlation that chance gives, and the seconds that a match must last.
_STILL, _MORE, _BY_CHANCE, _LONG = 0.16, 0.4, 0.2, 4.0

Fields = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Small grey pictures of a video, (n, 16, 16) uint8, with the seconds (n,) float64, rising, at which each
    is on screen.
    """

    times: NDArray[np.float64]
    frames: NDArray[np.uint8]

    def near(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether there is a picture near some times (m,)."""
        after = np.searchsorted(self.times, times).clip(1, len(self.times) - 1)
        away = np.minimum(np.abs(self.times[after] - times), np.abs(self.times[after - 1] - times))
        return np.asarray(away <= _NEAR)

    def at(self, times: NDArray[np.float64]) -> Fields:
        """The pictures at some times (m,), between two as a mixture, (m, 256)."""
        after = np.searchsorted(self.times, times).clip(1, len(self.times) - 1)
        gap = np.maximum(self.times[after] - self.times[after - 1], 1e-6)
        share = ((times - self.times[after - 1]) / gap).clip(0, 1)[:, None].astype(np.float32)
        rows = self.frames.reshape(len(self.frames), -1)
        return np.asarray(rows[after - 1] * (1 - share) + rows[after] * share, np.float32)


@dataclass(frozen=True, slots=True)
class Alignment:
    """The same stretch in two videos: seconds of the one, by how many the other shows it later (or earlier,
    below 0), and the median cosine of the frames times the correlation of what changes in them, up to 1.
    """

    start: float
    end: float
    later: float
    agreement: float


class FingerprintMaker:
    """Takes the pictures of a video that are decoded (:class:`moviola.media.TinyPictures`)."""

    def __init__(self) -> None:
        self._frames: dict[int, tuple[float, NDArray[np.uint8]]] = {}
        self._held: list[tuple[float, NDArray[np.uint8]]] = []

    def decoded(self, since: float, picture: NDArray[np.uint8]) -> None:
        """A picture (h, w, 3) uint8 that appears at ``since`` seconds."""
        place = int(since * _A_SECOND)
        if since >= 0 and place not in self._frames:
            self._frames[place] = since, _grey(picture)

    def sampled(self, time: float, since: float, picture: NDArray[np.uint8]) -> None:
        """A picture that appeared at ``since`` seconds is on screen at ``time``."""
        if int(time * _A_SECOND) > int(since * _A_SECOND):
            self._held.append((time, _grey(picture)))
        self.decoded(since, picture)

    def made(self, until: float = math.inf) -> Fingerprint:
        """The fingerprint of the pictures before ``until`` seconds that came since the last call."""
        end = until * _A_SECOND
        held = {int(time * _A_SECOND): (time, picture) for time, picture in self._held}
        places = held | self._frames
        rows = sorted((places[place] for place in places if place < end), key=lambda row: row[0])
        self._frames = {place: row for place, row in self._frames.items() if place >= end}
        self._held = [row for row in self._held if int(row[0] * _A_SECOND) >= end]
        times = np.array([time for time, _ in rows], np.float64)
        return Fingerprint(times, np.array([frame for _, frame in rows], np.uint8).reshape(-1, SIDE, SIDE))

    def state(self) -> dict[str, Any]:
        """What came since, as arrays and values of JSON, for :meth:`restore`."""
        rows = [*self._frames.values(), *self._held]
        return {
            "places": [*self._frames], "times": [time for time, _ in rows],
            "greys": np.stack([grey for _, grey in rows]) if rows else None,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        greys = () if state["greys"] is None else state["greys"]
        rows = [*zip(state["times"], greys, strict=True)]
        count = len(state["places"])
        self._frames, self._held = dict(zip(state["places"], rows[:count], strict=True)), rows[count:]


def _grey(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Luma of a picture (h, w, 3) as 16 x 16 fields."""
    luma = picture.astype(np.float32) @ _LUMA
    rows, columns = (_shrinking(size) for size in luma.shape)
    return np.asarray(rows @ luma @ columns.T + 0.5, np.uint8)


@cache
def _shrinking(size: int) -> Fields:
    """(16, size), which of ``size`` pixels make up each field, by the area that they share."""
    edges = np.arange(SIDE + 1) * size / SIDE
    pixels = np.arange(size)
    shared = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return np.asarray(shared.clip(0) * SIDE / size, np.float32)


@dataclass(frozen=True, slots=True)
class _Match:
    """A stretch of one video from ``start`` to ``end``, and what was measured of it."""

    start: float
    end: float
    later: float
    frames: float = 0.0
    changes: float = 0.0
    moving: float = 0.0
    differing: float = np.inf
    quality: float = -np.inf

    @property
    def seconds(self) -> float:
        return self.end - self.start


def aligned(one: Fingerprint, other: Fingerprint) -> Alignment | None:
    """The longest stretch of two videos that is the same; None where there is none that is sure."""
    best = best_match(one, other)
    if best is None:
        return None
    allowed = _STILL + _MORE * max(best.changes - _BY_CHANCE, 0) * (best.moving < _MOVING)
    still = best.seconds >= _LONG and best.moving < 1 and best.differing <= allowed
    sound = 1 + _NOISE / best.moving**2 if best.moving >= 1 else 1.0
    changing = sound * best.changes >= _CHANGES + _OF_SHORT / best.seconds and best.moving >= _MOVING
    if best.frames < _FRAMES or not (still or changing):
        return None
    agreement = best.frames if still else best.frames * best.changes
    return Alignment(best.start, best.end, best.later, round(min(agreement, 1.0), 3))


def best_match(one: Fingerprint, other: Fingerprint) -> _Match | None:
    """The stretch of two videos that is most alike."""
    if any(len(print.times) < 2 or print.times[-1] < LEAST - 1 for print in (one, other)):
        return None
    spans = one.times[-1] * other.times[-1]
    step = next((step for step in _STEPS if spans / step**2 <= _MOST), _STEPS[-1])
    grids = [np.arange(0, print.times[-1] + 1e-6, step) for print in (one, other)]
    found = []
    rows = one.at(grids[0]), other.at(grids[1])
    for sizes in _ROUGH:
        runs = _runs(rows[0] @ _middle(sizes[0]), rows[1] @ _middle(sizes[1]), step)
        found += [(run, _Pair(one, other, sizes)) for run in runs]
    found.sort(key=lambda one: -one[0].quality)
    rough = sorted((pair.measured(run) for run, pair in found[:_RUNS]), key=_quality, reverse=True)
    close = list({(m.start, m.end, m.later): m for m in rough}.values())[:_CLOSE]
    if not close or close[0].quality < _PROMISING:
        return None
    pairs = [_Pair(one, other, sizes) for sizes in _FINE]
    tried = [(max(pairs, key=lambda pair: pair.measured(match).quality), match) for match in close]
    return max((_refined(pair, match) for pair, match in tried), key=_quality)


def _quality(match: _Match) -> float:
    return match.quality


def _refined(pair: _Pair, match: _Match) -> _Match:
    """A match with its offset, its ends and the crop as they fit best."""
    best = _moved(pair, pair.measured(match))
    best = pair.measured(pair.trimmed(best))
    for by in _CROPS:
        for nearby in pair.nearby(by):
            if (found := nearby.measured(best)).quality > best.quality:
                pair, best = nearby, found
    best = _moved(pair, best)
    return pair.measured(pair.trimmed(best))


def _moved(pair: _Pair, best: _Match) -> _Match:
    """A match at the best offset nearby."""
    for moves in _REFINED:
        moved = [pair.measured(replace(best, later=best.later + move)) for move in moves]
        best = max(best, *moved, key=_quality)
    return best


def _runs(one: Fields, other: Fields, step: float) -> list[_Match]:
    """The best runs of frames that are alike, ``step`` seconds apart, without a closer look."""
    least = round(LEAST / step) + 1 if step < LEAST else 2
    if min(len(one), len(other)) < least:
        return []
    # A picture of one colour, whose fields differ by a level or so, is like nothing.
    whole = [_units(rows, 1.25) for rows in (one, other)]
    changes = [_units(rows - rows.mean(0), 0.5) for rows in (one, other)]
    alike = whole[0] @ whole[1].T - _ALIKE + _OF_CHANGES * (changes[0] @ changes[1].T)
    # Row o of this is diagonal o: what is outside the matrix adds nothing.
    offsets = np.arange(least - len(one), len(other) - least + 1)[:, None]
    places = np.arange(len(one))[None, :] + offsets
    diagonals = alike[np.arange(len(one))[None, :], places.clip(0, len(other) - 1)]
    diagonals[(places < 0) | (places >= len(other))] = 0.0
    sums = np.concatenate([np.zeros((len(offsets), 1)), np.cumsum(diagonals, axis=1)], axis=1)
    gains = sums - np.minimum.accumulate(sums, axis=1)
    ends = gains.argmax(axis=1)
    best = gains[np.arange(len(gains)), ends]
    runs = []
    for row in np.argsort(-best, kind="stable")[:_RUNS].tolist():
        begin, end = int(sums[row, : ends[row] + 1].argmin()), int(ends[row])
        first = max(begin, -int(offsets[row, 0]))
        count = min(end, len(other) - int(offsets[row, 0])) - first
        if count >= least:
            later = int(offsets[row, 0]) * step
            runs.append(_Match(first * step, (first + count) * step, later, quality=float(best[row])))
    return runs


def _units(rows: Fields, least: float) -> Fields:
    """Rows of length 1, shorter where their fields differ by less than ``least`` levels."""
    return np.asarray(
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), least * SIDE), np.float32
    )


class _Pair:
    """Two videos of which the middle is looked at, whose sizes are shares of the sides of each."""

    def __init__(self, one: Fingerprint, other: Fingerprint, sizes: tuple[float, float]) -> None:
        self._one, self._other, self._sizes = one, other, sizes
        self._shorter = float(min(one.times[-1], other.times[-1]))

    def nearby(self, by: float) -> Iterator[_Pair]:
        """The same videos with a little more or less of one side."""
        one, other = self._sizes
        for sizes in ((one - by, other), (one + by, other), (one, other - by), (one, other + by)):
            if max(sizes) <= 1:
                yield _Pair(self._one, self._other, sizes)

    def _frames(self, start: float, end: float, later: float) -> tuple[NDArray[np.float64], Fields, Fields]:
        """Times in the one video of the pictures of that with fewer of them, and the pictures of both."""
        first, stop = np.searchsorted(self._one.times, (start - 1e-3, end - 1e-3))
        begin, final = np.searchsorted(self._other.times, (start + later - 1e-3, end + later - 1e-3))
        fewer = stop - first <= final - begin
        times = self._one.times[first:stop] if fewer else self._other.times[begin:final] - later
        near = self._other.near(times + later) if fewer else self._one.near(times)
        if 2 * near.sum() >= len(times):
            times = times[near]
        ours, theirs = self._one.at(times), self._other.at(times + later)
        return times, ours @ _middle(self._sizes[0]), theirs @ _middle(self._sizes[1])

    def measured(self, match: _Match) -> _Match:
        """How well the pictures of a stretch go together."""
        _, ours, theirs = self._frames(match.start, match.end, match.later)
        if len(ours) < 2:
            return replace(match, frames=0.0, quality=-np.inf)
        seen = _uncovered(ours.mean(0), theirs.mean(0))
        ours, theirs = _middled(ours[:, seen]), _middled(theirs[:, seen])
        cosines = _cosines(ours, theirs)
        order = np.argsort(cosines)
        chosen = order[int(len(order) * _ACROSS) :]
        ours, theirs = ours[chosen], theirs[chosen]
        own, its = ours.mean(0), theirs.mean(0)
        ours, theirs = ours - own, theirs - its
        powers = float((ours**2).mean()), float((theirs**2).mean())
        changes = float((ours * theirs).mean()) / np.sqrt(powers[0] * powers[1] + 1e-9)
        factor = float(own @ its) / max(float(own @ own), 1e-6)
        differing = float(np.sqrt(((its - factor * own) ** 2).mean())) / min(max(factor, 0.5), 1.0)
        frames = float(cosines[order[len(order) // 2]])
        share = match.seconds / self._shorter
        quality = frames + changes * (1 - 2 / max(match.seconds, 2.0)) + 0.3 * share
        quality -= _APART * min(differing, 3.0)
        return replace(
            match, frames=frames, changes=float(changes), moving=float(np.sqrt(min(powers))),
            differing=differing, quality=float(quality),
        )  # fmt: skip

    def trimmed(self, match: _Match) -> _Match:
        """A match from the first to the last picture that is the same, as far as the videos overlap."""
        _, ours, theirs = self._frames(match.start, match.end, match.later)
        seen = _uncovered(ours.mean(0), theirs.mean(0))
        start = max(0.0, -match.later)
        end = float(min(self._one.times[-1], self._other.times[-1] - match.later)) + 1e-2
        times, ours, theirs = self._frames(start, end, match.later)
        if len(times) < 2:
            return match
        cosines = _cosines(_middled(ours[:, seen]), _middled(theirs[:, seen]))
        gains = (cosines - max(match.frames - _BELOW, _ALIKE)).clip(-_ONE, _ONE)
        lasting = float(np.median(np.diff(times)))
        gains *= np.diff(times, append=times[-1] + lasting)
        sums = np.concatenate([[0.0], np.cumsum(gains)])
        stop = int((sums - np.minimum.accumulate(sums)).argmax())
        first = int(sums[: stop + 1].argmin())
        if stop - first < 2:
            return match
        last = times[stop] if stop < len(times) else times[-1] + lasting
        return replace(match, start=float(times[first]), end=float(last))


def _middled(rows: Fields) -> Fields:
    return np.asarray(rows - rows.mean(1, keepdims=True), np.float32)


def _cosines(ours: Fields, theirs: Fields) -> Fields:
    """Of each two rows without means; 0 where one is of one colour."""
    lengths = np.sqrt((ours**2).sum(1) * (theirs**2).sum(1) + 1e-6)
    return np.asarray((ours * theirs).sum(1) / lengths, np.float32)


def _uncovered(one: Fields, other: Fields) -> NDArray[np.bool_]:
    """Which fields of two mean pictures (256,) show the same, but for brightness and contrast."""
    seen = np.ones(len(one), np.bool_)
    for _ in range(3):
        own = one[seen] - one[seen].mean()
        factor = float(own @ other[seen]) / max(float(own @ own), 1e-6)
        apart = other - factor * one
        apart = np.abs(apart - apart[seen].mean())
        seen = apart <= np.partition(apart, _SEEN)[_SEEN]
    return seen


@cache
def _middle(size: float) -> Fields:
    """(256, 256), from a frame's fields to those of its middle, ``size`` of its sides, without their mean."""
    places = (np.arange(SIDE) + 0.5) * size + SIDE / 2 * (1 - size) - 0.5
    away = np.abs(places.clip(0, SIDE - 1)[:, None] - np.arange(SIDE))
    cut = np.maximum(1 - away, 0)
    fields = np.kron(cut, cut).T
    return np.asarray(fields - fields.mean(1, keepdims=True), np.float32)
