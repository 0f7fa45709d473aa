"""Videos into features: threads decode ahead while the encoder works; a video is committed whole.

Each video is decoded by one thread: its frames, and again the seconds in which a shot may begin, now and then
in between, so that the encoder has something to do meanwhile. As many videos are decoded at once as there are
cores, and frames are encoded as they come, whichever video they are of: nobody waits while there is work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.errors import MediaError, printable
from moviola.library.ahead import side_by_side
from moviola.library.catalogue import ShotRow
from moviola.library.repeats import encode_changes
from moviola.library.scan import FoundFile
from moviola.media import (
    TransitionFinder,
    embedded_subtitles,
    find_transitions,
    probe,
    read_subtitles,
    sample_frames,
    shrunk,
    sidecars,
)
from moviola.threads import compute_threads
from moviola.types import Cue, FrameSize

if TYPE_CHECKING:
    from moviola.media import FrameStream, MediaInfo, Transition

__all__ = ["Encoded", "Refused", "encode_video", "encode_videos", "find_shots", "read_cues"]

_BATCH = 32


@dataclass(frozen=True, slots=True)
class Encoded:
    """A video that was read: features (n, d) float32, None without a visual encoder, and then no shots.

    ``repeats`` of the features are copies of others, see :mod:`moviola.library.repeats`.
    """

    file: FoundFile
    info: MediaInfo
    duration: float
    broken_at: float | None
    frames: NDArray[np.float32] | None
    shots: Sequence[ShotRow] = ()
    repeats: int = 0


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


@dataclass(slots=True)
class _Underway:
    """What there is of a video so far."""

    opened: _Opened | None = None
    rows: list[NDArray[np.float32]] = field(default_factory=list)
    repeats: int = 0

    def add(self, rows: NDArray[np.float32], repeats: int) -> None:
        self.rows.append(rows)
        self.repeats += repeats

    def done(self, closed: _Closed) -> Encoded:
        assert self.opened is not None
        file, info, features = self.opened.file, self.opened.info, np.concatenate(self.rows)
        return Encoded(file, info, closed.duration, closed.broken_at, features, closed.shots, self.repeats)


def encode_videos(
    files: Sequence[FoundFile],
    size: FrameSize | None,
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    rate: float,
    on_frames: Callable[[FoundFile, float], None],
    *,
    every_frame: bool = False,
) -> Iterator[Encoded | Refused]:
    """Decode and encode files, several at once; they come in their order, whichever is done first.

    Args:
        files: what to read.
        size: of the frames; None without a visual encoder: files are probed for their duration only.
        encode: makes rows of features (n, d) of frames (n, height, width, 3).
        rate: frames a second.
        on_frames: called with a file and the seconds of it that are encoded, as work goes on.
        every_frame: encode those too that repeat one before.
    """
    if size is None:
        for file in files:
            yield _probed(file)
        return
    underway: dict[int, _Underway] = {}
    done: dict[int, Encoded | Refused] = {}
    following = 0  # the file that comes next
    with closing(side_by_side((_decode(file, size, rate) for file in files), compute_threads())) as steps:
        for number, step in steps:
            video = underway.setdefault(number, _Underway())
            match step:
                case _Opened():
                    video.opened = step
                case _Pictures(images):
                    video.add(*((encode(images), 0) if every_frame else encode_changes(images, encode)))
                    on_frames(files[number], sum(map(len, video.rows)) / rate)
                case _Closed():
                    done[number] = underway.pop(number).done(step)
                case Refused():
                    done[number] = step
            while following in done:
                yield done.pop(following)
                following += 1


def encode_video(
    file: FoundFile,
    size: FrameSize | None,
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    rate: float,
    on_frames: Callable[[FoundFile, float], None] = lambda *_: None,
    *,
    every_frame: bool = False,
) -> Encoded | Refused:
    """Decode and encode one file; arguments as of :func:`encode_videos`.

    It needs no library, so that a process that has none can do it, on another machine too.
    """
    (outcome,) = encode_videos([file], size, encode, rate, on_frames, every_frame=every_frame)
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


def _decode(file: FoundFile, size: FrameSize, rate: float) -> Iterator[_Step]:
    try:
        yield _Opened(file, probe(file.path))
        transitions = TransitionFinder(file.path, rate)
        with sample_frames(file.path, rate=rate, size=size) as stream:
            for images in _batches(stream):
                yield _Pictures(images)
                transitions.add(shrunk(images))
        shots = _shots(transitions.finish(), stream.duration)
        yield _Closed(stream.duration, stream.broken_at, shots)
    except MediaError as error:
        yield Refused(file, error.reason)
    except OSError as error:
        yield Refused(file, f"cannot be read ({error.strerror})")


def _batches(stream: FrameStream) -> Iterator[NDArray[np.uint8]]:
    """All frames, some at a time, (n, height, width, 3)."""
    while batch := [frame.image for frame in islice(stream, _BATCH)]:
        yield np.stack(batch)


def _shots(found: Sequence[Transition], duration: float) -> list[ShotRow]:
    """The shots of a video, of which the first begins with it."""
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
    return _shots(find_transitions(path, samples, rate), duration)


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
