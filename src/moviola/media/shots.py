"""Shots of a video: suspected in the sampled frames, found in every picture of the seconds around.

Sampled frames pass by anyway while a video is encoded. Where two that are a second apart differ, and only
there, the file is decoded again, picture by picture, so that a cut is dated to the frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.media.frame_selection import Moments
from moviola.media.frames import FrameStream
from moviola.media.picture import InputScaler
from moviola.media.transitions import LONGEST_DISSOLVE, Slope, Transition, joined_fades, transitions
from moviola.types import FrameSize

__all__ = ["Marks", "Suspects", "find_transitions", "joined", "look_through", "shrunk", "suspected"]

_TINY = FrameSize(18, 32, "stretch", interpolation="bilinear")
# Fields of a sampled frame that are compared, and the mean difference (of 255) from which on a second is
# looked at again: field by field, and of all fields' values in order, which things that move do not change.
# Features of an encoder were tried for this and are worse: for every cut to be among them ConSE's ask for
# 62 % of the other seconds too, the demo's for 49 %, these fields for 20 %.
_FIELDS = 16
_DIFFERENT, _OTHER_COLOURS = 14.0, 4.0
# Seconds before and after a suspected stretch that are looked at, for what is usual there.
_MARGIN = 0.3
# Seconds that are looked at in one piece, and how far two pieces of one stretch overlap.
_PIECE, _OVERLAP = 20.0, LONGEST_DISSOLVE + 0.6
# Seconds of sampled frames after which stretches are named first, and how many times as many there have to be
# for the next ones: each time the file is read from its beginning, but decoded where they are alone.
_FIRST_LOOK, _LOOKS_GROW = 60.0, 1.5
# Pictures a second that are told apart.
_FASTEST = 120


def shrunk(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Frames as means of 16 x 16 fields, which is what :func:`suspected` compares.

    Args:
        images: (n, height, width, 3) uint8 RGB of any size.

    Returns:
        (n, 16, 16, 3) uint8, fewer rows or columns where the frames have fewer pixels.
    """
    fields = images
    for axis in (1, 2):
        size = images.shape[axis]
        edges = np.arange(min(_FIELDS, size) + 1) * size // min(_FIELDS, size)
        sums = np.add.reduceat(fields, edges[:-1], axis=axis, dtype=np.float32)
        shape = [1] * 4
        shape[axis] = -1
        fields = sums / np.diff(edges).astype(np.float32).reshape(shape)
    return (fields + 0.5).astype(np.uint8)


def suspected(samples: NDArray[np.uint8], rate: float) -> list[tuple[float, float]]:
    """Stretches in seconds in which a new shot may begin, apart from each other and in order.

    Args:
        samples: (n, rows, columns, 3) uint8, the frames at k / ``rate`` seconds, :func:`shrunk`.
        rate: frames a second.
    """
    lag = max(1, round(rate))
    if len(samples) < 2:
        return []
    lag = min(lag, len(samples) - 1)
    values = samples.astype(np.float32)
    colours = np.sort(values.reshape(len(values), -1, 3), axis=1)
    different = np.abs(values[lag:] - values[:-lag]).mean(axis=(1, 2, 3)) >= _DIFFERENT
    different &= np.abs(colours[lag:] - colours[:-lag]).mean(axis=(1, 2)) >= _OTHER_COLOURS
    stretches: list[tuple[float, float]] = []
    for place in np.flatnonzero(different).tolist():
        start, end = max(0.0, place / rate - _MARGIN), (place + lag) / rate + _MARGIN
        if stretches and start <= stretches[-1][1]:
            start = stretches.pop()[0]
        stretches.append((start, end))
    return stretches


def find_transitions(path: Path, samples: NDArray[np.uint8], rate: float) -> list[Transition]:
    """Where one shot of a video gives way to the next, in order of time.

    Args:
        path: a video file.
        samples: its frames at k / ``rate`` seconds, :func:`shrunk`.
        rate: frames a second.

    Raises:
        UnreadableMedia, NoVideoStream: the file cannot be read (again).
    """
    return joined([look_through(path, suspected(samples, rate))])


