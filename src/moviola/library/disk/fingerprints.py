"""Fingerprints of videos: each sampled frame as 16 x 16 grey fields, and where two of them show the same.

Features say what is seen, and two takes of one road are alike in them. Fingerprints say whether it is the
same picture: what changes in one video from second to second changes in its copy in the same places, however
it was scaled, cropped, recoloured or compressed. Where nothing moves they cannot separate two takes, and
:func:`aligned` finds no agreement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIDE", "Alignment", "aligned", "grey"]

SIDE = 16
"""Fields of a side."""

LEAST = 3
"""Frames that two videos must have in common."""

# Cosine of two frames without their means from which on they count as the same in a first look.
_ALIKE = 0.6
# What the same of changes counts there.
_OF_CHANGES = 0.3
# Of the runs of a first look, those that are looked at, and those that are looked at closely.
_RUNS, _CLOSE = 16, 2
# What is left of each side's length by cropping the one video or the other; both, where a logo or a line of
# text lies near the edge of one.
_BOTH = (0.75, 0.75)
_ROUGH = ((1.0, 1.0), (0.87, 1.0), (1.0, 0.87), _BOTH)
_FINE = (
    _BOTH,
    *((size / 100, 1.0) for size in range(100, 74, -5)),
    *((1.0, size / 100) for size in range(95, 74, -5)),
)
# Parts of a frame's time by which the samples of two videos may be apart.
_PHASES = (-0.5, -0.25, 0.25, 0.5)
# Fields that show the same at least; the others may hold a logo or a line of text.
_SEEN = SIDE * SIDE * 3 // 4
# What is asked of a match: median cosine of its frames, correlation of what changes (the latter of a long
# match, and how much more of a frame's), and by how many levels of 255 something must change.
_FRAMES, _CHANGES, _OF_FEW, _MOVING = 0.86, 0.76, 0.6, 0.3
# Where nothing moves: levels by which the mean pictures may differ, and the frames that this must hold for.
_STILL, _LONG = 0.16, 5

Fields = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Alignment:
    """The same frames in two videos.

    Attributes:
        first, count: frames of the one video.
        offset: frames by which the other shows them later, to a quarter; may be negative.
        agreement: median cosine of the frames times the correlation of what changes in them, up to 1.
    """

    first: int
    count: int
    offset: float
    agreement: float


@dataclass(frozen=True, slots=True)
class _Match:
    first: int
    count: int
    offset: int
    frames: float = 0.0
    changes: float = 0.0
    moving: float = 0.0
    differing: float = np.inf
    phase: float = 0.0
    quality: float = -np.inf


def grey(fields: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Fields (n, h, w, 3) of :func:`moviola.media.shrunk` as a fingerprint (n, 16, 16) uint8 of luma."""
    luma = fields.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    rows, columns = (np.arange(SIDE) * size // SIDE for size in luma.shape[1:])
    return np.asarray(luma[:, rows][:, :, columns] + 0.5, np.uint8)


def aligned(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> Alignment | None:
    """The longest stretch of two videos that is the same; None where there is none that is sure.

    Args:
        one, other: fingerprints (n, 16, 16) uint8, sampled at one rate.
    """
    if min(len(one), len(other)) < LEAST:
        return None
    pairs = [
        (_shifted(_cropped(one, sizes[0]), phase), _cropped(other, sizes[1]))
        for sizes in _ROUGH
        for phase in (0.0, 0.5)
    ]
    runs = sorted(((run, pair) for pair in pairs for run in _runs(*pair)), key=lambda one: -one[0].quality)
    rough = [_measured(*pair, run) for run, pair in runs[:_RUNS]]
    close = list({(m.first, m.count, m.offset): m for m in sorted(rough, key=lambda m: m.quality)}.values())[
        -_CLOSE:
    ]
    if not close or close[-1].frames < _ALIKE:
        return None
    cropped = [(_cropped(one, a), _cropped(other, b)) for a, b in _FINE]
    best, pair = max(
        ((_measured(*pair, match), pair) for pair in cropped for match in close), key=lambda m: m[0].quality
    )
    for phase in _PHASES:
        later = _Match(best.first, best.count, best.offset, phase=-phase)
        earlier = _Match(best.first, best.count, best.offset, phase=phase)
        best = max(
            best,
            _measured(_shifted(pair[0], phase), pair[1], later),
            _measured(pair[0], _shifted(pair[1], phase), earlier),
            key=lambda match: match.quality,
        )
    still = best.count >= _LONG and best.moving < 1 and best.differing <= _STILL
    changing = best.changes >= _CHANGES + _OF_FEW / best.count and best.moving >= _MOVING
    if best.frames < _FRAMES or not (still or changing):
        return None
    agreement = best.frames if still else best.frames * best.changes
    return Alignment(best.first, best.count, best.offset + best.phase, round(min(agreement, 1.0), 3))


def _runs(one: Fields, other: Fields) -> list[_Match]:
    """The best runs of frames that are alike, without a closer look."""
    # A picture of one colour, whose fields differ by a level or so, is like nothing.
    whole = [_units(rows, 1.25) for rows in (one, other)]
    changes = [_units(rows - rows.mean(0), 0.5) for rows in (one, other)]
    alike = whole[0] @ whole[1].T - _ALIKE + _OF_CHANGES * (changes[0] @ changes[1].T)
    # Row o of this is diagonal o: what is outside the matrix adds nothing.
    offsets = np.arange(LEAST - len(one), len(other) - LEAST + 1)[:, None]
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
        if count >= LEAST:
            runs.append(_Match(first, count, int(offsets[row, 0]), quality=float(best[row])))
    return runs


def _units(rows: Fields, least: float) -> Fields:
    """Rows of length 1, shorter where their fields differ by less than ``least`` levels."""
    return np.asarray(
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), least * SIDE), np.float32
    )


