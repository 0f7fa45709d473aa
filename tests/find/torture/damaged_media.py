"""*Media*: files of every container that can be written here, damaged, each read in a process of its own.

What must hold of each: it is read as a video, or refused with an error that names it; no crash, no traceback,
no more processor time and memory than a file of its size can need. And of all together: a folder of damaged
files and good ones is indexed to its end, the good ones are in, and of the others each is in or refused.
"""

from __future__ import annotations

import io
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import numpy as np
from av.video.frame import VideoFrame

from children import in_child
from moviola.errors import MoviolaError
from moviola.media import (
    VIDEO_SUFFIXES,
    embedded_subtitles,
    frame_at,
    make_playable,
    probe,
    read_capture,
    read_sound,
    sample_frames,
)
from moviola.search import Library
from moviola.types import FrameSize
from sample import films_in

__all__ = ["MUTATIONS", "DamagedMedia", "read_whole"]

_PICTURES, _RATE, _SIDE = 24, 8, 64
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
"""What is done to the bytes of a file."""


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
        self._originals = originals()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

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
            outcome = in_child(read_whole, str(path), seconds=_SECONDS)
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


def originals() -> dict[str, bytes]:
    """A film of three seconds in each container that can be written here, by suffix."""
    files = {}
    for suffix in sorted(VIDEO_SUFFIXES):
        try:
            files[suffix] = _film(suffix)
        except (ValueError, av.FFmpegError):
            continue  # nothing here writes it
    return files


def _film(suffix: str) -> bytes:
    draw = np.random.default_rng(7)
    file = io.BytesIO()
    file.name = f"film{suffix}"
    with av.open(file, "w") as container:
        codec = container.default_video_codec
        stream = container.add_stream(codec if codec != "none" else "mpeg4", rate=_RATE)
        stream.width = stream.height = _SIDE
        stream.pix_fmt = "rgb8" if suffix == ".gif" else "yuv420p"
        stream.codec_context.thread_count = 1
        for number in range(_PICTURES):
            wall = draw.integers(0, 255, 3, np.uint8)
            picture = np.broadcast_to(wall, (_SIDE, _SIDE, 3)).copy()
            picture[:, number : number + 8] = 255
            frame = VideoFrame.from_ndarray(picture).reformat(format=stream.pix_fmt)
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def read_whole(name: str) -> str:
    """Read of a file all that is ever read of one: ``"read"`` or ``"refused"``.

    Raises:
        AssertionError: it is refused with an error that does not name it.
    """
    path = Path(name)
    try:
        info = probe(path)
        with sample_frames(path, size=FrameSize(32, 32, fit="stretch")) as frames:
            for _ in frames:
                pass
        read_capture(path)
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
