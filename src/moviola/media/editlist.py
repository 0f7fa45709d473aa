"""Setting the shown duration of an MP4's video track in its edit list (ISO/IEC 14496-12, 8.6.6).

By its pictures it would be too long: some are there only because others refer to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

__all__ = ["set_shown_duration"]


class _Box(NamedTuple):
    kind: bytes
    start: int  # of the content
    end: int


def set_shown_duration(path: Path, duration: Fraction) -> None:
    """End the video track of an MP4 after ``duration`` seconds, in place."""
    data = _head(path)
    moov = next(box for box in _boxes(data, 0, len(data)) if box.kind == b"moov")
    inside = list(_boxes(data, moov.start, moov.end))
    movie = next(box for box in inside if box.kind == b"mvhd")
    wide = data[movie.start] == 1
    scale = int.from_bytes(data[movie.start + (20 if wide else 12) :][:4], "big")
    ticks = round(duration * scale)
    longest = 0
    for track in (box for box in inside if box.kind == b"trak"):
        boxes = {box.kind: box for box in _boxes(data, track.start, track.end)}
        header, handler = boxes[b"tkhd"], boxes[b"hdlr"]
        place = _place(data, header.start, 20, 28)
        shown = int.from_bytes(data[place], "big")
        if data[handler.start + 8 : handler.start + 12] == b"vide" and b"elst" in boxes:
            edits = boxes[b"elst"].start
            before = int.from_bytes(data[edits + 4 : edits + 8], "big") - 1
            last = _place(data, edits, 8 + 12 * before, 8 + 20 * before)
            shown += ticks - int.from_bytes(data[last], "big")
            _write(data, last, ticks)
            _write(data, place, shown)
        longest = max(longest, shown)
    _write(data, _place(data, movie.start, 16, 24), longest)
    with path.open("r+b") as file:
        file.write(data)


def _place(data: bytearray, start: int, narrow: int, wide: int) -> slice:
    """A duration in a full box: 32 bits at ``narrow`` in version 0, 64 bits at ``wide`` in version 1."""
    at, length = (wide, 8) if data[start] == 1 else (narrow, 4)
    return slice(start + at, start + at + length)


def _write(data: bytearray, place: slice, value: int) -> None:
    data[place] = value.to_bytes(place.stop - place.start, "big")


def _head(path: Path) -> bytearray:
    """The file up to the end of its ``moov`` box, which comes before the media data."""
    with path.open("rb") as file:
        data = bytearray()
        while header := file.read(8):
            content = file.read(int.from_bytes(header[:4], "big") - 8)
            data += header + content
            if header[4:8] == b"moov":
                break
    return data


def _boxes(data: bytearray, start: int, end: int) -> Iterator[_Box]:
    """Boxes from ``start`` to ``end``, with those inside the edit and media boxes of a track."""
    while start + 8 <= end:
        size, kind = int.from_bytes(data[start : start + 4], "big"), bytes(data[start + 4 : start + 8])
        if size < 8:
            return
        yield _Box(kind, start + 8, start + size)
        if kind in (b"edts", b"mdia"):
            yield from _boxes(data, start + 8, start + size)
        start += size
