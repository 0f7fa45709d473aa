"""A video stream as packets with corrected time stamps, and a record of damage met on the way.

Transport and program streams can be concatenated (``cat a.vob b.vob``): time stamps then run back in the
middle of the file. Pictures show where; sound, whose packets are a little before or behind, is shifted by the
same amount (:class:`SoundTimes`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import av.container
from av.audio.stream import AudioStream
from av.packet import Packet
from av.stream import Stream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from moviola.media.container import DAMAGE, open_video, promised_duration
from moviola.media.truncation import is_torn
from moviola.threads import DECODING

__all__ = ["Joint", "SoundTimes", "Source", "joints_of"]

# Seconds. A time stamp is damaged where a picture is shown longer than this, or than the second, after the
# end in the header; as long after its decoding, or that second time before; or first, but further than this
# from the header's start.
_LONGEST_STILL, _LONG_STILL = 3600, 60
_START = 1
# Pictures per second where the header has none, or more than any camera takes.
_USUAL, _FASTEST = Fraction(25), 1000
# Headers are rounded, or count the sound too; a file shorter by more than this was cut off.
_SHORTFALL = 1.0
# Seconds by which a header, whose clock is coarse, may end before the last picture does.
_ROUNDED = Fraction(1, 20)
# Seconds without a picture, beyond what packets last, in which parts of a file may be missing.
_HOLE = 0.5
# Reading continues after an error while packets keep coming, up to this many errors in a row.
_ERRORS_IN_A_ROW = 8
# Seconds: time stamps that run back by more begin a new recording.
_BACKWARD = Fraction(1, 2)
# Places of a file where its time stamps are read. Of recordings that are longer than the distance of two
# places, at least one shows that time runs back.
_PLACES = 48

# Formats that record the place and the time of every picture: time stamps are right at once after a seek.
_INDEXED = {"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"}
# Formats that can be concatenated; the others have one index, or clusters with times of their own.
_JOINABLE = {"mpegts", "mpeg"}


@dataclass(frozen=True, slots=True)
class Joint:
    """The end of a recording and the beginning of the next: their time stamps, as stored, and what is added
    from there on, all in seconds.
    """

    before: Fraction
    after: Fraction
    offset: Fraction


class SoundTimes:
    """Shifts the time stamps of sound by as much as those of the pictures beside it."""

    def __init__(self, joints: Sequence[Joint]) -> None:
        self._left = deque(joints)
        self._offset = Fraction(0)
        self._last: Fraction | None = None

    def moved(self, stamp: Fraction) -> Fraction:
        """Shift of a time stamp in seconds; to be called in file order."""
        if self._left and self._last is not None:
            joint = self._left[0]
            jump, whole = stamp - self._last, joint.after - joint.before
            if abs(jump - whole) < abs(jump):
                self._offset = self._left.popleft().offset
        self._last = stamp
        return self._offset


class Source:
    """Packets and pictures of one video stream. Damage is noted, not raised.

    Time stamps are ticks of the stream's time base, moved so that they never run back where recordings join.

    Attributes:
        tick: seconds a tick lasts, exact.
        numbered: pictures have numbers in order of decoding instead of time stamps (AVI).
        sparse: only some pictures carry a time stamp (MPEG program streams); libav estimates the others.
        in_step: the last packet of a sparse stream came when the previous one said it would.
        sought: reading began somewhere in the file, not at its start.
        joints: where recordings are joined, as far as packets were read.
        zero: the tick that counts as time 0, None until the first picture if the header has none.
        step: default duration of a picture in ticks.
        decoded: number of decoded pictures.
        lost: number of requested moments whose picture did not decode, so that the one before is shown.
        end: tick at which the last picture so far leaves the screen.
        hole: tick after which no picture comes for long, though its packet ends; uneven film has such, too.
        broken_at: tick of the first damage.
    """

    def __init__(self, container: av.container.InputContainer, stream: VideoStream) -> None:
        assert stream.time_base is not None
        self.container, self.stream = container, stream
        self.tick = Fraction(stream.time_base)
        # AVI numbers pictures in the order of decoding only, so its time starts with the first picture.
        self.numbered = container.format.name == "avi"
        self.zero = None if self.numbered else stream.start_time
        self.sparse = container.format.name == "mpeg"
        self.in_step = True
        self.sought = False
        self.joints: list[Joint] = []
        rate = stream.average_rate or stream.guessed_rate
        if not rate or rate > _FASTEST:
            rate = _USUAL
        self.step = max(1, round(1 / (rate * self.tick)))
        self.decoded = self.lost = 0
        self.end: int | None = None
        self.hole: int | None = None
        self.broken_at: int | None = None
        stream.thread_count = DECODING
        # Where an edit list has several parts, decoding runs back to the key frame before a part.
        self._edited = container.format.name.startswith("mov,")
        self._codec = stream.codec_context
        self._latest: int | None = None
        self._offset = 0
        self._last: int | None = None
        self._by_pts = False  # whether ``_last`` is a time of display
        self._lasting = 0  # ticks that the packet of ``_last`` is shown
        self._from_start = True
        self._promised = promised_duration(container, stream) or math.inf

    def run_ups(self) -> tuple[float, ...]:
        """Seconds before a wanted time to seek to, in the order to try; infinity: read from the start.

        A seek may land on a key frame that is shown later. In formats without an index the first time stamps
        after it may be wrong. Where recordings are joined, a time stamp is ambiguous.
        """
        if self.numbered or self.zero is None or _is_joined(self.container):
            return (math.inf,)
        return (0.0, 10.0, math.inf) if self.container.format.name in _INDEXED else (10.0, math.inf)

    def seek(self, time: float, run_up: float) -> bool:
        """Go to a key frame ``run_up`` seconds before a time; False where that fails."""
        target = Fraction(time) - Fraction(run_up) if math.isfinite(run_up) else Fraction(0)
        if target <= 0:
            return True
        self._from_start = False
        self.sought = True
        try:
            self.container.seek((self.zero or 0) + math.floor(target / self.tick), stream=self.stream)
        except DAMAGE:
            return False
        return True

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Packets of the stream in file order, until the end or until no more can be read."""
        return (self._repaired(packet) for packet in self._read(self.stream))

    def packets_with(self, sound: AudioStream | None) -> Iterator[Packet[Any]]:
        """:meth:`packets`, and between them those of its sound, with the same time stamps."""
        if sound is None:
            yield from self.packets()
            return
        times = SoundTimes(joints_of(self.container))
        for packet in self._read(self.stream, sound):
            if packet.stream_index == self.stream.index:
                self._repaired(packet)
            else:
                for name in ("pts", "dts"):
                    if (stamp := getattr(packet, name)) is not None:
                        moved = times.moved(stamp * packet.time_base)
                        setattr(packet, name, stamp + round(moved / packet.time_base))
            yield packet

    def _read(self, *streams: Stream) -> Iterator[Packet[Any]]:
        errors = 0
        while errors < _ERRORS_IN_A_ROW:
            try:
                for packet in self.container.demux(*streams):
                    if packet.size:
                        errors = 0
                        yield packet
                return
            except EOFError:
                self.note_damage(self._last)
                return
            except DAMAGE:
                errors += 1
                self.note_damage(self._last)

    def decode(self, packet: Packet[VideoStream] | None, *, reference_only: bool = False) -> list[VideoFrame]:
        """Pictures that come out when a packet goes in; None drains the decoder.

        ``reference_only`` skips the picture if no other refers to it. Raises av.FFmpegError: it does not
        decode.
        """
        self._codec.skip_frame = "NONREF" if reference_only else "DEFAULT"
        frames = self.stream.decode(packet)
        self.decoded += len(frames)
        return frames

    def restart(self) -> list[VideoFrame]:
        """Drain and reset the decoder, as needed before decoding from a key frame."""
        frames = self.decode(None)
        self._codec.flush_buffers()
        return frames

    def seconds(self, ticks: int) -> float:
        """Time of a tick, in seconds from the stream's zero."""
        return float((ticks - (self.zero or 0)) * self.tick)

    def note_shown(self, since: int, duration: int | None) -> None:
        """Move :attr:`end` behind a picture, in any order; without a duration it lasts as the one before."""
        if self._latest is None or since > self._latest:
            before = self.step if self._latest is None else since - self._latest
            self.end = since + (duration if duration and duration > 0 else before)
            # MP4 has the times between decodings, which with B pictures are not those of display.
            if self._edited and math.isfinite(self._promised):
                promised = (self.zero or 0) + round(self._promised / self.tick)
                if since < promised < self.end - _ROUNDED / self.tick:
                    self.end = promised
            self._latest = since

    def note_damage(self, at: int | None) -> None:
        """Record where the first damage was met."""
        if self.broken_at is None:
            self.broken_at = at if at is not None else (self.zero or 0)

    def note_shortfall(self) -> None:
        """Record damage when the pictures end well before the header says: the file was cut off."""
        if self.end is not None and math.isfinite(self._promised):
            missing = self._promised - self.seconds(self.end)
            if missing > max(_SHORTFALL, self._promised * 0.01):
                self.note_damage(self.end)

    def note_gaps(self) -> None:
        """Record damage where the structure of the file shows that parts of it are missing."""
        if self.broken_at is None and self.end is not None:
            path = Path(self.container.name)
            if is_torn(path, self.container.format.name, deeply=self.hole is not None):
                self.note_damage(self.end if self.hole is None else self.hole)

    def _repaired(self, packet: Packet[VideoStream]) -> Packet[VideoStream]:
        """Shift time stamps where they jump."""
        if packet.is_corrupt:
            self.note_damage(packet.pts if packet.pts is not None else self._last)
        self._correct(packet)
        stamp = packet.dts if packet.dts is not None else packet.pts
        if stamp is None:
            return packet
        # Matroska has no decoding times for the first pictures after a seek: compare like with like.
        alike, self._by_pts = self._by_pts == (packet.dts is None), packet.dts is None
        if self._last is not None and alike:
            jump = (stamp + self._offset - self._last) * self.tick
            too_late = self._is_endless(jump, stamp + self._offset)
            # Times of display run back to every B picture.
            runs_back = jump < -_BACKWARD and not (self._edited or self._by_pts)
            if runs_back or too_late:
                if jump > 0:
                    self.note_damage(self._last)
                before = (self._last - self._offset) * self.tick
                self._offset = self._last + (packet.duration or self.step) - stamp
                self.joints.append(Joint(before, stamp * self.tick, self._offset * self.tick))
                self._lasting = packet.duration or self.step
            late = stamp + self._offset - self._last - self._lasting
            self.in_step = not self.sparse or 2 * abs(late) <= self.step
            if self.hole is None and late * self.tick > _HOLE:
                self.hole = self._last
        self._last, self._lasting = stamp + self._offset, packet.duration or self.step
        if self._offset:
            if packet.dts is not None:
                packet.dts += self._offset
            if packet.pts is not None:
                packet.pts += self._offset
        return packet

    def _is_endless(self, seconds: Fraction, until: int) -> bool:
        """Whether no picture is shown as long, up to a tick."""
        late = self.seconds(until) > self._promised + _LONG_STILL
        return seconds > _LONGEST_STILL or (seconds > _LONG_STILL and late)

    def _correct(self, packet: Packet[VideoStream]) -> None:
        """Replace impossible times: endless pictures, endless delays, a start far from zero."""
        if packet.duration and packet.duration * self.tick > _LONGEST_STILL:
            packet.duration = 0
        if packet.pts is None:
            return
        if packet.dts is not None:
            delay = (packet.pts - packet.dts) * self.tick  # B pictures wait for as long as a still is shown
            if delay < -_LONG_STILL or self._is_endless(delay, packet.pts + self._offset):
                self.note_damage(self._last)
                packet.pts = packet.dts
        if self._from_start and not packet.is_discard and packet.pts is not None:
            self._from_start = False
            if self.zero is not None and abs(packet.pts - self.zero) * self.tick > _START:
                self.zero = packet.pts
                self.note_damage(packet.pts)


