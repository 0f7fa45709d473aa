"""Opening media files, with plain reasons for files that cannot be used."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import av
import av.container
from av.packet import Packet
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from moviola.errors import NoVideoStream, UnreadableMedia
from moviola.files.reasons import reason
from moviola.media.animated_webp import converted, is_animated

__all__ = [
    "DAMAGE", "LONGEST_VIDEO", "MAX_ASPECT_RATIO", "MAX_PIXELS", "VIDEO_SUFFIXES", "Opener", "add_h264",
    "has_box", "new_mp4", "open_container", "open_video", "promised_duration", "regular_file", "video_stream",
    "walk_files",
]  # fmt: skip

VIDEO_SUFFIXES = frozenset(
    {
        ".3g2", ".3gp", ".amv", ".asf", ".avi", ".dav", ".dif", ".divx", ".dv", ".dvr-ms",
        ".f4v", ".flv", ".gif", ".insv", ".ivf", ".m1v", ".m2p", ".m2t", ".m2ts",
        ".m2v", ".m4v", ".mk3d", ".mkv", ".mod", ".mov", ".mp4", ".mpe", ".mpeg", ".mpg", ".mpv", ".mqv",
        ".mts", ".mxf", ".nut", ".ogm", ".ogv", ".qt", ".rm", ".rmvb", ".tod", ".ts", ".vob", ".vro",
        ".webm", ".wmv", ".wtv", ".y4m",
    }
)  # fmt: skip
"""Suffixes, in lower case with the dot, by which a file in a folder counts as a video."""

MAX_PIXELS = 2**26
"""Maximum pixels of a decoded picture: 8192 x 8192, the largest of VR cameras; 256 MiB at 4 bytes a pixel."""

LONGEST_VIDEO = 48 * 3600
"""Longest sampled video, in seconds: recorders start a new file after a day at most, and damaged time stamps
make months out of seconds."""

MAX_ASPECT_RATIO = 64
"""Maximum ratio of the sides of a picture: beyond, swscale gives up, and a crop shows next to nothing."""

# Errors of libav on unreadable data: its own, and Python's where it maps them to a built-in class (ValueError
# for odd sizes and formats, OverflowError for time stamps out of range).
DAMAGE = (av.FFmpegError, ValueError, OverflowError, ArithmeticError, IndexError)

# Fewer pictures than one a minute are damage where they add up to more than these seconds, the first of a
# constant rate, and no sound is as long: slides may stand long, but a wrong time scale makes days of seconds.
# AVI has no times but its rate, and is held to it anyway.
_SLOWEST = Fraction(1, 60)
_LONGEST_EVEN, _LONGEST_SLOW = 3600, 12 * 3600
_AS_LONG = 0.9

# Top-level boxes of an MP4 that are searched for its index: a fragmented recording has two every few seconds,
# and damage can look like one box every 8 bytes.
_MAX_BOXES = 100_000

# Streams of pictures that are no film, and pictures by which a stream is known as one.
_ASIDE = (
    Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image | Disposition.dependent
)
_PICTURES = 250
_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d\.\d+)")

# A playlist that calls itself film.mp4 must not make us read other files or the network.
_OPTIONS = {"protocol_whitelist": "file", "resync_size": str(2**30)}
# Formats that only list other files, which may be anywhere.
_LISTS = frozenset({"concat", "hls", "dash", "imf", "sdp"})


class Opener(Protocol):
    """A device that decodes (:class:`moviola.media.hardware.Device`)."""

    def open(self, path: str, **options: Any) -> av.container.InputContainer:
        """Open a file that the device decodes."""

    def decode(self, stream: VideoStream, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        """Pictures that come out when a packet goes in."""


def walk_files(folder: Path) -> Iterator[Path]:
    """All files below a folder, in no order: none hidden, and none in hidden, linked or unreadable
    folders.
    """
    for directory, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(directory) / name for name in names if not name.startswith("."))


def regular_file(path: str | Path) -> os.stat_result:
    """The status of a regular file.

    Raises:
        UnreadableMedia: no such file, or a folder, a device, a pipe; the reason names what it is.
    """
    path = Path(path)
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise UnreadableMedia(path, reason("broken link" if path.is_symlink() else "no file")) from error
    except (OSError, ValueError) as error:  # ValueError: no name of a file at all
        why = getattr(error, "strerror", None) or error
        raise UnreadableMedia(path, reason("unreadable", why=why)) from error
    if not stat.S_ISREG(status.st_mode):
        kinds = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}
        raise UnreadableMedia(path, reason(kinds.get(stat.S_IFMT(status.st_mode), "device")))
    return status


@contextmanager
def new_mp4(draft: Path, **options: str) -> Iterator[av.container.OutputContainer]:
    """An MP4 to write, its index in front, with ``options`` of the muxer. Raises OSError: no room."""
    # PyAV leaves a file open that it opened itself and to which not even the head can be written.
    with (
        _Whole(str(draft), "w") as file,
        av.open(file, "w", format="mp4", options={"movflags": "+faststart", **options}) as container,
    ):
        yield container


def add_h264(
    target: av.container.OutputContainer, rate: Fraction, size: tuple[int, int], **options: str
) -> VideoStream:
    """A new track of H.264, 4:2:0, with even width and height; ``options`` are those of x264."""
    track = target.add_stream("libx264", rate=rate)
    track.width, track.height, track.pix_fmt = *size, "yuv420p"
    track.codec_context.options = {"crf": "20", "preset": "veryfast", **options}
    return track


class _Whole(io.FileIO):
    """Writes all that it is given, since libav asks for no more than the error's number; unbuffered, since it
    opens the file by its name too, to move the index.
    """

    def write(self, data: Any, /) -> int:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[super().write(rest) :]
        except OSError as error:
            return -(error.errno or errno.EIO)
        return len(data)


@contextmanager
def open_container(path: str | Path, device: Opener | None = None) -> Iterator[av.container.InputContainer]:
    """Open a media file for reading, to be decoded by a device where one is given. Raises UnreadableMedia: no
    regular file, an empty one, a list of files, a picture, or one that libav does not know.
    """
    if regular_file(Path(path)).st_size == 0:
        raise UnreadableMedia(path, reason("empty"))
    # An absolute path, since `a:b.mp4` would parse as a protocol and `-x.mp4` as an option.
    absolute = Path(path).absolute()
    if is_animated(absolute):
        with converted(absolute) as film, av.open(str(film)) as container:
            yield container
        return
    try:
        opener = av.open if device is None else device.open
        container = opener(str(absolute), options=_OPTIONS, metadata_errors="replace")
    except DAMAGE as error:
        raise UnreadableMedia(path, _why_unreadable(absolute, error)) from error
    with container:
        if container.format.name in _LISTS:
            raise UnreadableMedia(path, reason("list", format=container.format.name))
        if container.format.name.endswith("_pipe"):  # libav's demuxers of pictures
            raise UnreadableMedia(path, reason("picture"))
        yield container


def _film_among(streams: Sequence[VideoStream], path: Path) -> VideoStream:
    """The film among several streams of pictures of a file."""
    counts = {stream.index: stream.frames for stream in streams}
    if not all(counts.values()):
        status = path.stat()
        counts = dict(_pictures_in(path.absolute(), status.st_size, status.st_mtime_ns))
    lengths = {stream.index: _seconds(stream) for stream in streams}
    longest = max(lengths.values())

    def likeness(stream: VideoStream) -> tuple[bool, bool, bool, int]:
        moves = counts.get(stream.index, 0) > 1 and not stream.disposition & _ASIDE
        lasts = 2 * (lengths[stream.index] or longest) >= longest
        pixels = stream.codec_context.width * stream.codec_context.height
        return moves, lasts, bool(stream.disposition & Disposition.default), pixels

    return max(streams, key=likeness)


@lru_cache(maxsize=256)
def _pictures_in(path: Path, _size: int, _changed: int) -> Mapping[int, int]:
    """Pictures of each stream at the beginning of a file, by its index: of a cover there is one."""
    counts: Counter[int] = Counter()
    with open_container(path) as container:
        try:
            packets = container.demux(container.streams.video)
            counts.update(packet.stream_index for packet in islice(packets, _PICTURES) if packet.size)
        except DAMAGE:
            pass
    return counts


@contextmanager
def open_video(
    path: Path, device: Opener | None = None
) -> Iterator[tuple[av.container.InputContainer, VideoStream]]:
    """Open a file and its :func:`video_stream`, others discarded. Errors as in :func:`open_container`."""
    with open_container(path, device) as container:
        stream = video_stream(container, path)
        for other in container.streams:
            if other is not stream:
                other.discard = av.stream.Discard.all
        yield container, stream


def video_stream(container: av.container.InputContainer, path: Path) -> VideoStream:
    """The stream that is the film: one of moving pictures, no cover and no thumbnails; of several the default
    one, else that of the largest pictures, else the first.

    Raises:
        UnreadableMedia: no stream in it can be read, or its pictures are too large or too rare.
        NoVideoStream: sound or text only.
    """
    pictures = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
    usable = [s for s in pictures if s.codec_context is not None and s.time_base]
    if not usable:
        if pictures:
            raise UnreadableMedia(path, reason("no codec"))
        kinds = sorted({s.type for s in container.streams if s.type != "video"})
        if not {"audio", "subtitle"}.intersection(kinds):
            raise UnreadableMedia(path, reason("no stream"))
        held = " and ".join(kinds)
        cover = " with cover art" if container.streams.video else ""
        raise NoVideoStream(path, reason("no film", held=held, cover=cover))
    chosen = usable[0] if len(usable) == 1 else _film_among(usable, path)
    _require_decodable(container, chosen, path)
    return chosen


def _require_decodable(container: av.container.InputContainer, stream: VideoStream, path: Path) -> None:
    """Refuse, by the header, what would take unlimited memory or time."""
    width, height = stream.codec_context.width, stream.codec_context.height
    if width * height > MAX_PIXELS:
        raise UnreadableMedia(path, reason("too large", width=width, height=height, most=f"{MAX_PIXELS:,}"))
    # The header may be silent, and a later picture of the stream larger.
    stream.codec_context.options = {"max_pixels": str(MAX_PIXELS)}
    rate = stream.average_rate
    if rate and 0 < rate < _SLOWEST:
        length = max(stream.frames / rate, promised_duration(container, stream) or 0)
        heard = max((_seconds(sound) for sound in container.streams.audio), default=0.0)
        is_heard = heard >= _AS_LONG * length and length <= LONGEST_VIDEO
        longest = _LONGEST_EVEN if rate == stream.base_rate else _LONGEST_SLOW
        if (length > longest and not is_heard) or container.format.name == "avi":
            raise UnreadableMedia(path, reason("header", seconds=f"{1 / float(rate):g}"))


def _seconds(stream: av.stream.Stream) -> float:
    """Duration by the header; 0 without one. Matroska has a tag for it, libav that of the file."""
    if clock := _CLOCK.fullmatch(stream.metadata.get("DURATION", "")):
        return 3600 * int(clock[1]) + 60 * int(clock[2]) + float(clock[3])
    return float(stream.duration * stream.time_base) if stream.duration and stream.time_base else 0.0


def promised_duration(container: av.container.InputContainer, stream: VideoStream) -> float | None:
    """Duration of a video stream in seconds by the header, None if it has none; that of the whole file counts
    only without other streams, which may be longer.
    """
    if stream.duration and stream.duration > 0 and stream.time_base:
        return float(stream.duration * stream.time_base)
    # The rest are times at which the last picture ends, not durations.
    start = float((stream.start_time or 0) * (stream.time_base or 0))
    end = 0.0
    if clock := re.fullmatch(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)", stream.metadata.get("DURATION", "")):
        hours, minutes, rest = clock.groups()
        end = int(hours) * 3600 + int(minutes) * 60 + float(rest)
    elif len(container.streams) == 1 and container.duration:
        end = container.duration / av.time_base
    return end - start if end > start else None


def _why_unreadable(path: Path, error: Exception) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as problem:
        return reason("unreadable", why=problem.strerror)
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip") and not has_box(path, b"moov"):
        return reason("no index")
    if not any(head):
        return reason("zeros")
    if _is_text(head):
        return reason("text", suffix=path.suffix or "no suffix")
    return reason("no media", why=getattr(error, "strerror", None) or error)


def _is_text(head: bytes) -> bool:
    try:
        text = (head if len(head) < 4096 else head[:-4]).decode()
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\r\n\t\f" for character in text)


def has_box(path: Path, wanted: bytes) -> bool:
    """Whether an MP4 has a top-level box of that type among the first that begin inside the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for _ in range(_MAX_BOXES):
            header = file.read(16)
            if header[4:8] == wanted:
                return True
            length = int.from_bytes(header[:4], "big")
            if length == 1:
                length = int.from_bytes(header[8:16], "big")
            if len(header) < 8 or not 8 <= length < size:
                return False
            file.seek(length - len(header), os.SEEK_CUR)
    return False
