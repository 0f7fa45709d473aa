"""Shot detection: suspected in the sampled frames, decided in the pictures around them.

With sampled frames all pictures are decoded that they refer to: in film with few key frames, only
unreferenced ones are missing; of irregular files all come. Where two frames a second apart differ, these
pictures are compared. Only where they do not show whether, or at which frame, a shot begins, is the file
decoded again, picture by picture.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from moviola.media.frame_selection import Moments
from moviola.media.frames import FrameStream, sample_frames
from moviola.media.picture import TinyScaler
from moviola.media.transitions import (
    LONGEST_DISSOLVE,
    Slope,
    Transition,
    joined_fades,
    transitions,
    transitions_of_some,
)
from moviola.types import FrameSize

__all__ = [
    "Marks", "ShotFinder", "Sighting", "Sightings", "Stretch", "TinyPictures", "find_transitions", "joined",
    "look_through", "shrunk",
]  # fmt: skip

_TINY = FrameSize(18, 32, "stretch", interpolation="bilinear")
# Compared fields of a sampled frame, and the mean difference (of 255) from which on a second is suspected:
# field by field, and of all fields' values in order, which motion does not change. Features of an encoder are
# worse here: to include every cut ConSE's suspect 62 % of the other seconds too, these fields 20 %.
_FIELDS = 16
_DIFFERENT, _OTHER_COLOURS = 14.0, 4.0
# Seconds before and after a suspected stretch that are compared, to learn what is usual there.
_MARGIN = 0.3
# Seconds per piece, and overlap of two pieces of one stretch.
_PIECE, _OVERLAP = 20.0, LONGEST_DISSOLVE + 0.6
# Seconds of sampled frames after which stretches are first reported, and the factor until the next report:
# each time the file is read from its beginning, but decoded only in them.
_FIRST_LOOK, _LOOKS_GROW = 60.0, 1.5
# Pictures per second that are distinguished.
_FASTEST = 120
# Seconds that may be missing between two decoded pictures, and the number of pictures kept at most.
_UNSEEN, _MOST_KEPT = 0.2, 20_000
# Decoded pictures that may wait for the moment at which they are sampled.
_LATEST = 64

Stretch = tuple[float, float]
"""From one second of a video to another."""

Marks = list[tuple[float, list[Transition | Slope]]]
"""Pictures of some pieces of a video, each in order of time, with the second at which it begins. Pieces may
overlap."""


def shrunk(images: Iterable[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Frames, each (height, width, 3) uint8 RGB, as means of 16 x 16 fields, (n, 16, 16, 3) uint8, for
    :class:`ShotFinder`; fewer rows or columns where they have fewer pixels.
    """
    return np.stack([_fields(image) for image in images])


