"""A video stream as packets with sound time stamps, and the account of what was found damaged on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import av.container
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from moviola.media.container import DAMAGE, promised_duration
from moviola.threads import DECODING

__all__ = ["Source"]

# Time stamps that run back by more are a new recording joined on (concatenated transport streams).
_BACKWARD = Fraction(1, 2)
# A picture that stands for longer than this is a damaged time stamp.
_LONGEST_STILL = 3600
# And so has one that stands for longer than this, past the end that the header promises.
_LONG_STILL = 60
# A picture that is shown later after its decoding than this has a damaged time stamp.
_LONGEST_DELAY = 60
# A video that does not begin where it says, by more, has a damaged time stamp at its start.
_START = 1
# Headers are rounded, or count the sound too; a file that is shorter than promised by more was cut off.
_SHORTFALL = 1.0
# Reading goes on after an error while packets keep coming; this many errors in a row end it.
_ERRORS_IN_A_ROW = 8


# Formats that say where every picture is and when it is shown.
_INDEXED = {"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"}


class Source:
    """Packets and pictures of one video stream.

    Time stamps are ticks of the stream's time base, moved where the file joins recordings so that they
    never run back. Damage is noted, not raised.

    Attributes:
        tick: seconds a tick lasts, exact.
        numbered: pictures have numbers in order of decoding instead of time stamps (AVI).
        indexed: time stamps are right from the first packet after a seek.
        zero: the tick that counts as time 0, None until the first picture when the header does not say.
        step: ticks that a picture is shown when nothing else says it.
        decoded: pictures that came out of the decoder.
        lost: moments asked for whose picture did not decode, so that the one before stood in.
        end: tick at which the last picture met so far leaves the screen.
        broken_at: tick at which the first damage was met, None if there was none.
    """

    def __init__(self, container: av.container.InputContainer, stream: VideoStream) -> None:
        assert stream.time_base is not None
        self.container = container
        self.stream = stream
        self.tick = Fraction(stream.time_base)
        # AVI numbers pictures in the order of decoding only, so its time starts with the first picture.
        self.numbered = container.format.name == "avi"
        self.zero = None if self.numbered else stream.start_time
        self.indexed = container.format.name in _INDEXED
        rate = stream.average_rate or stream.guessed_rate
        self.step = (
            max(1, round(1 / (rate * self.tick))) if rate else max(1, round(Fraction(1, 25) / self.tick))
        )
        self.decoded = 0
        self.lost = 0
        self.end: int | None = None
        self.broken_at: int | None = None
        stream.thread_count = DECODING
        self._codec = stream.codec_context
        self._offset = 0
        self._last: int | None = None
        self._from_start = True
        self._promised = promised_duration(container, stream) or math.inf

    def run_ups(self) -> tuple[float, ...]:
        """Seconds before a wanted time to seek to, in the order to try; infinity is to read from the start.

        A seek may land on a key frame that is shown after the wanted picture. Where only some packets carry
        time stamps, the first ones after a seek may have wrong ones, which those that follow put right.
        """
        if self.numbered or self.zero is None:
            return (math.inf,)
        return (0.0, 10.0, math.inf) if self.indexed else (10.0, math.inf)

    def seek(self, time: float, run_up: float) -> bool:
        """Go to a key frame ``run_up`` seconds before a time; False where that fails."""
        target = Fraction(time) - Fraction(run_up) if math.isfinite(run_up) else Fraction(0)
        if target <= 0:
            return True
        self._from_start = False
        try:
            self.container.seek((self.zero or 0) + math.floor(target / self.tick), stream=self.stream)
        except DAMAGE:
            return False
        return True

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Packets of the stream in file order, until the end or until nothing more can be read."""
        errors = 0
        while errors < _ERRORS_IN_A_ROW:
            try:
                for packet in self.container.demux(self.stream):
                    if packet.size:
                        errors = 0
                        yield self._repaired(packet)
                return
            except EOFError:
                self.note_damage(self._last)
                return
            except DAMAGE:
                errors += 1
                self.note_damage(self._last)

    def decode(self, packet: Packet[VideoStream] | None, *, reference_only: bool = False) -> list[VideoFrame]:
        """Pictures that come out when a packet goes in; None drains the decoder.

        Args:
            packet: what goes in.
            reference_only: leave out the picture if no other refers to it.

        Raises:
            av.FFmpegError: the packet does not decode; the next one may.
        """
        self._codec.skip_frame = "NONREF" if reference_only else "DEFAULT"
        frames = self.stream.decode(packet)
        self.decoded += len(frames)
        return frames

    def restart(self) -> list[VideoFrame]:
        """Drain the decoder and make it forget everything, as needed before decoding on from a key frame."""
        frames = self.decode(None)
        self._codec.flush_buffers()
        return frames

    def seconds(self, ticks: int) -> float:
        """Time of a tick, in seconds from the stream's zero."""
        return float((ticks - (self.zero or 0)) * self.tick)

    def note_damage(self, at: int | None) -> None:
        """Remember where the file first proved damaged."""
        if self.broken_at is None:
            self.broken_at = at if at is not None else (self.zero or 0)

    def note_shortfall(self) -> None:
        """Count it as damage when the pictures end well before the header says: the file was cut off."""
        if self.end is not None and math.isfinite(self._promised):
            missing = self._promised - self.seconds(self.end)
            if missing > max(_SHORTFALL, self._promised * 0.01):
                self.note_damage(self.end)

    def _repaired(self, packet: Packet[VideoStream]) -> Packet[VideoStream]:
        """Move time stamps on where they jump."""
        if packet.is_corrupt:
            self.note_damage(packet.pts if packet.pts is not None else self._last)
        self._correct(packet)
        stamp = packet.dts if packet.dts is not None else packet.pts
        if stamp is None:
            return packet
        if self._last is not None:
            jump = (stamp + self._offset - self._last) * self.tick
            too_late = jump > _LONGEST_STILL or (
                jump > _LONG_STILL and self.seconds(stamp + self._offset) > self._promised + _LONG_STILL
            )
            if jump < -_BACKWARD or too_late:
                if jump > 0:
                    self.note_damage(self._last)
                self._offset = self._last + (packet.duration or self.step) - stamp
        self._last = stamp + self._offset
        if self._offset:
            if packet.dts is not None:
                packet.dts += self._offset
            if packet.pts is not None:
                packet.pts += self._offset
        return packet

    def _correct(self, packet: Packet[VideoStream]) -> None:
        """Put right what cannot be: endless pictures, endless delays, a beginning far from the zero."""
        if packet.duration and packet.duration * self.tick > _LONGEST_STILL:
            packet.duration = 0
        if packet.pts is None:
            return
        if packet.dts is not None and abs(packet.pts - packet.dts) * self.tick > _LONGEST_DELAY:
            self.note_damage(self._last)
            packet.pts = packet.dts
        if self._from_start and not packet.is_discard and packet.pts is not None:
            self._from_start = False
            if self.zero is not None and abs(packet.pts - self.zero) * self.tick > _START:
                self.zero = packet.pts
                self.note_damage(packet.pts)
