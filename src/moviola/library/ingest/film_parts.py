"""One film while several threads decode its parts: what needs an order is done in order.

A part is some five minutes of sampled frames, decoded from the key frame before it. Each thread reads the
file from its start and decodes every n-th part, so that time stamps, and all that they say of damage, are the
same as in one pass; the first frame after a part is decoded too, so that no picture between two parts is left
out. Where a file must be decoded whole, one thread does, from the last part that is in. Frames are encoded
in batches that never lie across two parts. Shots and fingerprints are made of the
pictures in order: those of later parts wait. So it makes no difference by how many threads, or with what
interruptions, a film was read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import MediaError, UnreadableMedia
from moviola.files.reasons import reason
from moviola.library.disk.fingerprints import Fingerprint, FingerprintMaker
from moviola.library.ingest.decode_ahead import Branch
from moviola.media import (
    Device,
    FrameStream,
    Hardware,
    Marks,
    Parts,
    ShotFinder,
    Sighting,
    Sightings,
    SmallStills,
    StillMaker,
    Stretch,
    look_through,
    of_one_size,
    sample_frames,
    shrunk,
)
from moviola.types import FrameSize

__all__ = ["BATCH", "Again", "Begun", "Film", "Looked", "Pictures", "ReadPart", "Rest", "Step", "part_length"]

BATCH = 32
"""Frames that are encoded at once."""

PART_SECONDS = 300
"""Length of a part, which is rounded to whole batches."""

# Parts of a thread that are decoded before those of the others that come before them.
_AHEAD = 2

Stills = Sequence[tuple[float, bytes]]


def part_length(rate: float) -> int:
    """Sampled frames of a part."""
    return BATCH * max(1, round(PART_SECONDS * rate / BATCH))


@dataclass(frozen=True, slots=True)
class Pictures:
    """Frames of a part, the next ones, as the encoder gets them."""

    part: int
    images: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Again:
    """The parts from a number on are decoded once more, from a number of sampled frames on; what came of
    them so far does not count.
    """

    part: int
    moments: int


@dataclass(frozen=True, slots=True)
class Looked:
    """A stretch that was looked through, and its transitions."""

    stretches: tuple[Stretch, ...]
    marks: Marks


@dataclass(frozen=True, slots=True)
class ReadPart:
    """A part that was decoded after all before it, with another one to follow. Threads may hand on two parts
    in the other order: ``part`` is its number.

    Attributes:
        moments, seconds: behind which it ends, from the start of the film.
        marks: transitions in what was judged so far; ``unclear`` are all stretches that were not.
        broken_at: seconds at which the file proved damaged so far.
        state: of :meth:`Film.state`, for what follows.
    """

    part: int
    moments: int
    seconds: float
    stills: Stills
    fingerprint: Fingerprint
    marks: Marks
    unclear: Sequence[Stretch]
    broken_at: float | None
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rest:
    """The end of a film: the last part's stills and fingerprint, and what is known once all was read."""

    duration: float
    stills: Stills
    fingerprint: Fingerprint | None
    marks: Marks
    broken_at: float | None
    checksum: str


@dataclass(frozen=True, slots=True)
class Begun:
    """What an earlier run knew after the parts that are in; see :class:`ReadPart`."""

    moments: int
    marks: Marks
    unclear: Sequence[Stretch]
    broken_at: float | None
    state: Mapping[str, Any]


Step = Pictures | Again | Looked | ReadPart | Rest


@dataclass(frozen=True, slots=True)
class _End:
    stills: Stills
    broken_at: float | None
    last: bool


@dataclass(slots=True)
class _Waiting:
    """What was decoded of a part, in order: frames, shrunk, with what was seen up to them."""

    batches: list[tuple[NDArray[np.uint8] | None, Sequence[Sighting]]] = field(default_factory=list)
    end: _End | None = None
    begun: bool = False


class _CutOff(Exception):
    """One of several threads cannot decode its parts alone."""


class _OfSeveral(Sightings):
    def cut_off(self, since: float) -> None:
        raise _CutOff


