"""Boxes of MP4 and QuickTime (ISO/IEC 14496-12, 4.2), and the kinds of tracks that they name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["boxes_in", "sample_entries"]

# Boxes of one level at most: damage can look like one every 8 bytes.
_MOST = 100_000
# Where the description of a track's samples lies, and bytes before the first one in it.
_WAY, _HEAD = (b"mdia", b"minf", b"stbl", b"stsd"), 8


def boxes_in(file: BinaryIO, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind of each box, where its content begins, and where it ends; up to the first that is not whole."""
    for _ in range(_MOST):
        file.seek(start)
        header = file.read(16)
        size, at = int.from_bytes(header[:4], "big"), start + 8
        if size == 1:
            size, at = int.from_bytes(header[8:16], "big"), start + 16
        elif size == 0:
            size = end - start
        if len(header) < 8 or at > start + size or start + size > end:
            return
        yield header[4:8], at, start + size
        start += size


def sample_entries(path: Path) -> tuple[bytes, ...]:
    """The four letters that name the format of each track of a file, in its order, empty for a track without;
    none of a file that cannot be read.
    """
    with suppress(OSError), path.open("rb") as file:
        for kind, start, end in boxes_in(file, 0, file.seek(0, 2)):
            if kind == b"moov":
                tracks = (inside for inside in boxes_in(file, start, end) if inside[0] == b"trak")
                return tuple(_entry(file, at, stop) for _, at, stop in tracks)
    return ()


def _entry(file: BinaryIO, start: int, end: int) -> bytes:
    for wanted in _WAY:
        found = next(((at, stop) for kind, at, stop in boxes_in(file, start, end) if kind == wanted), None)
        if found is None:
            return b""
        start, end = found
    return next((kind for kind, _, _ in boxes_in(file, start + _HEAD, end)), b"")
