"""Videos into features: one thread decodes ahead while the encoder works; a video is committed whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.errors import MediaError, printable
from moviola.library.ahead import ahead
from moviola.library.catalogue import ShotRow
from moviola.library.scan import FoundFile
from moviola.media import (
    embedded_subtitles,
    find_transitions,
    probe,
    read_subtitles,
    sample_frames,
    shrunk,
    sidecars,
)
from moviola.types import Cue, FrameSize

if TYPE_CHECKING:
    from moviola.media import FrameStream, MediaInfo

__all__ = ["Encoded", "Refused", "encode_video", "encode_videos", "find_shots", "read_cues"]

_BATCH = 32


@dataclass(frozen=True, slots=True)
class Encoded:
    """A video that was read: features (n, d) float32, None without a visual encoder, and then no shots."""

    file: FoundFile
    info: MediaInfo
    duration: float
    broken_at: float | None
    frames: NDArray[np.float32] | None
    shots: Sequence[ShotRow] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that cannot be used, and why."""

    file: FoundFile
    reason: str


@dataclass(frozen=True, slots=True)
class _Opened:
    file: FoundFile
    info: MediaInfo


@dataclass(frozen=True, slots=True)
class _Pictures:
    images: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Closed:
    duration: float
    broken_at: float | None
    shots: Sequence[ShotRow]


_Step = _Opened | _Pictures | _Closed | Refused


def encode_videos(
    files: Sequence[FoundFile],
    size: FrameSize | None,
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    rate: float,
    on_frames: Callable[[FoundFile, float], None],
) -> Iterator[Encoded | Refused]:
    """Decode and encode files one after another.

    Args:
        files: what to read.
        size: of the frames; None without a visual encoder: files are probed for their duration only.
        encode: makes rows of features (n, d) of frames (n, height, width, 3).
        rate: frames a second.
        on_frames: called with the file and the seconds of it that are encoded, as work goes on.
    """
    if size is None:
        for file in files:
            yield _probed(file)
        return
    with closing(ahead(_decode(files, size, rate))) as steps:
        opened: _Opened | None = None
        batches: list[NDArray[np.float32]] = []
        for step in steps:
            match step:
                case _Opened():
                    opened, batches = step, []
                case _Pictures(images):
                    assert opened is not None
                    batches.append(encode(images))
                    on_frames(opened.file, sum(map(len, batches)) / rate)
                case _Closed(duration, broken_at, shots):
                    assert opened is not None
                    features = np.concatenate(batches)
                    yield Encoded(opened.file, opened.info, duration, broken_at, features, shots)
                case Refused():
                    yield step


def encode_video(
    file: FoundFile,
    size: FrameSize | None,
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    rate: float,
    on_frames: Callable[[FoundFile, float], None] = lambda *_: None,
) -> Encoded | Refused:
    """Decode and encode one file; arguments as of :func:`encode_videos`.

    It needs no library, so that a process that has none can do it, on another machine too.
    """
    (outcome,) = encode_videos([file], size, encode, rate, on_frames)
    return outcome


def _probed(file: FoundFile) -> Encoded | Refused:
    """Without a visual encoder a file still needs to be a video, and its duration known."""
    try:
        info = probe(file.path)
        if info.duration:
            return Encoded(file, info, info.duration, None, None)
        tiny = FrameSize(16, 16, fit="stretch")
        with sample_frames(file.path, rate=1.0, size=tiny) as stream:
            for _ in stream:
                pass
        return Encoded(file, info, stream.duration, stream.broken_at, None)
    except MediaError as error:
        return Refused(file, error.reason)
    except OSError as error:
        return Refused(file, f"cannot be read ({error.strerror})")


def _decode(files: Sequence[FoundFile], size: FrameSize, rate: float) -> Iterator[_Step]:
    for file in files:
        try:
            yield _Opened(file, probe(file.path))
            samples: list[NDArray[np.uint8]] = []
            with sample_frames(file.path, rate=rate, size=size) as stream:
                for images in _batches(stream):
                    samples.append(shrunk(images))
                    yield _Pictures(images)
            shots = _shots(file.path, np.concatenate(samples), rate, stream.duration)
            yield _Closed(stream.duration, stream.broken_at, shots)
        except MediaError as error:
            yield Refused(file, error.reason)
        except OSError as error:
            yield Refused(file, f"cannot be read ({error.strerror})")


def _batches(stream: FrameStream) -> Iterator[NDArray[np.uint8]]:
    """All frames, some at a time, (n, height, width, 3)."""
    while batch := [frame.image for frame in islice(stream, _BATCH)]:
        yield np.stack(batch)


def _shots(path: Path, samples: NDArray[np.uint8], rate: float, duration: float) -> list[ShotRow]:
    """The shots of a video, of which the first begins with it."""
    found = find_transitions(path, samples, rate)
    inside = [shot for shot in found if 0 < shot.time < duration]
    return [ShotRow(0.0, "start"), *(ShotRow(shot.time, shot.kind) for shot in inside)]


def find_shots(path: Path, size: FrameSize, rate: float, duration: float) -> list[ShotRow]:
    """The shots of a video that was encoded before, as :func:`encode_videos` would find them.

    Args:
        path: the file.
        size: of the frames that were encoded.
        rate: of them, a second.
        duration: of the video, in seconds.

    Raises:
        MediaError: the file cannot be read any more.
    """
    with sample_frames(path, rate=rate, size=size) as stream:
        samples = np.concatenate([shrunk(images) for images in _batches(stream)])
    return _shots(path, samples, rate, duration)


def read_cues(file: FoundFile) -> tuple[list[Cue], list[str]]:
    """Subtitles of a video: files beside it, else text streams inside it. Damage is told, not fatal.

    Files beside a video are what somebody put there on purpose, so they stand in for the embedded ones.

    Returns:
        cues in order of time, and what could not be read.
    """
    cues: list[Cue] = []
    problems: list[str] = []
    try:
        paths = sidecars(file.path)
    except OSError as error:
        paths = ()
        problems.append(f"{file.path.parent}: cannot be read ({error.strerror})")
    for path in paths:
        try:
            found = read_subtitles(path)
        except MediaError as error:
            problems.append(str(error))
            continue
        cues.extend(found.cues)
        if found.skipped:
            problems.append(f"{printable(path.name)}: {found.skipped} damaged cues skipped")
    if not cues:
        try:
            cues.extend(embedded_subtitles(file.path).cues)
        except MediaError as error:
            problems.append(str(error))
    return sorted(cues, key=lambda cue: (cue.start, cue.end)), problems
