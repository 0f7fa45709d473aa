"""Pictures of a video in order of display, each with the tick at which it appears."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain

from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from moviola.media.container import DAMAGE
from moviola.media.source import Source

__all__ = ["CannotPrune", "from_key_frame", "from_last_key_frame", "in_order"]


class CannotPrune(Exception):
    """Pruned decoding cannot be exact here; the file must be decoded whole."""


def in_order(
    source: Source, packets: Iterable[Packet[VideoStream]], bad: list[int] | None = None
) -> Iterator[tuple[int, VideoFrame]]:
    """All pictures in order of display, each with the tick at which it appears. Time stamps of packets that
    fail to decode are appended to ``bad``.
    """
    clock = _DisplayTimes(source)
    for packet in chain(packets, [None]):
        if packet is not None:
            clock.sent(packet)
        try:
            frames = source.decode(packet)
        except DAMAGE:
            if packet is None:
                source.note_damage(None)
                return
            stamp = packet.pts if packet.pts is not None else packet.dts
            source.note_damage(stamp)
            if bad is not None:
                bad.append(stamp or 0)
            clock.failed(packet)
            continue
        for frame in frames:
            if (since := clock.read(frame)) is not None:
                yield since, frame


def from_key_frame(packets: Iterable[Packet[VideoStream]], limit: int) -> Iterator[Packet[VideoStream]]:
    """Packets from the first key frame on that can be decoded from there, as needed after seeking. Raises
    CannotPrune: this is shown after ``limit``, or at an unknown time.
    """
    floor: int | None = None
    for packet in packets:
        if floor is None and packet.is_keyframe:
            if packet.pts is None or packet.pts > limit:
                raise CannotPrune
            floor = packet.pts
        # Pictures shown before the key frame refer to what was before it.
        if floor is not None and (packet.pts is None or packet.pts >= floor):
            yield packet


def from_last_key_frame(packets: Iterable[Packet[VideoStream]], limit: int) -> Iterator[Packet[VideoStream]]:
    """Packets from the last key frame on that leads to the picture at tick ``limit``, or all."""
    held: list[Packet[VideoStream]] = []
    known = True
    packets = iter(packets)
    for packet in packets:
        known = known and packet.pts is not None and packet.dts is not None
        is_key = known and packet.is_keyframe and packet.pts is not None and packet.pts <= limit
        if is_key and all_before(held, packet.pts):
            held.clear()
        held.append(packet)
        if not known or (packet.dts is not None and packet.dts > limit):
            break
    floor = held[0].pts if known and held and held[0].is_keyframe else None
    for packet in chain(held, packets):
        # Pictures shown before the key frame refer to what was before it.
        if floor is None or packet.pts is None or packet.pts >= floor:
            yield packet


def all_before(packets: Iterable[Packet[VideoStream]], key: int | None) -> bool:
    """Whether all packets are shown before a key frame, so that nothing after it needs them."""
    return key is not None and all(packet.pts is not None and packet.pts < key for packet in packets)


class _DisplayTimes:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._decoding_order: list[int] = []
        self._previous: int | None = None
        self._steady = _SteadyTimes(source) if source.sparse else None

    def sent(self, packet: Packet[VideoStream]) -> None:
        if self._source.numbered and packet.dts is not None:
            heapq.heappush(self._decoding_order, packet.dts)

    def failed(self, packet: Packet[VideoStream]) -> None:
        if self._source.numbered and packet.dts in self._decoding_order:
            self._decoding_order.remove(packet.dts)
            heapq.heapify(self._decoding_order)

    def read(self, frame: VideoFrame) -> int | None:
        """The tick; None right after a seek, until a time stamp gives it."""
        stamp: int | None
        if self._steady:
            return self._steady.read(frame.pts, frame.duration)
        if self._source.numbered:
            # AVI: pictures come out in order of display, so the smallest number that went in is theirs.
            stamp = heapq.heappop(self._decoding_order) if self._decoding_order else None
        else:
            stamp = frame.pts if frame.pts is not None else frame.dts
        if stamp is None:
            stamp = 0 if self._previous is None else self._previous + self._source.step
        self._previous = stamp
        return stamp


class _SteadyTimes:
    """Times of pictures where few have a time stamp, and some of these a wrong one (program streams).

    Where the headers of a picture are spread over two packets, libav takes the wrong one's time stamp, and
    what it estimates from there on is off by some pictures. So pictures follow each other at their durations,
    and a time stamp that differs counts if it is far off, or if those after it agree for some seconds.
    """

    # More is no picture taken for another, but a gap.
    _FAR = Fraction(1, 2)
    _PATIENCE = 2

    def __init__(self, source: Source) -> None:
        self._source, self._tick, self._step = source, source.tick, source.step
        self._next: int | None = None
        self._since: int | None = None  # the tick from which on time stamps differ

    def read(self, stamp: int | None, duration: int | None) -> int | None:
        if stamp is not None:
            now = stamp if self._next is None else self._judged(stamp, self._next)
        elif self._next is not None:
            now = self._next
        elif not self._source.sought:
            now = self._source.zero or 0
        else:
            return None
        self._next = now + (duration or self._step)
        return now

    def _judged(self, stamp: int, due: int) -> int:
        """The time of a picture that is due at one tick and stamped with another."""
        off = stamp - due
        if 2 * abs(off) <= self._step or off * self._tick > self._FAR:
            self._since = None
            return stamp
        self._since = due if self._since is None else self._since
        if (due - self._since) * self._tick < self._PATIENCE:
            return due
        self._since = None
        return max(stamp, due - self._step + 1)