class Film:
    """A film of parts of ``length`` frames, ``rate`` per second, decoded by ``lanes`` threads, each of which
    iterates over :meth:`lane`; what it was when it was begun stays, or it is refused.

    Args:
        identity: function that returns the identity of the file now.
        begun: of an earlier run, which is continued.
        hardware: decodes, until it fails: then what is not in comes from software, as if it had all the time.
    """

    def __init__(
        self,
        path: Path,
        rate: float,
        length: int,
        lanes: int,
        *,
        identity: Callable[[], object] = lambda: None,
        begun: Begun | None = None,
        hardware: Hardware | None = None,
    ) -> None:
        self._path, self._rate, self._length = path, rate, length
        self._identity, self._was = identity, identity()
        self._begun, self._hardware = begun, hardware
        self._again = () if begun is None else tuple(begun.unclear)
        self._lock = Lock()
        self._closed, self._cut_off = False, Event()
        self._begin(lanes)

    def _begin(self, lanes: int) -> None:
        """Begin after the parts that are in."""
        begun, self.lanes = self._begun, lanes
        self._maker = FingerprintMaker()
        self._finder = ShotFinder(self._rate, self._maker)
        self._first = self._next = 0
        self._held: list[Sighting] = []
        self._broken_at = math.inf
        self._unclear: list[Stretch] = []
        if begun is not None:
            self._first = self._next = begun.moments // self._length
            self._finder.restore(begun.state["finder"], [*begun.marks])
            self._maker.restore(begun.state["maker"])
            self._held = _restored(begun.state["held"])
            self._broken_at = _or_never(begun.broken_at)
            self._unclear = [*begun.unclear]
        self._waiting: defaultdict[int, _Waiting] = defaultdict(_Waiting)
        self._lanes_left = lanes
        self._last: _End | None = None
        self._permits = [SimpleQueue[bool]() for _ in range(lanes)]
        for permits in self._permits:
            for _ in range(_AHEAD):
                permits.put(True)

    def close(self) -> None:
        """End all threads before their next part."""
        self._closed = True
        for permits in self._permits:
            permits.put(False)

    def lane(
        self, number: int, size: FrameSize, stills_every: int | None, others: Sequence[StillMaker] = ()
    ) -> Iterator[Step | Branch[Step]]:
        """Decode every n-th part, from one on; all that are not in yet, where the last of several threads
        finds that the file must be decoded whole. ``others`` make further stills of the sampled frames, some
        of them twice. Errors of :func:`moviola.media.sample_frames`, also where
        the file has become another one.
        """
        if number == 0 and self._again:
            yield self._look(self._again)
        end = None
        device = self._hardware.device_for(self._path) if self._hardware else None
        try:
            end = yield from self._parts(number, size, stills_every, others, device=device)
        except (_CutOff, MediaError) as error:
            if self._hardware and device:  # software says whether it is the file
                self._hardware.leave(self._path, error)
            elif not isinstance(error, _CutOff):
                raise
        with self._lock:
            self._lanes_left -= 1
            if end is None:
                self._cut_off.set()
                for permits in self._permits:
                    permits.put(False)
            else:
                self._broken_at = min(self._broken_at, _or_never(end.broken_at))
            if self._lanes_left or self._closed:
                return
        if end is not None and not self._cut_off.is_set():
            yield from self._rest(end)
            return
        self._again = ()
        self._cut_off.clear()
        self._begin(1)
        yield Again(self._first, self._first * self._length)
        yield from self.lane(0, size, stills_every, others)

    def _parts(
        self,
        number: int,
        size: FrameSize,
        stills_every: int | None,
        others: Sequence[StillMaker],
        *,
        device: Device | None,
    ) -> Generator[Step | Branch[Step], None, FrameStream | None]:
        """The parts of a thread; returns the stream at its end, None where the work was ended before."""
        small = None if stills_every is None else SmallStills(stills_every)
        parts = Parts.of(self._rate, self._length, self._first + number, self.lanes)
        seen = Sightings() if self.lanes == 1 and device is None else _OfSeveral()
        stills_of = [*others, small] if small else others
        with sample_frames(
            self._path,
            rate=self._rate,
            size=size,
            watcher=seen,
            stills=stills_of,
            parts=parts,
            device=device,
        ) as stream:
            frames = iter(stream)
            for part in count(self._first + number, self.lanes):
                if not self._permits[number].get() or self._cut_off.is_set():
                    return None
                start, end = (float(part_ * self._length * parts.step) for part_ in (part, part + 1))
                left = self._length
                while batch := [frame.image for frame in islice(frames, min(BATCH, left))]:
                    left -= len(batch)
                    for images in of_one_size(batch):
                        yield Pictures(part, images)
                    yield from self._took(part, shrunk(batch), self._own(seen.taken(), end, number))
                    if self._cut_off.is_set():
                        return None
                more = not left and next(frames, None) is not None
                stills = small.taken(start, end) if small else ()
                trailing = self._own(seen.taken(), end, number)
                if left == self._length:  # the film ended before
                    yield from self._took(part, None, trailing)
                    break
                if more or part:
                    self._require_same()
                yield from self._took(part, None, trailing, _End(stills, stream.broken_at, last=not more))
                if not more:
                    break
        return stream

    def _own(self, sightings: Sequence[Sighting], end: float, lane: int) -> list[Sighting]:
        """What concerns the parts of a lane, up to the end of the one that is decoded."""

        def concerns(what: str, since: float, time: float) -> bool:
            if what == "sampled":
                return time < end
            if what == "shown" and self.lanes > 1:
                part = max(0, math.floor(since * self._rate / self._length))
                return (part - self._first) % self.lanes == lane
            return True

        return [one for one in sightings if concerns(*one[:3])]

    def _require_same(self) -> None:
        if self._identity() != self._was:
            raise UnreadableMedia(self._path, reason("changed since"))

    def _look(self, stretches: Sequence[Stretch]) -> Branch[Step]:
        def looked() -> Iterator[Step]:  # decoded when it is iterated
            yield Looked(tuple(stretches), look_through(self._path, stretches))

        return Branch(looked())

    def _took(
        self,
        part: int,
        samples: NDArray[np.uint8] | None,
        sightings: Sequence[Sighting],
        end: _End | None = None,
    ) -> Iterator[Step | Branch[Step]]:
        """Take what was decoded of a part; look through all that comes next in order."""
        steps: list[Step | Branch[Step]] = []
        with self._lock:
            waiting = self._waiting[part]
            waiting.batches.append((samples, sightings))
            waiting.end = end
            while self._next in self._waiting:
                waiting = self._waiting[self._next]
                for shrunken, seen in waiting.batches:
                    if stretches := self._look_at(waiting, shrunken, seen):
                        self._unclear += stretches
                        steps.append(self._look(stretches))
                waiting.batches.clear()
                if waiting.end is None:
                    break
                if (step := self._complete(waiting.end)) is not None:
                    steps.append(step)
                del self._waiting[self._next]
                self._permits[(self._next - self._first) % self.lanes].put(True)
                self._next += 1
        yield from steps

    def _look_at(
        self, waiting: _Waiting, samples: NDArray[np.uint8] | None, sightings: Sequence[Sighting]
    ) -> list[Stretch]:
        if not waiting.begun:
            waiting.begun = True
            sightings, self._held = self._after_held(sightings), []
        end = self._last_moment(self._next)
        taken: list[Sighting] = []
        for one in sightings:
            if one[0] == "cut off":
                self._held = [held for held in self._held if held[1] <= one[1]]
            (self._held if _decoded_after(one, end) else taken).append(one)
        self._finder.take(taken)
        return [] if samples is None else self._finder.add(samples)

    def _after_held(self, sightings: Sequence[Sighting]) -> list[Sighting]:
        """The pictures around the beginning of the next part, in order: those after the last moment before it
        were decoded with that moment, up to the key frame at which the part began, if it did at one.
        """
        if not self._next or (self.lanes == 1 and self._next != self._first):
            return [*self._held, *sightings]
        before = self._last_moment(self._next - 1)
        own = [one for one in sightings if one[0] != "decoded" or _decoded_after(one, before)]
        key = min((since for what, since, *_ in own if what == "decoded"), default=math.inf)
        return [*(one for one in self._held if one[1] < key), *own]

    def _last_moment(self, part: int) -> float:
        """The second of the last sampled frame of a whole part."""
        return float(((part + 1) * self._length - 1) * Parts.of(self._rate, self._length).step)

    def _complete(self, end: _End) -> ReadPart | None:
        self._broken_at = min(self._broken_at, _or_never(end.broken_at))
        if end.last:
            self._last = end
            return None
        moments = (self._next + 1) * self._length
        seconds = float(moments * Parts.of(self._rate, self._length).step)
        fingerprint = self._maker.made(self._last_moment(self._next))
        state = {"finder": self._finder.state(), "maker": self._maker.state(), "held": _kept(self._held)}
        marks, unclear, broken_at = [*self._finder.marks], [*self._unclear], _or_none(self._broken_at)
        self._begun = Begun(moments, marks, unclear, broken_at, state)
        return ReadPart(
            self._next, moments, seconds, end.stills, fingerprint, marks, unclear, broken_at, state
        )  # fmt: skip

    def _rest(self, end: FrameStream) -> Iterator[Step | Branch[Step]]:
        """Results that are left once all parts were decoded."""
        for waiting in self._waiting.values():  # of parts after the last one
            for samples, sightings in waiting.batches:
                self._look_at(waiting, samples, sightings)
        self._finder.take(self._held)
        yield self._look(self._finder.rest())
        stills = self._last.stills if self._last else ()
        yield Rest(
            end.duration, stills, self._maker.made(), [*self._finder.marks], _or_none(self._broken_at),
            end.checksum,
        )  # fmt: skip


def _decoded_after(sighting: Sighting, seconds: float) -> bool:
    return sighting[0] == "decoded" and sighting[1] > seconds


def _kept(decoded: Sequence[Sighting]) -> dict[str, Any]:
    """Decoded pictures as arrays and values of JSON."""
    pictures = [picture for *_, picture in decoded if picture is not None]
    return {
        "since": [since for _, since, *_ in decoded],
        "pictures": np.stack(pictures) if pictures else None,
    }


def _restored(kept: Mapping[str, Any]) -> list[Sighting]:
    return [("decoded", since, 0.0, kept["pictures"][n]) for n, since in enumerate(kept["since"])]


def _or_none(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _or_never(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds
