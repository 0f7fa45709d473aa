"""The frame on screen at each moment of a regular grid, exactly, with the least decoding.

:func:`needed_pictures` holds packets back until it is clear which picture a moment needs, then skips all
before the last key frame that leads to it and all pictures that no other refers to. It gives up
(:class:`CannotPrune`) at the first irregularity: missing or contradictory time stamps, damage. Then the file
is read again, and :func:`every_picture` decodes everything from the next moment on.

Time 0 is the stream's start time, which respects edit lists; for AVI, the first picture.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol, Self

from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from moviola.errors import InvalidValue
from moviola.media.container import DAMAGE
from moviola.media.display_order import CannotPrune, all_before, from_key_frame, in_order
from moviola.media.source import Source

__all__ = ["Grid", "Moments", "Parts", "Picture", "Watcher", "every_picture", "needed_pictures"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A decoded picture and the tick at which it appears."""

    since: int
    frame: VideoFrame


@dataclass(frozen=True, slots=True)
class Grid:
    """Moments ``(first + k * step)`` seconds from a stream's zero, k = 0, 1, …, in exact arithmetic."""

    first: Fraction
    step: Fraction
    count: int | None = None

    @classmethod
    def regular(cls, rate: float) -> Self:
        """The grid of ``k / rate`` seconds, without end."""
        if not (math.isfinite(rate) and 0 < rate <= 1000):
            raise InvalidValue(f"rate {rate}: give frames per second, above 0 and at most 1000")
        return cls(Fraction(0), 1 / (Fraction(rate).limit_denominator(1_000_000) or Fraction(rate)))

    @classmethod
    def single(cls, time: float) -> Self:
        """A grid of one moment, ``time`` seconds from zero."""
        if not (math.isfinite(time) and time >= 0):
            raise InvalidValue(f"time {time}: give seconds, 0 or more")
        return cls(Fraction(time).limit_denominator(1_000_000), Fraction(1), 1)

    def number(self, k: int) -> int:
        """The place in the regular grid of the k-th wanted moment."""
        return k

    def exact(self, k: int) -> Fraction:
        """Moment k in seconds from zero, without rounding."""
        return self.first + self.number(k) * self.step

    def leaps_to(self, k: int) -> bool:
        """Whether moments before moment k are left out, so that decoding may begin at a key frame."""
        return self.number(k) > (self.number(k - 1) + 1 if k else 0)

    def last_tick(self, k: int, source: Source) -> int:
        """The last tick that is not after moment k."""
        assert source.zero is not None
        return source.zero + math.floor(self.exact(k) / source.tick)

    def wants(self, k: int, source: Source, end: int) -> bool:
        """Whether moment k is within a video that ends at tick ``end``; the first one always is."""
        assert source.zero is not None
        if self.count is not None:
            return k < self.count
        return self.number(k) == 0 or self.exact(k) < (end - source.zero) * source.tick


@dataclass(frozen=True, slots=True)
class Moments(Grid):
    """The moments of a grid whose numbers are ``chosen``, rising; past the end it is the last picture."""

    chosen: tuple[int, ...] = ()

    @classmethod
    def at(cls, times: Iterable[float]) -> Self:
        """Moments in seconds from a stream's zero, to the nearest millisecond.

        Raises:
            InvalidValue: none; or a time is negative, not finite, or not after the one before.
        """
        step = Fraction(1, 1000)
        chosen = tuple(round(Grid.single(time).first / step) for time in times)
        if not chosen or any(later <= earlier for earlier, later in pairwise(chosen)):
            raise InvalidValue(f"{len(chosen)} times: give one or more, each after the one before")
        return cls(Fraction(0), step, len(chosen), chosen)

    def number(self, k: int) -> int:
        """The number of moment k; after the last one, that of the last one."""
        return self.chosen[min(k, len(self.chosen) - 1)]


@dataclass(frozen=True, slots=True)
class Parts(Grid):
    """The moments of some parts of a regular grid, without end: of ``length`` moments each, from part
    ``begin`` on every ``every``-th one. After each part the first moment of the next one follows, so that
    whatever lies between two parts is decoded.
    """

    length: int = 1
    begin: int = 0
    every: int = 1

    @classmethod
    def of(cls, rate: float, length: int, begin: int = 0, every: int = 1) -> Self:
        """Parts of the grid of ``k / rate`` seconds."""
        regular = Grid.regular(rate)
        return cls(regular.first, regular.step, None, length, begin, every)

    def number(self, k: int) -> int:
        part, place = divmod(k, self.length + 1)
        return (self.begin + part * self.every) * self.length + place


class Watcher(Protocol):
    """Receives the pictures that come out of the decoder, requested or not."""

    def shown(self, since: float) -> None:
        """A picture appears at ``since`` seconds; called for each, before any later one is served."""

    def decoded(self, since: float, frame: VideoFrame) -> None:
        """The picture of ``since`` seconds, or one that the file hides, was decoded."""

    def sampled(self, time: float, since: float, frame: VideoFrame) -> None:
        """The picture of ``since`` seconds is served for a moment."""

    def cut_off(self, since: float) -> None:
        """The file is irregular and is decoded whole: what was said of pictures after ``since`` seconds does
        not hold; all of them follow.
        """


