"""Whether the structure of a file is whole, where no header says how long it should be.

GIF, fragmented MP4 and Matroska are chains of blocks; libav says nothing where such a chain is broken.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path

__all__ = ["is_torn"]

# Children of a Matroska segment, and of a cluster, by their ids (RFC 9559).
_IN_SEGMENT = {
    0x114D9B74, 0x1549A966, 0x1654AE6B, 0x1F43B675, 0x1C53BB6B, 0x1254C367, 0x1043A770, 0x1941A469,
    0xEC, 0xBF,
}  # fmt: skip
_IN_CLUSTER = {0xE7, 0x5854, 0xA7, 0xAB, 0xA3, 0xA0, 0xAF, 0xEC, 0xBF}
_HEADER, _SEGMENT, _CLUSTER = 0x1A45DFA3, 0x18538067, 0x1F43B675
# Boxes of a fragmented MP4, which begin with the number of the fragment (ISO/IEC 14496-12, 8.8).
_MOOF, _MDAT, _MFHD = (int.from_bytes(name, "big") for name in (b"moof", b"mdat", b"mfhd"))
# Bytes after the end of a GIF that are no sign of damage: some programs append a comment.
_APPENDED = 4096


def is_torn(path: Path, format_name: str, *, deeply: bool) -> bool:
    """Whether parts of a file are missing, as far as its structure shows.

    Only GIF, MP4 and Matroska, by libav's ``format_name``, are ever torn. ``deeply`` also compares the
    numbers of fragments, and looks at each block of Matroska's clusters. Raises OSError: the file cannot be
    read any more.
    """
    if (check := _CHECKS.get(format_name)) is None:
        return False
    with path.open("rb", buffering=0) as file:
        return check(_Bytes(file), deeply)


class _Bytes:
    """Bytes of a file, 0 past its end; mapped, it would end the process when its drive goes away."""

    _BLOCK = 1 << 16

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._start, self._block = 0, b""

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: int) -> int:
        within = place - self._start
        if not 0 <= within < len(self._block):
            self._start, within = place, 0
            self._block = self._read(place, self._BLOCK)
        return self._block[within] if self._block else 0

    def number(self, place: int, width: int) -> int:
        return int.from_bytes(bytes(self[place + k] for k in range(width)), "big")

    def holds(self, sought: bytes, place: int) -> bool:
        kept = b""
        while read := self._read(place, self._BLOCK):
            if sought in kept + read:
                return True
            kept, place = read[1 - len(sought) :], place + len(read)
        return False

    def _read(self, place: int, count: int) -> bytes:
        self._file.seek(place)
        return self._file.read(count) or b""


def _gif(data: _Bytes, _: bool) -> bool:
    """Blocks until the trailer; GIF89a, 12 to 27."""
    size = len(data)
    place = 13 + _colours(data[10] if size > 10 else 0)
    while place < size:
        kind = data[place]
        if kind == 0x3B:
            return size - place > max(_APPENDED, size // 10)
        if kind == 0x21:
            place += 2
        elif kind == 0x2C and place + 9 < size:
            place += 11 + _colours(data[place + 9])
        else:
            return True
        while place < size and data[place]:
            place += data[place] + 1
        place += 1
    return True


def _colours(flags: int) -> int:
    """Bytes of the table of colours that flags announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _fragments(data: _Bytes, deeply: bool) -> bool:
    """Boxes of a fragmented MP4: one that ends outside of the file, a fragment that none leads to, or one
    whose number does not follow on the one before.
    """
    size, place, last = len(data), 0, 0
    while place + 8 <= size:
        length, kind = data.number(place, 4), data.number(place + 4, 4)
        if length == 1:
            length = data.number(place + 8, 8)
        elif length == 0 and kind:  # to the end of the file
            return False
        if length < 8 or place + length > size:
            cut_off = last > 0 and kind in (_MOOF, _MDAT)
            return cut_off or data.holds(b"moof", place + 8)
        if kind == _MOOF:
            number = data.number(place + 20, 4) if data.number(place + 12, 4) == _MFHD else last + 1
            if deeply and last and number > last + 1:
                return True
            last = number
        place += length
    return False


def _matroska(data: _Bytes, deeply: bool) -> bool:
    """Elements of the segment, and of clusters without a size, or of all."""
    place, inside, size = 0, False, len(data)
    while place < size:
        kind, length, begin = _element(data, place)
        if not inside:
            if kind == _SEGMENT:
                inside, place = True, begin
                continue
            if kind != _HEADER or length is None:
                return True
        elif kind in (_HEADER, _SEGMENT):  # another recording follows
            inside, place = kind == _SEGMENT, begin if kind == _SEGMENT else begin + (length or 0)
            continue
        elif kind not in _IN_SEGMENT:
            # What is left may be padding: damage is where a cluster follows.
            return data.holds(_CLUSTER.to_bytes(4, "big"), place)
        elif kind == _CLUSTER and (deeply or length is None):
            end = size if length is None else min(begin + length, size)
            begin, whole = _in_cluster(data, begin, end, sized=length is not None)
            if not whole:
                return True
            place = begin
            continue
        place = begin + (length or 0)
    return place > size


def _in_cluster(data: _Bytes, place: int, end: int, *, sized: bool) -> tuple[int, bool]:
    """Where the elements of a cluster end, and whether they are whole."""
    while place < end:
        kind, length, begin = _element(data, place)
        if kind not in _IN_CLUSTER:
            return place, not sized and kind in (*_IN_SEGMENT, _HEADER, _SEGMENT)
        if length is None or begin + length > end:
            return place, False
        place = begin + length
    return place, True


def _element(data: _Bytes, place: int) -> tuple[int, int | None, int]:
    """Id of an EBML element, its bytes (None: it does not say) and where they begin; id 0 where none is."""
    first = data[place]
    width = 9 - first.bit_length()
    if not first or width > 4 or place + width >= len(data):
        return 0, 0, place
    kind = data.number(place, width)
    place += width
    first = data[place]
    width = 9 - first.bit_length()
    if not first or place + width > len(data):
        return 0, 0, place
    length = data.number(place, width) & ((1 << 7 * width) - 1)
    return kind, None if length == (1 << 7 * width) - 1 else length, place + width


_CHECKS: dict[str, Callable[[_Bytes, bool], bool]] = {
    "gif": _gif,
    "mov,mp4,m4a,3gp,3g2,mj2": _fragments,
    "matroska,webm": _matroska,
}