Marks = list[list[Transition | Slope]]
"""What is seen in each of some pieces of a video, in order of time; two pieces of one stretch overlap."""


class Suspects:
    """Stretches of a video to look through, while its sampled frames still come in: any may be looked through
    as soon as it is named, beside the others.

    Args:
        rate: sampled frames a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._samples: list[NDArray[np.uint8]] = []
        self._next_look = _FIRST_LOOK
        self._named = 0  # stretches

    def add(self, samples: NDArray[np.uint8]) -> list[tuple[float, float]]:
        """Take the next frames, :func:`shrunk`; from time to time, name the stretches that are complete."""
        self._samples.append(samples)
        seconds = sum(map(len, self._samples)) / self._rate
        if seconds < self._next_look:
            return []
        self._next_look = _LOOKS_GROW * seconds
        # A stretch that ends later may grow with the frames that follow.
        return self._until(seconds - max(1, round(self._rate)) / self._rate - 2 * _MARGIN)

    def rest(self) -> list[tuple[float, float]]:
        """The stretches that were not named yet, after the last frames."""
        return self._until(math.inf)

    def _until(self, time: float) -> list[tuple[float, float]]:
        stretches = suspected(np.concatenate(self._samples), self._rate)[self._named :]
        complete = [stretch for stretch in stretches if stretch[1] < time]
        self._named += len(complete)
        return complete


def look_through(path: Path, stretches: Sequence[tuple[float, float]]) -> Marks:
    """What every picture of some stretches tells, piece by piece, for :func:`joined`.

    Args:
        path: a video file.
        stretches: in seconds, apart from each other and in order.

    Raises:
        UnreadableMedia, NoVideoStream: the file cannot be read (again).
    """
    return [transitions(times, pictures) for times, pictures in _pictures(path, _pieces(stretches))]


def joined(looks: Iterable[Marks]) -> list[Transition]:
    """Where shots give way to each other, in order, by all that was seen of a video, in order of time."""
    marks: list[Transition | Slope] = []
    for found in chain.from_iterable(looks):
        known = marks[-1].end if marks else -1.0
        # Two pieces of one stretch overlap, and both see what lies there.
        marks += [mark for mark in found if mark.start >= known and mark.end > known]
    return joined_fades(marks)


def _pieces(stretches: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Stretches in pieces of limited length."""
    pieces = []
    for start, end in stretches:
        begin = start
        while end - begin > _PIECE:
            pieces.append((begin, begin + _PIECE))
            begin += _PIECE - _OVERLAP
        pieces.append((begin, end))
    return pieces


def _pictures(
    path: Path, pieces: list[tuple[float, float]]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.uint8]]]:
    """Each piece's pictures (n, 18, 32, 3) uint8, once each, with the seconds (n,) since when they show."""
    if not pieces:
        return
    ends = [end for _, end in pieces]
    starts = [start for start, _ in pieces]
    moments = _moments(pieces)
    times: list[float] = []
    images: list[NDArray[np.uint8]] = []
    piece = 0
    with FrameStream(path, grid=moments, scaler=partial(InputScaler, _TINY)) as stream:
        for frame in stream:
            while frame.time > ends[piece]:
                yield np.array(times), np.stack(images)
                piece += 1
                kept = [place for place, time in enumerate(times) if time >= starts[piece]]
                times, images = [times[k] for k in kept], [images[k] for k in kept]
            if not times or frame.shown_since > times[-1]:
                times.append(frame.shown_since)
                images.append(frame.image)
    if times:
        yield np.array(times), np.stack(images)


def _moments(pieces: list[tuple[float, float]]) -> Moments:
    """All moments of the pieces, each once."""
    step = Fraction(1, _FASTEST)
    ticks: list[int] = []
    for start, end in pieces:
        first, last = int(np.ceil(start * _FASTEST)), int(np.floor(end * _FASTEST))
        begin = max(first, ticks[-1] + 1) if ticks else first
        ticks.extend(range(begin, last + 1))
    return Moments(Fraction(0), step, len(ticks), tuple(ticks))
