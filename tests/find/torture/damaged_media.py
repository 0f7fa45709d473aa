"""*Media*: files of every container that can be written here, damaged, each read in a process of its own.

The films have sound, subtitles, chapters, a place, a display matrix, attachments and the colours of HDR, each
where its container can have it. What must hold of each damaged one: it is read as a video, or refused with an
error that names it; no crash, no traceback, no more processor time and memory than a file of its size can
need; and where bytes were only lost, it is no longer than it was. Whole ones are as long as they are. And of
all together: a folder of damaged files and good ones is indexed to its end, the good ones are in, and of the
others each is in or refused.
"""

from __future__ import annotations

import io
import random
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from fractions import Fraction
from itertools import chain
from math import inf
from pathlib import Path

import av
import numpy as np
from av.container import OutputContainer
from av.packet import Packet
from av.subtitles.subtitle import SubtitleSet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from children import in_child
from moviola.errors import MoviolaError
from moviola.media import (
    VIDEO_SUFFIXES,
    embedded_subtitles,
    frame_at,
    make_playable,
    probe,
    read_facts,
    read_sound,
    sample_frames,
)
from moviola.media.sound import encoded_sound
from moviola.search import Library
from moviola.types import FrameSize
from sample import films_in

__all__ = ["EXTRAS", "MUTATIONS", "DamagedMedia", "read_whole"]

_PICTURES, _RATE, _SIDE = 24, 8, 64
_LENGTH = _PICTURES / _RATE
_SECONDS = 40
"""Of processor time for 24 pictures of 64 x 64: hundreds of times what they need."""

_INDEXED = 30
"""Damaged files that are indexed together at the end."""


def _draws(data: bytes, draw: random.Random, count: int) -> bytes:
    changed = bytearray(data)
    for _ in range(count):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _flip_anywhere(data: bytes, draw: random.Random) -> bytes:
    return _draws(data, draw, draw.choice((1, 4, 32, 256)))


def _flip_header(data: bytes, draw: random.Random) -> bytes:
    head = min(len(data), 2048)
    return _draws(data[:head], draw, draw.choice((1, 4, 16))) + data[head:]


def _extreme_number(data: bytes, draw: random.Random) -> bytes:
    """Durations, sizes, rates and time scales are numbers of four or eight bytes."""
    width = draw.choice((4, 8))
    value = draw.choice((0, 1, 2 ** (8 * width - 1) - 1, 2 ** (8 * width - 1), 2 ** (8 * width) - 1))
    place = draw.randrange(max(1, min(len(data) - width, 4096)))
    return data[:place] + value.to_bytes(width, draw.choice(("big", "little"))) + data[place + width :]


def _cut_off(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(1, len(data))]


def _without_middle(data: bytes, draw: random.Random) -> bytes:
    first, second = sorted(draw.sample(range(1, len(data)), 2))
    return data[:first] + data[second:]


def _repeated_middle(data: bytes, draw: random.Random) -> bytes:
    first, second = sorted(draw.sample(range(1, len(data)), 2))
    return data[:second] + data[first:second] + data[second:]


def _zeros(data: bytes, draw: random.Random) -> bytes:
    first, second = sorted(draw.sample(range(1, len(data)), 2))
    return data[:first] + bytes(second - first) + data[second:]


def _two_in_one(data: bytes, draw: random.Random) -> bytes:
    return data + data[draw.randrange(len(data)) :]


MUTATIONS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flip anywhere": _flip_anywhere,
    "flip in the header": _flip_header,
    "extreme number": _extreme_number,
    "cut off": _cut_off,
    "without middle": _without_middle,
    "repeated middle": _repeated_middle,
    "zeros": _zeros,
    "two in one": _two_in_one,
}
"""Changes to the bytes of a file."""
_ONLY_LOSE = {"cut off", "without middle", "zeros"}
_SLACK = 0.4
"""Seconds: sound may end after the last picture, and a packet of a few pictures is the least that is lost."""


class DamagedMedia:
    """Files of each container, and mutations of them in an order of the seed's.

    Args:
        folder: an empty one to work in.
        seed: of the files that are chosen and of what is done to them.

    Attributes:
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._draw = folder, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self._originals = dict(self._made())

    def _made(self) -> Iterator[tuple[str, bytes]]:
        """A film in each container that can be written here, by suffix, with all that it can have."""
        for suffix in sorted(VIDEO_SUFFIXES):
            able = [extra for extra, (suffixes, _) in EXTRAS.items() if suffix in suffixes]
            try:
                film = _film(suffix, able)
            except (ValueError, av.FFmpegError):
                if able:
                    raise
                continue  # nothing here writes it
            turned = _turned(film)
            self.counts.update(f"films with {extra}" for extra in able)
            self.counts["films that are turned"] += turned != film
            path = self._folder / f"whole{suffix}"
            path.write_bytes(turned)
            outcome = in_child(read_whole, str(path), _LENGTH - _SLACK, _LENGTH + _SLACK, seconds=_SECONDS)
            if outcome != "read":
                self.failures.append(f"{path.name}, undamaged: {outcome}")
            path.unlink()
            yield suffix, turned

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Mutate and read until ``goes_on`` says no; then index some of the files and good ones together."""
        together = films_in(self._folder / "together", "yz")
        good = {path.stem for path in together.glob("*.mp4")}
        while goes_on():
            suffix = self._draw.choice(sorted(self._originals))
            name = self._draw.choice(list(MUTATIONS))
            number = self.counts["tried"]
            self.counts["tried"] += 1
            path = self._folder / f"{number:06d}{suffix}"
            path.write_bytes(MUTATIONS[name](self._originals[suffix], self._draw))
            longest = _LENGTH + _SLACK if name in _ONLY_LOSE else None
            outcome = in_child(read_whole, str(path), 0.0, longest, seconds=_SECONDS)
            if outcome not in ("read", "refused"):
                self.failures.append(f"{path.name} ({name}): {outcome}")
            self.counts[outcome if outcome in ("read", "refused") else "failed"] += 1
            if number < _INDEXED:
                shutil.copy(path, together / path.name)
            path.unlink()
        self.failures += self._indexed(together, good)

    def _indexed(self, together: Path, good: set[str]) -> Iterator[str]:
        with Library(self._folder / "library", encoder="demo", sentence_encoder="none") as library:
            report = library.index(together, ocr=False)
        copies = {Path(path).stem for paths in report.copies.values() for path in paths}
        held = {*report.added, *report.refused, *copies}
        self.counts["indexed together"] = len(report.added)
        self.counts["refused by the index"] = len(report.refused)
        yield from (f"{name}: a good file that is not in" for name in sorted(good.difference(report.added)))
        for path in sorted(together.iterdir()):
            if path.suffix in VIDEO_SUFFIXES and path.stem not in held:
                yield f"{path.name}: neither in nor refused"


def _film(suffix: str, extras: Collection[str]) -> bytes:
    """A film of three seconds in a container, with more than pictures."""
    draw = np.random.default_rng(7)
    file = io.BytesIO()
    file.name = f"film{suffix}"
    with av.open(file, "w") as container:
        codec = container.default_video_codec
        stream = container.add_stream(codec if codec != "none" else "mpeg4", rate=_RATE)
        stream.width = stream.height = _SIDE
        stream.pix_fmt = "rgb8" if suffix == ".gif" else "yuv420p"
        stream.codec_context.thread_count = 1
        packets = [EXTRAS[extra][1](container, stream) for extra in extras]
        for packet in chain.from_iterable(packets):
            container.mux(packet)
        for number in range(_PICTURES):
            wall = draw.integers(0, 255, 3, np.uint8)
            picture = np.broadcast_to(wall, (_SIDE, _SIDE, 3)).copy()
            picture[:, number : number + 8] = 255
            frame = VideoFrame.from_ndarray(picture).reformat(format=stream.pix_fmt)
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def _sound(container: OutputContainer, _: VideoStream) -> Iterable[Packet]:
    track = container.add_stream(container.default_audio_codec, rate=48_000, layout="mono")
    tone = np.sin(np.arange(round(_LENGTH * 48_000), dtype=np.float32) / 20)
    return encoded_sound(track, [tone[:, None]])


