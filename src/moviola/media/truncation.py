"""Whether the structure of a file is whole, where no header says how long it should be, or a wrong one.

Most formats are chains of blocks; libav says nothing where such a chain is broken, or where blocks of a disk
were never written: a file that is received in pieces has its whole size from the beginning.
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
# Zeros that no stream has amid its packets, and those that recorders append at most, to fill a cluster.
_HOLE, _PADDING = bytes(8192), 1 << 16
# Start codes of MPEG: of a pack, and the end of a program (ISO/IEC 13818-1, 2.5.3); bytes that hold one.
_PACK, _PROGRAM_END, _LONGEST_PACK = b"\0\0\1\xba", 0xB9, 1 << 17
# Header, file properties and packets of ASF, by their GUIDs, and the flag of a broadcast, which has no size.
_ASF = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_ASF_PROPERTIES, _BROADCAST = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365"), 1
_ASF_DATA = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")


def is_torn(path: Path, format_name: str, *, deeply: bool) -> bool | None:
    """Whether parts of a file are missing, as far as its structure shows; None where it does not.

    ``format_name`` is libav's. ``deeply`` also compares the numbers of fragments, looks at each block of
    Matroska's clusters, and for holes in transport streams and ASF. Raises OSError: the file cannot be read
    any more.
    """
    if (check := _CHECKS.get(format_name)) is None:
        return None
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

    def holds(self, sought: bytes, place: int, stop: int | None = None) -> bool:
        """Whether a sequence of bytes begins between two places."""
        kept, stop = b"", len(self) if stop is None else stop
        while place < stop and (read := self._read(place, self._BLOCK)):
            if sought in kept + read:
                return True
            kept, place = read[1 - len(sought) :], place + len(read)
        return False

    def end(self) -> int:
        """The place behind the last byte that is not 0."""
        place = len(self)
        while place > 0:
            start = max(0, place - self._BLOCK)
            if left := self._read(start, place - start).rstrip(b"\0"):
                return start + len(left)
            place = start
        return 0

    def slice(self, place: int, count: int) -> bytes:
        return self._read(place, count)

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


def _fragments(data: _Bytes, deeply: bool) -> bool | None:
    """Boxes of a fragmented MP4: one that ends outside of the file, a fragment that none leads to, or one
    whose number does not follow on the one before.
    """
    size, place, last = len(data), 0, 0
    while place + 8 <= size:
        length, kind = data.number(place, 4), data.number(place + 4, 4)
        if length == 1:
            length = data.number(place + 8, 8)
        elif length == 0 and kind:  # to the end of the file
            return None
        if length < 8 or place + length > size:
            cut_off = last > 0 and kind in (_MOOF, _MDAT)
            return cut_off or data.holds(b"moof", place + 8) or None
        if kind == _MOOF:
            number = data.number(place + 20, 4) if data.number(place + 12, 4) == _MFHD else last + 1
            if deeply and last and number > last + 1:
                return True
            last = number
        place += length
    return None


def _matroska(data: _Bytes, deeply: bool) -> bool | None:
    """Elements of the segment, and of clusters without a size, or of all."""
    place, inside, size = 0, False, len(data)
    stop: int | None = None  # of a segment that says how long it is
    while place < size:
        kind, length, begin = _element(data, place)
        if not inside:
            if kind == _SEGMENT:
                inside, place = True, begin
                stop = None if length is None else begin + length
                continue
            if kind != _HEADER or length is None:
                return True
        elif kind in (_HEADER, _SEGMENT):  # another recording follows
            inside, place = kind == _SEGMENT, begin if kind == _SEGMENT else begin + (length or 0)
            stop = begin + length if kind == _SEGMENT and length is not None else None
            continue
        elif kind not in _IN_SEGMENT:
            # The rest may be padding: damage is where a cluster follows.
            return data.holds(_CLUSTER.to_bytes(4, "big"), place) or _lacks(stop, place)
        elif kind == _CLUSTER and (deeply or length is None):
            end = size if length is None else min(begin + length, size)
            begin, whole = _in_cluster(data, begin, end, sized=length is not None)
            if not whole:
                return True
            place = begin
            continue
        place = begin + (length or 0)
    return place > size or _lacks(stop, size)


def _lacks(stop: int | None, place: int) -> bool | None:
    """Whether a segment that says where it stops has come to its end at a place."""
    return None if stop is None else stop > place


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


def _program(data: _Bytes, deeply: bool) -> bool | None:
    """Packets of an MPEG program stream: holes between them, or a last one that ends outside of the file;
    ``deeply``, each begins where the one before ends.
    """
    end, size = data.end(), len(data)
    if size - end > _PADDING or data.holds(_HOLE, 0, end - len(_HOLE)):
        return True
    start = 0 if deeply else max(0, end - _LONGEST_PACK)
    head = data.slice(start, _LONGEST_PACK)
    place = start + (head.find(_PACK) if deeply else head[: end - start].rfind(_PACK))
    if place < start:
        return None
    while place + 6 <= end and data.number(place, 3) == 1:
        kind = data[place + 3]
        if kind == _PROGRAM_END:  # another recording may follow
            place += 4
        elif kind != _PACK[3]:
            place += 6 + data.number(place + 4, 2)
        elif data[place + 4] & 0xC0 == 0x40:  # MPEG-2
            place += 14 + (data[place + 13] & 7)
        else:
            place += 12
    return place > size or (place + 6 <= end and deeply) or None


def _transport(data: _Bytes, deeply: bool) -> bool | None:
    """Holes between the packets of an MPEG transport stream, or behind them."""
    end = data.end()
    return len(data) - end > _PADDING or (deeply and data.holds(_HOLE, 0, end - len(_HOLE))) or None


def _riff(data: _Bytes, _: bool) -> bool | None:
    """RIFF chunks of AVI, one after the other (OpenDML), of which one ends outside of the file."""
    place, size = 0, len(data)
    while data.slice(place, 4) == b"RIFF":
        length = int.from_bytes(data.slice(place + 4, 4), "little")
        if length in (0, 0xFFFFFFFF):
            return None
        place += 8 + length
        if place > size:
            return True
        place += length & 1
    return None


def _flash(data: _Bytes, _: bool) -> bool | None:
    """Whether FLV ends with a tag: its size stands behind it."""
    size = len(data)
    length = data.number(size - 4, 4)
    place = size - 4 - length
    return not (place >= 9 and length >= 11 and data.number(place + 1, 3) == length - 11)


def _advanced(data: _Bytes, deeply: bool) -> bool | None:
    """Whether ASF is shorter than its properties say; ``deeply``, whether packets are missing."""
    head = data.slice(0, 1 << 16)
    at, packets = head.find(_ASF_PROPERTIES), head.find(_ASF_DATA)
    if not head.startswith(_ASF) or at < 0 or head[at + 88] & _BROADCAST:
        return None
    if int.from_bytes(head[at + 40 : at + 48], "little") > len(data):
        return True
    size = int.from_bytes(head[at + 92 : at + 96], "little")
    if not deeply or packets < 0 or size < 16:
        return None
    number = int.from_bytes(head[packets + 40 : packets + 48], "little")
    begins = range(packets + 50, min(packets + 50 + number * size, len(data)), size)
    return any(not data.number(begin, 8) for begin in begins) or None


_CHECKS: dict[str, Callable[[_Bytes, bool], bool | None]] = {
    "gif": _gif,
    "mov,mp4,m4a,3gp,3g2,mj2": _fragments,
    "matroska,webm": _matroska,
    "mpeg": _program,
    "mpegts": _transport,
    "avi": _riff,
    "flv": _flash,
    "asf": _advanced,
}
"""Checks by libav's name of the format."""