def every_picture(
    source: Source, grid: Grid, k: int, watcher: Watcher | None = None, after: float = -math.inf
) -> Iterator[tuple[int, Picture]]:
    """Decode everything; yield (k, picture on screen at moment k of the grid) from ``k`` on. ``watcher``
    receives the pictures after ``after`` seconds. Raises CannotPrune: reading began in the file, after the
    picture of moment ``k``.
    """
    shown: Picture | None = None
    bad: list[int] = []
    packets = source.packets()
    if source.sought:
        packets = from_key_frame(packets, grid.last_tick(k, source))
    for since, frame in in_order(source, packets, bad):
        if source.zero is None:
            source.zero = since
        if shown is None and source.sought and since > grid.last_tick(k, source):
            raise CannotPrune
        if watcher and (shown is None or since > shown.since) and (at := source.seconds(since)) > after:
            watcher.shown(at)
            watcher.decoded(at, frame)
        while shown and grid.last_tick(k, source) < since and grid.wants(k, source, since):
            source.lost += _bridged(bad, shown.since, grid.last_tick(k, source))
            yield k, shown
            k += 1
        if shown is None or since >= shown.since:
            shown = Picture(since, frame)
            source.note_shown(since, frame.duration)
    source.note_end()
    while shown and source.end is not None and grid.wants(k, source, source.end):
        source.lost += _bridged(bad, shown.since, grid.last_tick(k, source))
        yield k, shown
        k += 1


def _bridged(bad: list[int], since: int, until: int) -> bool:
    """Whether the picture that should be on screen did not decode, so that an older one replaces it."""
    return any(since < stamp <= until for stamp in bad)


def needed_pictures(
    source: Source, grid: Grid, watcher: Watcher | None = None
) -> Iterator[tuple[int, Picture]]:
    """Yield (k, picture on screen at moment k of the grid), decoding only what those pictures need. Raises
    CannotPrune: the file is irregular; all pictures so far are right.
    """
    pruner = _Pruner(source, grid, watcher)
    try:
        for packet in source.packets():
            yield from pruner.take(packet)
            if pruner.decided_all:
                break
        yield from pruner.finish()
    except DAMAGE as error:
        raise CannotPrune from error