def _subtitles(container: OutputContainer, _: VideoStream) -> Iterable[Packet]:
    track = container.add_stream("subrip" if "matroska" in container.format.name else "mov_text")
    track.codec_context.subtitle_header = b"[Events]\nFormat: Layer, Style, Text\n"
    text = b"0,0,Default,,0,0,0,,The keeper lost his umbrella."
    packet = track.codec_context.encode_subtitle(SubtitleSet.create(text, 0, 1500, 500))
    packet.stream, packet.time_base = track, Fraction(1, 1000)
    return [packet]


def _chapters(container: OutputContainer, _: VideoStream) -> Iterable[Packet]:
    base = Fraction(1, 1000)
    container.set_chapters(
        [{"id": n, "start": n * 1000, "end": n * 1000 + 900, "time_base": base, "metadata": {"title": f"{n}"}}
         for n in range(3)]
    )  # fmt: skip
    return ()


def _place(container: OutputContainer, _: VideoStream) -> Iterable[Packet]:
    container.metadata["location"] = "+37.7749-122.4194/"
    container.metadata["creation_time"] = "2024-05-01T18:30:00Z"
    return ()


def _attachment(container: OutputContainer, _: VideoStream) -> Iterable[Packet]:
    container.add_attachment("cover.jpg", "image/jpeg", bytes(range(256)))
    return ()


def _hdr(container: OutputContainer, stream: VideoStream) -> Iterable[Packet]:
    context = stream.codec_context
    context.color_primaries, context.color_trc, context.colorspace = 9, 16, 9  # BT.2020, PQ
    return ()


_QUICKTIME = {".m4v", ".mov", ".mp4"}
EXTRAS: dict[str, tuple[set[str], Callable[[OutputContainer, VideoStream], Iterable[Packet]]]] = {
    "sound": (_QUICKTIME | {".avi", ".flv", ".mkv", ".ts", ".vob", ".webm"}, _sound),
    "subtitles": (_QUICKTIME | {".mkv"}, _subtitles),
    "chapters": (_QUICKTIME | {".mkv", ".webm"}, _chapters),
    "a place": (_QUICKTIME | {".avi", ".flv", ".mkv"}, _place),
    "an attachment": ({".mkv"}, _attachment),
    "HDR": (_QUICKTIME | {".mkv"}, _hdr),
}
"""What films have besides pictures, and in which containers."""

_UPRIGHT = b"".join(number.to_bytes(4, "big") for number in (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30))
_TURNED = b"".join(
    number.to_bytes(4, "big", signed=True)
    for number in (0, 1 << 16, 0, -1 << 16, 0, 0, _SIDE << 16, 0, 1 << 30)
)


def _turned(film: bytes) -> bytes:
    """The film with a display matrix of 90 degrees (ISO/IEC 14496-12, 6.2.2) in its first track, if any."""
    head, found, rest = film.partition(b"tkhd")
    return head + found + rest.replace(_UPRIGHT, _TURNED, 1)


def read_whole(name: str, least: float, most: float | None) -> str:
    """Read of a file all that is ever read of one: ``"read"`` or ``"refused"``, or what is wrong.

    Args:
        name: of the file.
        least, most: seconds that it may last; None: any number.

    Raises:
        AssertionError: it is refused with an error that does not name it.
    """
    path = Path(name)
    try:
        info = probe(path)
        with sample_frames(path, size=FrameSize(32, 32, fit="stretch")) as frames:
            for _ in frames:
                pass
            duration = frames.duration
        if not least <= duration <= (inf if most is None else most):
            return f"lasts {duration:g} s"
        read_facts(path)
        embedded_subtitles(path)
        frame_at(path, (info.duration or 1) / 2, 32)
        if info.audio_codec:
            for _ in read_sound(path):
                pass
        make_playable(path, path.with_name(f"{path.stem}-playable.mp4"))
    except MoviolaError as error:
        assert path.name in str(error), f"does not name the file: {error}"
        return "refused"
    finally:
        path.with_name(f"{path.stem}-playable.mp4").unlink(missing_ok=True)
    return "read"
