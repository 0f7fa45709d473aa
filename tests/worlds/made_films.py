"""Films made of tracks of any kind, length and order, for tests: pictures, sound, words, covers, chapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.packet import Packet
from av.stream import Disposition
from av.subtitles.subtitle import SubtitleSet
from av.video.frame import VideoFrame

from moviola.media.video_writer import TEXT_STYLE

__all__ = ["Boxed", "Data", "Pictures", "Sound", "Words", "make_film"]

_TICK = Fraction(1, 1000)


@dataclass(frozen=True)
class Pictures:
    """A track of pictures, each of its own grey, shown at ``times`` (seconds); by default five a second, for
    ``seconds``. ``last`` is how long the last one is shown, by its packet.
    """

    seconds: float = 3.0
    times: Sequence[float] | None = None
    last: float = 0.04
    codec: str = "libx264"
    size: tuple[int, int] = (64, 48)
    pix_fmt: str = "yuv420p"
    options: Mapping[str, str] = field(default_factory=lambda: {"preset": "veryfast", "bf": "0"})
    tags: Mapping[str, str] = field(default_factory=dict)
    disposition: Disposition | None = None

    def __post_init__(self) -> None:
        if self.times is None:
            object.__setattr__(self, "times", [n / 5 for n in range(round(self.seconds * 5))])
            object.__setattr__(self, "last", 0.2)


@dataclass(frozen=True)
class Sound:
    """A tone of ``seconds``."""

    seconds: float
    codec: str = "aac"
    channels: int = 1
    rate: int = 48_000
    tags: Mapping[str, str] = field(default_factory=dict)
    disposition: Disposition | None = None


@dataclass(frozen=True)
class Words:
    """A track of text: (start, end, text)."""

    cues: Sequence[tuple[float, float, str]]
    codec: str = "mov_text"
    tags: Mapping[str, str] = field(default_factory=dict)
    disposition: Disposition | None = None


@dataclass(frozen=True)
class Data:
    """A track of packets that are no picture, sound or text: one a second."""

    packets: Sequence[bytes]
    codec: str = "klv"
    tags: Mapping[str, str] = field(default_factory=dict)
    disposition: Disposition | None = None


@dataclass(frozen=True)
class Boxed:
    """A track of text in MP4 that libav does not know: (start, end, sample), and the name of its format.
    libav writes it as one that it knows, whose name is then changed in the file.
    """

    samples: Sequence[tuple[float, float, bytes]]
    format: bytes = b"stpp"
    tags: Mapping[str, str] = field(default_factory=dict)
    disposition: Disposition | None = None


def make_film(
    path: Path,
    *tracks: Pictures | Sound | Words | Data | Boxed,
    tags: Mapping[str, str] = {},
    chapters: Sequence[tuple[float, float, str]] = (),
    attachments: Mapping[str, bytes] = {},
    format: str | None = None,
    **options: str,
) -> Path:
    """Write a film; ``options`` are those of the muxer. Packets come in order of time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packets: list[Packet[Any]] = []
    with av.open(str(path), "w", format=format, options={"fflags": "+bitexact", **options}) as container:
        container.metadata.update(tags)
        if chapters:
            container.set_chapters([
                {"id": n, "start": round(a * 1000), "end": round(b * 1000), "time_base": _TICK,
                 "metadata": {"title": title}}
                for n, (a, b, title) in enumerate(chapters, 1)
            ])  # fmt: skip
        for name, data in attachments.items():
            container.add_attachment(name, "application/octet-stream", data)
        for track in tracks:
            add = {Pictures: _pictures, Sound: _sound, Words: _words, Data: _data, Boxed: _boxed}[type(track)]
            packets += add(container, track)  # type: ignore[operator]
        for packet in sorted(
            packets, key=lambda p: (p.dts if p.dts is not None else p.pts or 0) * p.time_base
        ):
            container.mux(packet)
    boxed = [track.format for track in tracks if isinstance(track, Boxed)]
    if boxed:
        first, *parts = path.read_bytes().split(b"tx3g")
        assert len(parts) == len(boxed)
        path.write_bytes(first + b"".join(name + part for name, part in zip(boxed, parts, strict=True)))
    return path