def _fields(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """:func:`shrunk` of one frame: several at once do not fit into the processor's cache."""
    fields: NDArray[Any] = image
    for axis in (0, 1):
        size = image.shape[axis]
        edges = np.arange(min(_FIELDS, size) + 1) * size // min(_FIELDS, size)
        sums = np.add.reduceat(fields, edges[:-1], axis=axis, dtype=np.float32)
        shape = [1] * 3
        shape[axis] = -1
        fields = sums / np.diff(edges).astype(np.float32).reshape(shape)
    return (fields + 0.5).astype(np.uint8)


class TinyPictures(Protocol):
    """Receives the decoded pictures of a video, (18, 32, 3) uint8 RGB, while it is looked through."""

    def decoded(self, since: float, picture: NDArray[np.uint8]) -> None:
        """A picture that appears at ``since`` seconds, or one that the file hides, was decoded."""

    def sampled(self, time: float, since: float, picture: NDArray[np.uint8]) -> None:
        """The picture that appeared at ``since`` seconds is on screen at ``time``, a sampled frame."""


Sighting = tuple[Literal["shown", "decoded", "sampled", "cut off"], float, float, NDArray[np.uint8] | None]
"""Something that a decoder has to say: what, the second at which a picture appears, or after which all that
was said does not hold, that of a sampled frame, and the tiny picture; 0 and None where there is none."""


class Sightings:
    """Notes what a decoder has to say of pictures, tiny, for a :class:`ShotFinder` elsewhere: a
    :class:`moviola.media.frame_selection.Watcher`.
    """

    def __init__(self) -> None:
        self._noted: list[Sighting] = []
        self._latest: dict[float, NDArray[np.uint8]] = {}
        self._scaler = TinyScaler(_TINY)

    def taken(self) -> list[Sighting]:
        """What was noted since the last call."""
        taken, self._noted = self._noted, []
        return taken

    def shown(self, since: float) -> None:
        self._noted.append(("shown", since, 0.0, None))

    def decoded(self, since: float, frame: VideoFrame) -> None:
        self._latest[since] = picture = self._scaler(frame)
        if len(self._latest) > _LATEST:
            del self._latest[next(iter(self._latest))]
        self._noted.append(("decoded", since, 0.0, picture))

    def sampled(self, time: float, since: float, frame: VideoFrame) -> None:
        picture = self._latest.get(since)
        self._noted.append(("sampled", since, time, self._scaler(frame) if picture is None else picture))

    def cut_off(self, since: float) -> None:
        self._noted.append(("cut off", since, 0.0, None))


def find_transitions(
    path: Path, *, rate: float, size: FrameSize, tiny: TinyPictures | None = None
) -> list[Transition]:
    """Transitions between the shots of a video, in order of time; the other arguments and errors are those of
    :func:`moviola.media.sample_frames` and :class:`ShotFinder`.
    """
    finder, seen, unclear = ShotFinder(rate, tiny), Sightings(), []
    with sample_frames(path, rate=rate, size=size, watcher=seen) as stream:
        for frame in stream:
            finder.take(seen.taken())
            unclear += finder.add(shrunk(frame.image[None]))
    finder.take(seen.taken())
    unclear += finder.rest()
    return joined([*finder.marks, *look_through(path, unclear)])


class ShotFinder:
    """Finds the shots of a video while its frames are sampled, ``rate`` per second, and reports the stretches
    that it cannot judge; ``tiny`` receives the pictures that are decoded on the way.

    Attributes:
        marks: transitions in the stretches that were judged.
    """

    def __init__(self, rate: float, tiny: TinyPictures | None = None) -> None:
        self._pictures = DecodedPictures(tiny)
        self.marks: Marks = []
        self._rate, self._lag = rate, max(1, round(rate))
        self._recent: list[NDArray[np.uint8]] = []  # the last sampled frames, one for each of the lag
        self._count = 0
        self._suspected: list[Stretch] = []
        self._unclear: list[Stretch] = []
        self._next_look = _FIRST_LOOK

    def take(self, sightings: Iterable[Sighting]) -> None:
        """Take what :class:`Sightings` noted, before the frames that were sampled meanwhile."""
        self._pictures.take(sightings)

    def add(self, samples: NDArray[np.uint8]) -> list[Stretch]:
        """Take the next frames (n, rows, columns, 3), :func:`shrunk`; now and then report stretches."""
        frames = [*self._recent, *samples]
        self._count += len(samples)
        if len(frames) > self._lag:
            self._suspect(frames, self._lag)
        self._recent = frames[-self._lag :]
        seconds = self._count / self._rate
        # A stretch that ends later may grow with the frames that follow.
        self._judge(seconds - self._lag / self._rate - 2 * _MARGIN)
        if seconds < self._next_look:
            return []
        self._next_look = _LOOKS_GROW * seconds
        return self._named()

    def rest(self) -> list[Stretch]:
        """The unreported stretches, after the last frames."""
        if 1 < self._count <= self._lag:
            self._suspect(self._recent, self._count - 1)
        self._judge(math.inf)
        return self._named()

    def state(self) -> dict[str, Any]:
        """All that is known so far but the marks, as arrays and values of JSON, for :meth:`restore`."""
        return {
            "recent": np.stack(self._recent) if self._recent else None,
            "count": self._count, "suspected": [*self._suspected], "unclear": [*self._unclear],
            "next_look": self._next_look, **self._pictures.state(),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any], marks: Marks) -> None:
        """Go on from a state, and the marks of then."""
        self.marks = marks
        self._recent = [] if state["recent"] is None else [*state["recent"]]
        self._count, self._next_look = state["count"], state["next_look"]
        self._suspected, self._unclear = (
            [(start, end) for start, end in state[name]] for name in ("suspected", "unclear")
        )
        self._pictures.restore(state)

    def _suspect(self, frames: Sequence[NDArray[np.uint8]], lag: int) -> None:
        """Record between which of the last frames a new shot may begin, ``lag`` frames apart."""
        first = self._count - len(frames)
        values = np.stack(frames).astype(np.float32)
        colours = np.sort(values.reshape(len(values), -1, 3), axis=1)
        different = np.abs(values[lag:] - values[:-lag]).mean(axis=(1, 2, 3)) >= _DIFFERENT
        different &= np.abs(colours[lag:] - colours[:-lag]).mean(axis=(1, 2)) >= _OTHER_COLOURS
        for place in np.flatnonzero(different).tolist():
            start = max(0.0, (first + place) / self._rate - _MARGIN)
            if self._suspected and start <= self._suspected[-1][1]:
                start = self._suspected.pop()[0]
            self._suspected.append((start, (first + place + lag) / self._rate + _MARGIN))

    def _judge(self, time: float) -> None:
        while self._suspected and self._suspected[0][1] < time:
            for piece in _pieces(self._suspected.pop(0)):
                judged = self._pictures.transitions(piece)
                if judged is None:
                    self._unclear.append(piece)
                else:
                    self.marks.append((piece[0], judged))
        self._pictures.forget(self._suspected[0][0] if self._suspected else time)

    def _named(self) -> list[Stretch]:
        named, self._unclear = self._unclear, []
        return named