def _measured(one: Fields, other: Fields, match: _Match) -> _Match:
    """How well frames of two videos (n, 256) go together."""
    ours = one[match.first : match.first + match.count]
    theirs = other[match.first + match.offset :][: match.count]
    seen = _uncovered(ours.mean(0), theirs.mean(0))
    ours, theirs = (rows[:, seen] - rows[:, seen].mean(1, keepdims=True) for rows in (ours, theirs))
    cosines = (ours * theirs).sum(1) / np.sqrt((ours**2).sum(1) * (theirs**2).sum(1) + 1e-6)
    own, its = ours.mean(0), theirs.mean(0)
    ours, theirs = ours - own, theirs - its
    powers = float((ours**2).mean()), float((theirs**2).mean())
    changes = float((ours * theirs).mean()) / np.sqrt(powers[0] * powers[1] + 1e-9)
    factor = float(own @ its) / max(float(own @ own), 1e-6)
    differing = float(np.sqrt(((its - factor * own) ** 2).mean())) / min(max(factor, 0.5), 1.0)
    frames, share = float(np.sort(cosines)[len(cosines) // 2]), match.count / min(len(one), len(other))
    quality = frames + changes * (1 - 2 / match.count) + 0.3 * share
    return _Match(
        match.first, match.count, match.offset, frames, float(changes), float(np.sqrt(min(powers))),
        differing, match.phase, quality,
    )  # fmt: skip


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


def _cropped(frames: NDArray[np.uint8], size: float) -> Fields:
    """The middle of frames, ``size`` of their sides, without their means: (n, 256)."""
    weights = _weights(size)
    cut = weights @ frames.astype(np.float32) @ weights.T
    rows = cut.reshape(len(frames), -1)
    return np.asarray(rows - rows.mean(1, keepdims=True), np.float32)


@cache
def _weights(size: float) -> Fields:
    """(16, 16), which fields make up those of the middle."""
    places = (np.arange(SIDE) + 0.5) * size + SIDE / 2 * (1 - size) - 0.5
    away = np.abs(places.clip(0, SIDE - 1)[:, None] - np.arange(SIDE))
    return np.asarray(np.maximum(1 - away, 0), np.float32)


def _shifted(rows: Fields, phase: float) -> Fields:
    """Frames (n, d) as they would have been sampled a part of a frame's time later."""
    following = np.concatenate([rows[1:], rows[-1:]]) if phase > 0 else np.concatenate([rows[:1], rows[:-1]])
    return np.asarray(rows * (1 - abs(phase)) + following * abs(phase), np.float32)
