"""A video stream as packets with corrected time stamps, and a record of damage met on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import av.container
from av.audio.stream import AudioStream
from av.packet import Packet
from av.stream import Stream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from moviola.media.beside import Beside, Checksum
from moviola.media.container import DAMAGE, Opener, has_box, open_video, promised_duration
from moviola.media.joints import Joint, SoundTimes
from moviola.media.truncation import is_torn
from moviola.threads import DECODING

__all__ = ["Source", "joints_of"]

# Seconds. A time stamp is damaged where a picture is shown longer than this without a header that says so, or
# than the second, after the end in the header; as long after its decoding, or that second time before; or
# first, but further than this from the header's start.
_LONGEST_STILL, _LONG_STILL = 3600, 60
_START = 1
# Pictures per second where the header has none, or more than any camera takes.
_USUAL, _FASTEST = Fraction(25), 1000
# Headers are rounded, or count the sound too; a file shorter by more than this was cut off.
_SHORTFALL = 1.0
# Seconds by which a header, whose clock is coarse, may end before the last picture does.
_ROUNDED = Fraction(1, 50)
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
# Pictures that may be decoded between one and the next in order of display: those that H.264 holds back.
_MOST_HELD = 16
# Formats that can be concatenated; the others have one index, or clusters with times of their own.
_JOINABLE = {"mpegts", "mpeg"}


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
        end: tick at which the last picture so far leaves the screen; in the end it stays as long as what is
            ``beside`` it.
        pictures_end: that tick by the pictures alone, once all packets were read.
        checksum: of all packets that were read, where there is something ``beside``.
        hole: tick after which no picture comes for long, though its packet ends; uneven film has such, too.
        broken_at: tick of the first damage.
    """

    def __init__(
        self,
        container: av.container.InputContainer,
        stream: VideoStream,
        beside: Beside | None = None,
        device: Opener | None = None,
    ) -> None:
        assert stream.time_base is not None
        self.container, self.stream, self.beside = container, stream, beside
        self._decode = stream.decode if device is None else partial(device.decode, stream)
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
        self.pictures_end: int | None = None
        self.checksum = Checksum()
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
        self._packets = 0
        self._highest: int | None = None
        self._reordered = False
        self._promised = promised_duration(container, stream) or math.inf
        if self._edited and math.isfinite(self._promised) and has_box(Path(container.name), b"moof"):
            self._promised = math.inf  # of its first fragment

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
        if self.beside is None:
            yield from (self._repaired(packet) for packet in self._read(self.stream))
            return
        for packet in self._read(self.stream, *self.beside.streams):
            self.checksum.add(packet)
            if packet.stream_index == self.stream.index:
                yield self._repaired(packet)
            else:
                self.beside.note(packet)

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

    @property
    def begun(self) -> bool:
        """Whether packets were read."""
        return self._packets > 0

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
        frames = self._decode(packet)
        self.decoded += len(frames)
        return frames

    def restart(self) -> list[VideoFrame]:
        """Drain and reset the decoder, as needed before decoding from a key frame."""
        frames = self.decode(None)
        self._codec.flush_buffers()
        return frames

    def seconds(self, ticks: int) -> float:
        """Time of a tick, in seconds from the stream's zero."""
        return (ticks - (self.zero or 0)) * self.tick.numerator / self.tick.denominator

    @property
    def duration(self) -> float:
        """Seconds until :attr:`end`; 0 before the first picture."""
        if self.end is None or self.zero is None:
            return 0.0
        return self.seconds(self.end if self.end > self.zero else self.zero + self.step)

    def note_shown(self, since: int, duration: int | None) -> None:
        """Move :attr:`end` behind a picture, in any order; without a duration it lasts as the one before."""
        if self._latest is None or since > self._latest:
            before = self.step if self._latest is None else since - self._latest
            self.end = since + (duration if duration and duration > 0 else before)
            # MP4 has the times between decodings, which with B pictures are not those of display.
            if self._edited:
                self.end = self._cut(since, self.end)
            self._latest = since

    def _cut(self, since: int, end: int) -> int:
        """The tick at which a picture leaves the screen, by the header if that is earlier."""
        if not math.isfinite(self._promised):
            return end
        promised = (self.zero or 0) + round(self._promised / self.tick)
        return promised if since < promised < end - _ROUNDED / self.tick else end

    def note_end(self) -> None:
        """Settle when the film ends, once all packets were read."""
        if self.end is None:
            return
        if self._edited and self._reordered and self._latest is not None:
            # Packets amid others last until the next is decoded; only the last one says how long it is shown.
            self.end = self._cut(self._latest, self._latest + self._lasting)
        self.pictures_end = self.end
        if self.beside is not None:
            pictures = float(self.end * self.tick)
            if (end := self.beside.end(pictures, self.joints)) > pictures:
                self.end = round(Fraction(end) / self.tick)

    @property
    def _complete(self) -> bool:
        """Whether all packets came of which the header says that there are."""
        return 0 < self.stream.frames <= self._packets

    def note_damage(self, at: int | None) -> None:
        """Record where the first damage was met."""
        if self.broken_at is None:
            self.broken_at = at if at is not None else (self.zero or 0)

    def note_shortfall(self) -> None:
        """Record damage when the pictures end well before the header says, and some are missing: the file was
        cut off.
        """
        end = self.end if self.pictures_end is None else self.pictures_end
        if self.container.format.name in _JOINABLE or self._complete:
            return  # the promise is an estimate from the last packets, or kept
        if end is not None and math.isfinite(self._promised):
            missing = self._promised - self.seconds(end)
            if missing > max(_SHORTFALL, self._promised * 0.01) and self._torn() is not False:
                self.note_damage(end)

    def note_gaps(self) -> None:
        """Record damage where the structure of the file shows that parts of it are missing."""
        if self.broken_at is None and self.end is not None and self._torn():
            self.note_damage(self.end if self.hole is None else self.hole)

    def _torn(self) -> bool | None:
        path = Path(self.container.name)
        return is_torn(path, self.container.format.name, deeply=self.hole is not None)

    def _repaired(self, packet: Packet[VideoStream]) -> Packet[VideoStream]:
        """Shift time stamps where they jump."""
        if packet.is_corrupt:
            self.note_damage(packet.pts if packet.pts is not None else self._last)
        self._packets += 1
        self._correct(packet)
        if packet.pts is not None and not packet.is_discard:
            self._reordered = self._reordered or (self._highest is not None and packet.pts < self._highest)
            self._highest = packet.pts if self._highest is None else max(self._highest, packet.pts)
        stamp = packet.dts if packet.dts is not None else packet.pts
        if stamp is None:
            return packet
        # Matroska has no decoding times for the first pictures after a seek: compare like with like.
        alike, self._by_pts = self._by_pts == (packet.dts is None), packet.dts is None
        if self._last is not None and alike:
            self._follow(self._last, stamp, packet.duration or self.step)
        self._last, self._lasting = stamp + self._offset, packet.duration or self.step
        if self._offset:
            if packet.dts is not None:
                packet.dts += self._offset
            if packet.pts is not None:
                packet.pts += self._offset
        return packet

    def _follow(self, last: int, stamp: int, duration: int) -> None:
        """Compare the stamp of a packet with the one before: it may jump, be late, or leave a hole."""
        jump = (stamp + self._offset - last) * self.tick
        too_late = self._is_endless(jump, stamp + self._offset)
        # Times of display run back to every B picture.
        runs_back = jump < -_BACKWARD and not (self._edited or self._by_pts)
        if runs_back or too_late:
            if jump > 0:
                self.note_damage(last)
            before = (last - self._offset) * self.tick
            self._offset = last + duration - stamp
            self.joints.append(Joint(before, stamp * self.tick, self._offset * self.tick))
            self._lasting = duration
        late = stamp + self._offset - last - self._lasting
        self.in_step = not self.sparse or 2 * abs(late) <= self.step
        if self.hole is None and late * self.tick > _HOLE:
            self.hole = last

    def _is_endless(self, seconds: Fraction, until: int) -> bool:
        """Whether no picture is shown as long, up to a tick."""
        if seconds <= _LONG_STILL:
            return False
        if not math.isfinite(self._promised):
            return seconds > _LONGEST_STILL
        late = self.seconds(until) > self._promised + _LONG_STILL
        return late and (
            seconds > _LONGEST_STILL or not (self._edited and _is_orderly(*_file(self.container)))
        )

    def _correct(self, packet: Packet[VideoStream]) -> None:
        """Replace impossible times: endless pictures, endless delays, a start far from zero."""
        if packet.duration and packet.duration * self.tick > _LONGEST_STILL:
            since = packet.pts if packet.pts is not None else packet.dts or 0
            if self._is_endless(packet.duration * self.tick, since + packet.duration):
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


@lru_cache(maxsize=64)
def _is_orderly(path: Path, _size: int, _changed: int) -> bool:
    """Whether the pictures of an MP4 come in an order that a decoder can hold, and last as long as its header
    says by their times of decoding: what is shown later than that is no damage, but a slide that stands long.
    """
    stamps: list[tuple[int, int, int]] = []
    with open_video(path) as (container, stream):
        try:
            stamps += [
                (packet.dts, packet.pts, packet.duration or 0)
                for packet in container.demux(stream)
                if packet.size and packet.dts is not None and packet.pts is not None
            ]
        except DAMAGE:
            return False
        promised = (promised_duration(container, stream) or 0) / float(stream.time_base or 1)
    if not stamps:
        return False
    decoded = [dts for dts, _, _ in stamps]
    places = sorted(range(len(stamps)), key=lambda place: stamps[place][1])
    held = all(abs(place - rank) <= _MOST_HELD for rank, place in enumerate(places))
    lasting = decoded[-1] + stamps[-1][2] - decoded[0]
    return held and decoded == sorted(decoded) and abs(lasting - promised) <= 2 * stamps[-1][2] + 1