class _Pruner:
    """Holds packets back until the picture on screen at the next moment is known, then feeds what it needs.

    A moment is decided once a packet's decoding time is past it: every later packet is shown later still.
    """

    # Guards on memory. Packets held at a low rate of samples; pictures that wait for a moment to be decided,
    # fewer where they are large; packets without a decoding time, which decide nothing.
    _HELD_BYTES = 32 << 20
    _WAITING = 24
    _WAITING_BYTES = 256 << 20
    _UNDECIDED = 64
    # Mean moments between two key frames from which on, with a watcher, pictures right before a key frame are
    # decoded though no moment needs them: they are few then, and a cut is often there.
    _FAR_APART = 3

    def __init__(self, source: Source, grid: Grid, watcher: Watcher | None) -> None:
        if source.numbered or source.zero is None:
            raise CannotPrune
        self._source, self._grid, self._watcher = source, grid, watcher
        self._k = 0  # the next moment to decide
        self._limit = self._previous_limit = 0  # known from the first packet on
        self._stamps: list[int] = []  # ascending, of pictures that moment k or a later one may show
        self._chosen: int | None = None  # picture of moment k - 1
        self._held: deque[Packet[VideoStream]] = deque()
        self._held_bytes = self._undecided = 0
        self._floor: int | None = None  # pictures shown before the key frame that decoding began at
        self._queue: deque[tuple[int, int]] = deque()  # decided: (k, time stamp)
        self._decoded: dict[int, VideoFrame] = {}
        self._begun = False
        self._gap = True  # packets before the first one held were left out
        self._keys, self._first_key = 0, 0
        self._through: set[int] = set()  # key frames to which decoding goes on from what was before
        picture_bytes = 4 * source.stream.codec_context.width * source.stream.codec_context.height
        self._cleared_above = min(self._WAITING, self._WAITING_BYTES // max(picture_bytes, 1))

    @property
    def decided_all(self) -> bool:
        return self._grid.count is not None and self._k >= self._grid.count

    def take(self, packet: Packet[VideoStream]) -> Iterator[tuple[int, Picture]]:
        if packet.pts is None or packet.is_corrupt or not self._source.in_step:
            raise CannotPrune
        if self._source.sparse and packet.pts in self._stamps:
            raise CannotPrune
        if not self._k:
            self._limit = self._grid.last_tick(0, self._source)
        if not packet.is_discard:
            if self._chosen is not None and self._chosen < packet.pts <= self._previous_limit:
                raise CannotPrune
            insort(self._stamps, packet.pts)
            self._source.note_shown(packet.pts, packet.duration)
            if self._watcher:
                self._watcher.shown(self._source.seconds(packet.pts))
        if packet.is_keyframe:
            self._note_key(packet.pts)
        if self._may_begin(packet) and packet.pts <= self._limit and all_before(self._held, packet.pts):
            self._leave_out(packet)
        self._held.append(packet)
        self._held_bytes += packet.size
        self._undecided = self._undecided + 1 if packet.dts is None else 0
        if self._undecided > self._UNDECIDED:
            raise CannotPrune
        # A part that an edit list hides may be followed by one that is shown earlier.
        if packet.dts is not None and not packet.is_discard and self._limit < packet.dts:
            while self._limit < packet.dts and self._grid.wants(self._k, self._source, packet.dts):
                self._decide()
            yield from self._served()
        if self._held_bytes > self._HELD_BYTES:
            self._feed(len(self._held), shown_from=None)

    def finish(self) -> Iterator[tuple[int, Picture]]:
        if not self._stamps or self._source.end is None:
            raise CannotPrune
        self._source.note_end()
        while self._grid.wants(self._k, self._source, self._source.end):
            self._decide()
        self._collect(self._source.decode(None))
        yield from self._served()
        if self._queue:
            raise CannotPrune

    def _decide(self) -> None:
        """Settle which picture moment k shows, and feed the decoder with the packets that lead to it."""
        at = bisect_right(self._stamps, self._limit) - 1
        if at < 0:
            raise CannotPrune
        wanted = self._stamps[at]
        del self._stamps[:at]
        if wanted != self._chosen:
            self._feed_up_to(wanted)
            self._chosen = wanted
        self._queue.append((self._k, wanted))
        self._k += 1
        self._previous_limit, self._limit = self._limit, self._grid.last_tick(self._k, self._source)

    def _leave_out(self, key: Packet[VideoStream]) -> None:
        """Drop what is held before a key frame that is shown behind all of it: nothing needs it."""
        self._held.clear()
        self._held_bytes = 0
        self._gap = True
        if key.pts is not None and not key.is_discard:
            del self._stamps[: bisect_left(self._stamps, key.pts)]

    def _note_key(self, key: int) -> None:
        """Decide whether decoding goes on through a key frame."""
        if not self._keys:
            self._first_key = key
        elif self._watcher:
            distance = (key - self._first_key) * self._source.tick / self._keys
            if distance >= self._FAR_APART * self._grid.step:
                self._through.add(key)
        self._keys += 1

    def _may_begin(self, packet: Packet[VideoStream]) -> bool:
        return packet.is_keyframe and (packet.pts not in self._through or self._grid.leaps_to(self._k))

    def _feed_up_to(self, wanted: int) -> None:
        start = length = None
        for position, packet in enumerate(self._held):
            assert packet.pts is not None
            if self._may_begin(packet) and packet.pts <= wanted:
                start = position
            if packet.pts == wanted and not packet.is_discard:
                length = position + 1
                break
        if length is None:
            return  # it went in before, as a reference for an earlier picture
        if start or self._gap:
            if start is None:
                raise CannotPrune
            if self._begun:
                # Without draining, pictures of the part left out would be mixed with those that follow.
                self._collect(self._source.restart())
            for _ in range(start):
                self._held_bytes -= self._held.popleft().size
            length -= start
            self._floor = self._held[0].pts
            self._begun, self._gap = True, False
        self._feed(length, shown_from=wanted)

    def _feed(self, length: int, *, shown_from: int | None) -> None:
        for _ in range(length):
            packet = self._held.popleft()
            self._held_bytes -= packet.size
            assert packet.pts is not None
            # Pictures shown before the key frame refer to what was left out; nothing later refers to them.
            if self._floor is None or packet.pts >= self._floor:
                skippable = shown_from is not None and packet.pts < shown_from
                self._collect(self._source.decode(packet, reference_only=skippable))

    def _collect(self, frames: list[VideoFrame]) -> None:
        for frame in frames:
            if frame.pts is None or frame.is_corrupt:
                raise CannotPrune
            self._decoded[frame.pts] = frame
            if self._watcher:
                self._watcher.decoded(self._source.seconds(frame.pts), frame)
        if len(self._decoded) > self._cleared_above:
            self._forget()

    def _served(self) -> Iterator[tuple[int, Picture]]:
        """Moments whose picture has been decoded."""
        while self._queue and (frame := self._decoded.get(self._queue[0][1])):
            k, since = self._queue.popleft()
            yield k, Picture(since, frame)
        self._forget()

    def _forget(self) -> None:
        # Pictures come out in order of display: a later one means that the wanted one will not come.
        head = self._queue[0][1] if self._queue else None
        if head is not None and head not in self._decoded and head < max(self._decoded, default=head):
            raise CannotPrune
        newest = max((stamp for stamp in self._decoded if stamp <= self._limit), default=self._limit)
        wanted = {stamp for _, stamp in self._queue}
        self._decoded = {
            stamp: frame for stamp, frame in self._decoded.items() if stamp >= newest or stamp in wanted
        }
        if len(self._decoded) > self._WAITING:
            raise CannotPrune