class DecodedPictures:
    """The last decoded pictures of a video, tiny, and the times at which all appear."""

    def __init__(self, tiny: TinyPictures | None = None) -> None:
        self._tiny = tiny
        self._shown: list[float] = []  # seconds at which each picture appears, rising
        self._seen: dict[float, NDArray[np.uint8]] = {}

    def take(self, sightings: Iterable[Sighting]) -> None:
        """Take what :class:`Sightings` noted."""
        for what, since, time, picture in sightings:
            if what == "shown":
                place = bisect_left(self._shown, since)
                if self._shown[place : place + 1] != [since]:
                    self._shown.insert(place, since)
            elif picture is None:
                del self._shown[bisect_right(self._shown, since) :]
                self._seen = {at: seen for at, seen in self._seen.items() if at <= since}
            elif what == "decoded":
                if len(self._seen) < _MOST_KEPT:
                    self._seen[since] = picture
                if self._tiny is not None:
                    self._tiny.decoded(since, picture)
            elif self._tiny is not None:
                self._tiny.sampled(time, since, picture)

    def state(self) -> dict[str, Any]:
        seen = np.stack([*self._seen.values()]) if self._seen else None
        return {"shown": [*self._shown], "seen": [*self._seen], "pictures": seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._shown = [*state["shown"]]
        pictures = () if state["pictures"] is None else state["pictures"]
        self._seen = dict(zip(state["seen"], pictures, strict=True))

    def transitions(self, stretch: Stretch) -> list[Transition | Slope] | None:
        """Transitions in the pictures of a stretch; None where too many are missing."""
        first, stop = (bisect_right(self._shown, time) for time in stretch)
        shown = self._shown[max(first - 1, 0) : stop]
        places = [place for place, since in enumerate(shown) if since in self._seen]
        if not places or self._misses_much(shown, places):
            return None
        times = np.array([shown[place] for place in places])
        pictures = np.stack([self._seen[shown[place]] for place in places])
        return transitions_of_some(times, pictures, np.diff(places) - 1)

    def _misses_much(self, shown: Sequence[float], places: Sequence[int]) -> bool:
        """Whether more pictures than allowed are missing between two of them in some places, or beyond."""
        ends = (0, places[0]), (places[-1], len(shown) - 1)
        gaps = [(pair, _UNSEEN) for pair in pairwise(places)] + [(pair, _UNSEEN + _MARGIN) for pair in ends]
        return any(stop - first > 1 and shown[stop] - shown[first] > most for (first, stop), most in gaps)

    def forget(self, time: float) -> None:
        """Drop the pictures that are no longer shown at ``time`` seconds."""
        past = max(bisect_right(self._shown, time) - 1, 0)
        del self._shown[:past]
        if self._shown:
            self._seen = {since: seen for since, seen in self._seen.items() if since >= self._shown[0]}


def look_through(path: Path, stretches: Sequence[Stretch]) -> Marks:
    """Transitions in all pictures of stretches that a :class:`ShotFinder` reported, for :func:`joined`.

    Raises:
        UnreadableMedia, NoVideoStream: the file cannot be read (again).
    """
    pieces = [piece for stretch in stretches for piece in _pieces(stretch)]
    seen = _pictures(path, pieces)
    return [(start, transitions(*pictures)) for (start, _), pictures in zip(pieces, seen, strict=False)]


def joined(marks: Marks) -> list[Transition]:
    """Transitions between shots, in order, from all marks of a video."""
    transitions: list[Transition | Slope] = []
    for _, own in sorted(marks, key=lambda piece: piece[0]):
        known = transitions[-1].end if transitions else -1.0
        # Two pieces of one stretch overlap, and both contain it.
        transitions += [mark for mark in own if mark.start >= known and mark.end > known]
    return joined_fades(transitions)


def _pieces(stretch: Stretch) -> list[Stretch]:
    (start, end), pieces = stretch, []
    while end - start > _PIECE:
        pieces.append((start, start + _PIECE))
        start += _PIECE - _OVERLAP
    return [*pieces, (start, end)]


def _pictures(path: Path, pieces: list[Stretch]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.uint8]]]:
    """Each piece's pictures (n, 18, 32, 3) uint8, once each, with the seconds (n,) at which they appear."""
    if not pieces:
        return
    times: list[float] = []
    images: list[NDArray[np.uint8]] = []
    piece = 0
    with FrameStream(path, grid=_moments(pieces), scaler=lambda _: TinyScaler(_TINY)) as stream:
        for frame in stream:
            while frame.time > pieces[piece][1]:
                yield np.array(times), np.stack(images)
                piece += 1
                kept = bisect_left(times, pieces[piece][0])
                times, images = times[kept:], images[kept:]
            if not times or frame.shown_since > times[-1]:
                times.append(frame.shown_since)
                images.append(frame.image)
    if times:
        yield np.array(times), np.stack(images)


def _moments(pieces: list[Stretch]) -> Moments:
    ranges = (range(math.ceil(start * _FASTEST), math.floor(end * _FASTEST) + 1) for start, end in pieces)
    ticks = sorted(set(chain.from_iterable(ranges)))
    return Moments(Fraction(0), Fraction(1, _FASTEST), len(ticks), tuple(ticks))