def joints_of(container: av.container.InputContainer) -> Sequence[Joint]:
    """Places where recordings are joined in an open file; reads all of it if there are any."""
    return _joints(*_file(container)) if _is_joined(container) else ()


def _is_joined(container: av.container.InputContainer) -> bool:
    """Whether the time stamps of an open file run back somewhere, judged by some places of it."""
    return container.format.name in _JOINABLE and _runs_back(*_file(container))


def _file(container: av.container.InputContainer) -> tuple[Path, int, int]:
    status = (path := Path(container.name)).stat()
    return path, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=64)
def _joints(path: Path, _size: int, _changed: int) -> Sequence[Joint]:
    with open_video(path) as (container, stream):
        source = Source(container, stream)
        for _ in source.packets():
            pass
        return tuple(source.joints)


@lru_cache(maxsize=256)
def _runs_back(path: Path, size: int, _changed: int) -> bool:
    stamps: list[Fraction] = []
    with open_video(path) as (container, stream):
        assert stream.time_base is not None
        for place in range(_PLACES):
            try:
                container.seek(size * place // _PLACES, unsupported_byte_offset=True)
                for packet in container.demux(stream):
                    if packet.dts is not None:
                        stamps.append(packet.dts * Fraction(stream.time_base))
                        break
            except DAMAGE:
                continue
    return any(later < earlier - _BACKWARD for earlier, later in pairwise(stamps))
