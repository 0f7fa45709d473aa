"""How long a film is: one answer to all who ask.

It lasts until its last picture leaves the screen, and as long as its sound and its words
(:mod:`moviola.media.beside`). Headers are not asked: those of recordings in fragments, of slide shows with B
pictures, and of streams that were cut off or written on, say something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import av

from moviola.errors import UnreadableMedia
from moviola.media.beside import Beside, promised_end, streams_beside
from moviola.media.container import Opener, open_container, regular_file, video_stream
from moviola.media.source import Source

__all__ = ["Whole", "length_of", "open_whole", "read_through"]


@dataclass(frozen=True, slots=True)
class Whole:
    """What reading a file to its end gives without decoding it: its ``duration`` in seconds, and a
    ``checksum`` of all that was read, the same as while it is decoded.
    """

    duration: float
    checksum: str


@contextmanager
def open_whole(path: Path, device: Opener | None = None) -> Iterator[Source]:
    """A file to be read to its end: its pictures, which a device may decode, and what lasts beside them.
    Errors as in :func:`moviola.media.probe`.
    """
    with open_container(path, device) as container:
        stream = video_stream(container, path)
        beside = streams_beside(container, path)
        for other in container.streams:
            if other is not stream and other not in beside:
                other.discard = av.stream.Discard.all
        yield Source(container, stream, Beside(beside, promised_end(container)), device)


def length_of(path: str | Path) -> float:
    """Seconds from the first picture of a video to its end: the same as
    :attr:`moviola.media.FrameStream.duration` after all of it was decoded. The file is read, not decoded.

    Raises:
        UnreadableMedia: no such file, no media file, or no picture in it.
        NoVideoStream: sound or text only.
    """
    return read_through(path).duration


def read_through(path: str | Path) -> Whole:
    """Read a video file to its end; errors as in :func:`length_of`."""
    path = Path(path).absolute()
    status = regular_file(path)
    return _read(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _read(path: Path, _size: int, _changed: int) -> Whole:
    with open_whole(path) as source:
        for packet in source.packets():
            stamp = packet.dts if source.numbered or packet.pts is None else packet.pts
            if packet.is_discard:
                continue
            if stamp is None:
                stamp = source.zero or 0 if source.end is None else source.end
            if source.zero is None:
                source.zero = stamp
            source.note_shown(stamp, packet.duration)
        source.note_end()
        if not source.duration:
            raise UnreadableMedia(path, "no picture can be decoded")
        return Whole(source.duration, str(source.checksum))