def _boxed(container: Any, track: Boxed) -> list[Packet[Any]]:
    stream = container.add_stream("mov_text")
    stream.codec_context.subtitle_header = TEXT_STYLE
    _described(stream, track)
    made = []
    for start, end, sample in track.samples:
        packet = Packet(sample)
        packet.stream, packet.time_base = stream, _TICK
        packet.pts = packet.dts = round(start * 1000)
        packet.duration = round((end - start) * 1000)
        made.append(packet)
    return made


def _data(container: Any, track: Data) -> list[Packet[Any]]:
    stream = container.add_data_stream(track.codec)
    _described(stream, track)
    packets = [Packet(content) for content in track.packets]
    for second, packet in enumerate(packets):
        packet.stream, packet.time_base = stream, _TICK
        packet.pts = packet.dts = second * 1000
    return packets


def _described(stream: Any, track: Pictures | Sound | Words | Data | Boxed) -> None:
    stream.metadata.update(track.tags)
    if track.disposition is not None:
        stream.disposition = track.disposition


def _pictures(container: Any, track: Pictures) -> list[Packet[Any]]:
    assert track.times is not None
    stream = container.add_stream(track.codec, rate=25, options=dict(track.options))
    stream.width, stream.height = track.size
    stream.pix_fmt = track.pix_fmt
    stream.codec_context.thread_count = 1
    stream.codec_context.time_base = _TICK if track.codec == "libx264" else Fraction(1, 25)
    _described(stream, track)
    made, tick = [], stream.codec_context.time_base
    for number, time in enumerate(track.times):
        grey = np.full((track.size[1], track.size[0], 3), 40 + 60 * number % 200, np.uint8)
        grey[: 2 + number % 8, :8] = 255 - grey[0, 0]
        frame = VideoFrame.from_ndarray(grey, format="rgb24").reformat(format=track.pix_fmt)
        frame.pts, frame.time_base = round(Fraction(time) / tick), tick
        made += stream.encode(frame)
    made += stream.encode(None)
    for packet in made:
        packet.duration = round(Fraction(track.last) / packet.time_base)
    return made


def _sound(container: Any, track: Sound) -> list[Packet[Any]]:
    layout = {1: "mono", 2: "stereo", 6: "5.1"}[track.channels]
    stream = container.add_stream(track.codec, rate=track.rate, layout=layout)
    _described(stream, track)
    wave = 0.2 * np.sin(2 * np.pi * 440 * np.arange(round(track.seconds * track.rate)) / track.rate)
    context, made, at = stream.codec_context, [], 0
    step = context.frame_size or track.rate
    resampler = av.AudioResampler(format=context.format, layout=layout, rate=track.rate)
    for start in range(0, len(wave), step):
        piece = np.tile(wave[None, start : start + step].astype(np.float32), (track.channels, 1))
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(piece), format="fltp", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = track.rate, at, Fraction(1, track.rate)
        at += piece.shape[1]
        for resampled in resampler.resample(frame):
            made += stream.encode(resampled)
    return [*made, *stream.encode(None)]


def _words(container: Any, track: Words) -> list[Packet[Any]]:
    stream = container.add_stream(track.codec)
    stream.codec_context.subtitle_header = TEXT_STYLE
    _described(stream, track)
    made = []
    for number, (start, end, text) in enumerate(track.cues):
        event = f"{number},0,Default,,0,0,0,,{text}".replace("\n", "\\N")
        span = round((end - start) * 1000)
        subtitle = SubtitleSet.create(event.encode(), 0, span, round(start * 1000))
        packet = stream.codec_context.encode_subtitle(subtitle)
        packet.stream, packet.time_base = stream, _TICK
        packet.pts = packet.dts = round(start * 1000)
        packet.duration = span
        made.append(packet)
    return made
