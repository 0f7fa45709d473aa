"""The sound of a video as samples, aligned with its pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Literal

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.media.container import DAMAGE, open_container, video_stream
from moviola.media.frames import LONGEST_VIDEO
from moviola.media.joints import SoundTimes
from moviola.media.source import joints_of
from moviola.media.tracks import chosen_track

__all__ = ["encoded_sound", "read_sound", "sound_up_to"]

# Time stamps of sound are rounded to the stream's ticks, 1 ms in Matroska; larger differences are gaps, or
# sound that was stored twice.
_TOLERANCE = 0.02
# Seconds to begin earlier, since decoders of sound need a run-up.
_RUN_UP = 1.0
_LAYOUTS = {1: "mono", 2: "stereo"}


def read_sound(
    path: Path,
    *,
    rate: int = 16_000,
    seconds: float = 30.0,
    start: float = 0.0,
    channels: Literal[1, 2] = 1,
    track: int | str | None = None,
) -> Iterator[NDArray[np.float32]]:
    """The sound of a video from a time on, in pieces of float32 in [-1, 1], (n,) mono or (n, 2), if any.

    Sample n of all pieces together is heard ``start + n / rate`` seconds after the first picture is shown:
    where sound begins later, or is missing or damaged, there is silence. It ends with the sound.

    Args:
        rate: samples per second, above 0.
        seconds: length of a piece; the last one is shorter.
        start: seconds from the zero of the pictures, >= 0.
        channels: 1 mixes all into one, 2 into left and right.
        track: see :func:`moviola.media.chosen_track`.

    Raises:
        UnreadableMedia, NoVideoStream: see :func:`~moviola.media.probe`.
        MediaError: no such track.
        InvalidValue: a rate or a length that is not above 0, or a track that is neither number nor language.
    """
    size = int(rate * seconds)
    if rate < 1 or size < 1:
        raise InvalidValue(f"rate {rate}, seconds {seconds}: both must be above 0")
    waiting: list[NDArray[np.float32]] = []
    held = 0
    with open_container(path) as container:
        stream = chosen_track(container, path, track)
        pictures = video_stream(container, path)
        assert pictures.time_base is not None
        line = _TimeLine(rate, channels, float((pictures.start_time or 0) * pictures.time_base) + start)
        for samples in _placed(container, stream, line, size, start):
            waiting.append(samples)
            held += len(samples)
            while held >= size:
                whole = np.concatenate(waiting)
                yield whole[:size, 0] if channels == 1 else whole[:size]
                waiting, held = [whole[size:]], held - size
    if held:
        whole = np.concatenate(waiting)
        yield whole[:, 0] if channels == 1 else whole


def sound_up_to(
    count: int, path: Path, *, rate: int, start: float, channels: int, track: int | str | None = None
) -> Iterator[NDArray[np.float32]]:
    """At most ``count`` samples of :func:`read_sound`, (n, ``channels``), in pieces of a second."""
    pieces = read_sound(
        path, rate=rate, seconds=1.0, start=start, channels=2 if channels == 2 else 1, track=track
    )
    for samples in pieces:
        if count:
            yield samples[:count].reshape(-1, channels)
        count -= min(count, len(samples))
        if not count:
            return


def encoded_sound(track: AudioStream, pieces: Iterable[NDArray[np.float32]]) -> Iterator[Packet[AudioStream]]:
    """Pieces of sound (n, channels) at the track's rate, one after the other."""
    rate, layout, at = track.codec_context.sample_rate, track.codec_context.layout.name, 0
    for samples in pieces:
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(samples.T), format="fltp", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, at, Fraction(1, rate)
        at += len(samples)
        yield from track.encode(frame)
    yield from track.encode(None)


def _placed(
    container: InputContainer, stream: AudioStream | None, line: _TimeLine, most: int, since: float
) -> Iterator[NDArray[np.float32]]:
    """Samples without gaps from ``since`` on, at most ``most`` of silence at a time."""
    if stream is None:
        return
    joints = joints_of(container)
    times = SoundTimes(joints)
    if since > _RUN_UP and stream.time_base is not None and not joints:
        with suppress(*DAMAGE):
            container.seek(math.floor((line.zero - _RUN_UP) / stream.time_base), stream=stream)
    expected: float | None = None  # seconds at which a frame continues the one before
    for frame in _frames(container, stream):
        pts, tick = frame.pts, frame.time_base
        if pts is None or tick is None:
            start = expected or 0.0
        else:
            start = float(pts * tick + times.moved(pts * tick)) - line.zero
        if start > LONGEST_VIDEO:
            break  # a damaged time stamp
        if expected is None or abs(start - expected) > _TOLERANCE:
            yield from line.go_to(round(start * line.rate), most)
        expected = start + frame.samples / frame.sample_rate
        yield from line.add(frame)
    yield from line.end()


class _TimeLine:
    """Joins frames of sound, resampled; its first sample is heard at second ``zero`` of the file's clock."""

    def __init__(self, rate: int, channels: Literal[1, 2], zero: float) -> None:
        self.rate, self.zero, self._channels = rate, zero, channels
        self._given = self._surplus = 0
        self._resampler: av.AudioResampler | None = None
        self._kind: tuple[str, str, int] | None = None

    def add(self, frame: AudioFrame) -> Iterator[NDArray[np.float32]]:
        kind = (frame.format.name, frame.layout.name, frame.sample_rate)
        if kind != self._kind:  # another recording, or sound that was entered amid a frame
            yield from self.end()
        if self._resampler is None:
            self._resampler = av.AudioResampler(format="flt", layout=_LAYOUTS[self._channels], rate=self.rate)
            self._kind = kind
        frame.pts = None  # the place is known here; the resampler would complain where times run back
        yield from self._counted(self._resampler.resample(frame))

    def end(self) -> Iterator[NDArray[np.float32]]:
        if self._resampler is not None:
            yield from self._counted(self._resampler.resample(None))
            self._resampler = None

    def go_to(self, sample: int, most: int) -> Iterator[NDArray[np.float32]]:
        """Where the next frame begins: silence until there, or what was given already is left out."""
        yield from self.end()
        while self._given < sample:
            silence = np.zeros((min(most, sample - self._given), self._channels), np.float32)
            self._given += len(silence)
            yield silence
        self._surplus = self._given - sample

    def _counted(self, frames: list[AudioFrame]) -> Iterator[NDArray[np.float32]]:
        for frame in frames:
            samples = frame.to_ndarray().reshape(-1, self._channels).astype(np.float32, copy=False)
            samples = samples[self._surplus :]
            self._surplus = max(0, self._surplus - frame.samples)
            self._given += len(samples)
            if len(samples):
                yield samples


def _frames(container: InputContainer, stream: AudioStream) -> Iterator[AudioFrame]:
    """The frames that decode; damage is skipped."""
    for other in container.streams:
        if other is not stream:
            other.discard = av.stream.Discard.all
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets)
        except (StopIteration, *DAMAGE):
            return
        try:
            frames = packet.decode()
        except DAMAGE:
            continue
        yield from (frame for frame in frames if frame.samples and frame.sample_rate)
