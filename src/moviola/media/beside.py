"""Sound and text beside the pictures of a file: which streams, when they end, and a checksum.

A film lasts as long as its pictures, its sound and its words: players hold the last picture while there is
something to hear. Of a song or a podcast the picture is one, for the smallest time that the file can say.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from zlib import crc32

import av
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.stream import Stream

from moviola.media.joints import Joint, SoundTimes
from moviola.media.tracks import chosen_track, text_streams

__all__ = ["Beside", "Checksum", "promised_end", "streams_beside"]

LEAST_MORE = Fraction(1, 10)
"""Seconds by which sound must outlast pictures to count: what encoders add, and what is rounded, is less."""
# Seconds that a cue is shown at most after what else there is, and that may lie between two ends, beyond what
# the file's header says: a later time stamp is damaged, or a mark that is shown for all time.
_LONGEST_CUE = _LONGEST_GAP = 60
# What Matroska and MP4 store between two texts.
_EMPTY = 2


def streams_beside(container: InputContainer, path: Path) -> tuple[Stream, ...]:
    """The sound track that players choose, and all tracks of text."""
    sound = chosen_track(container, path)
    return tuple(filter(None, (sound, *text_streams(container))))


class Checksum:
    """Of all packets that are read, with their time stamps; the same for the same content, however little of
    it is decoded.
    """

    def __init__(self) -> None:
        self._crc, self._bytes, self._packets = 0, 0, 0

    def add(self, packet: Packet[Any]) -> None:
        self._crc = crc32(packet, crc32(b"%d %d" % (packet.stream_index, packet.pts or 0), self._crc))
        self._bytes += packet.size
        self._packets += 1

    def __str__(self) -> str:
        return f"{self._crc:08x}-{self._packets}-{self._bytes}"


class Beside:
    """Takes the packets of streams beside the pictures, in file order.

    Args:
        streams: of :func:`streams_beside`.
        promised: seconds at which the file ends by its header, on its own clock; infinite without one.
    """

    def __init__(self, streams: Sequence[Stream], promised: float) -> None:
        self.streams = tuple(streams)
        self._promised = promised
        # Of sound packets, begin and end, since recordings may be joined at a place that is known later.
        self._heard = array("d")
        self._shown: list[tuple[float, float]] = []

    def note(self, packet: Packet[Any]) -> None:
        stamp = packet.pts if packet.pts is not None else packet.dts
        if stamp is None or packet.is_discard:
            return
        tick = packet.time_base
        start, end = float(stamp * tick), float((stamp + (packet.duration or 0)) * tick)
        if isinstance(packet.stream, AudioStream):
            self._heard.extend((start, end))
        elif packet.size > _EMPTY:
            self._shown.append((start, start if end - start > _LONGEST_CUE else end))

    def end(self, pictures: float, joints: Sequence[Joint]) -> float:
        """The second at which the film ends, whose pictures end at ``pictures``, both on the file's clock."""
        found = pictures
        for ends in (self._sound_ends(joints), sorted(self._shown)):
            for start, end in ends:
                if start <= max(found + _LONGEST_GAP, self._promised):
                    found = max(found, end)
        return found if found - pictures > LEAST_MORE else pictures

    def _sound_ends(self, joints: Sequence[Joint]) -> Iterable[tuple[float, float]]:
        pairs = zip(self._heard[::2], self._heard[1::2], strict=True)
        if not joints:
            return pairs
        times = SoundTimes(joints)
        moved = ((float(times.moved(Fraction(start))), start, end) for start, end in pairs)
        return ((start + by, end + by) for by, start, end in moved)


def promised_end(container: InputContainer) -> float:
    """The second at which a file ends by its header, on its own clock; infinite without one."""
    if not container.duration or container.duration < 0:
        return math.inf
    return ((container.start_time or 0) + container.duration) / av.time_base
