"""Places and times as cameras write them, byte by byte: packets, and films with them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

BERLIN = (52.52, 13.405)


# -- GPMF, as github.com/gopro/gpmf-parser describes it ------------------------------------------------------


def klv(key: str, kind: str, size: int, count: int, values: bytes) -> bytes:
    head = key.encode() + struct.pack(">BBH", ord(kind) if kind else 0, size, count)
    return head + values + b"\0" * (-len(values) % 4)


def nest(key: str, *inside: bytes) -> bytes:
    whole = b"".join(inside)
    return klv(key, "", 1, len(whole), whole)


def gps5(
    *places: tuple[float, float],
    fix: int = 3,
    dop: int = 200,
    time: bytes = b"230501123000.500",
    name: bytes = b"Hero9 Black",
) -> bytes:
    """A packet of a GoPro up to HERO10: places at a scale, one fix for all of them."""
    values = b"".join(struct.pack(">5i", round(n * 1e7), round(e * 1e7), 34_000, 0, 0) for n, e in places)
    stream = nest(
        "STRM",
        klv("STNM", "c", 1, 3, b"GPS"), klv("GPSF", "L", 4, 1, struct.pack(">I", fix)),
        klv("GPSU", "U", 16, 1, time), klv("GPSP", "S", 2, 1, struct.pack(">H", dop)),
        klv("SCAL", "l", 4, 5, struct.pack(">5i", 10_000_000, 10_000_000, 1000, 1000, 100)),
        klv("GPS5", "l", 20, len(places), values),
    )  # fmt: skip
    other = nest("STRM", klv("SCAL", "s", 2, 1, struct.pack(">h", 418)), klv("ACCL", "s", 6, 1, b"\0" * 6))
    return nest(
        "DEVC", klv("DVID", "L", 4, 1, b"\0\0\0\1"), klv("DVNM", "c", 1, len(name), name), other, stream
    )


def message(number: int, value: float | int | bytes) -> bytes:
    """A field of Protocol Buffers: a double, a whole number, or what has a length."""
    if isinstance(value, float):
        return bytes([number << 3 | 1]) + struct.pack("<d", value)
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def dji(
    place: tuple[float, float], model: str = "", way: tuple[int, int] = (3, 4), units: int | None = None
) -> bytes:
    """A packet of DJI, which names its model where it is the first; a place in degrees has units of 1."""
    north, east = place if units else map(math.radians, place)
    angles = b"" if units is None else message(1, units)
    angles += message(2, north) + message(3, east)
    frame = message(way[0], message(way[1], message(1, angles) + message(2, 72_500)))
    head = message(1, message(1, message(1, f"dvtm_{model}.proto".encode()) + message(10, b"DJI")))
    return (head if model else b"") + message(3, message(1, message(1, 300)) + frame)


def gps9(
    north: float, east: float, days: int = 8521, seconds: float = 45_000.0, fix: int = 3, dop: float = 2.0
) -> bytes:
    """One of HERO11 and later: each place with its time and fix."""
    scale = (10_000_000, 10_000_000, 1000, 1000, 100, 1, 1000, 100, 1)
    values = (round(north * 1e7), round(east * 1e7), 0, 0, 0, days, round(seconds * 1000))
    place = struct.pack(">7i2H", *values, round(dop * 100), fix)
    return nest(
        "DEVC", klv("DVNM", "c", 1, 6, b"HERO11"),
        nest("STRM", klv("TYPE", "c", 1, 9, b"lllllllSS"), klv("SCAL", "l", 4, 9, struct.pack(">9i", *scale)),
             klv("GPS9", "?", 32, 1, place)),
    )  # fmt: skip


def motion(kind: int, *values: float, form: str) -> bytes:
    return struct.pack("<HH", 0, kind) + struct.pack(f"<{form}", *values)


# -- a track of such packets in an MP4 -----------------------------------------------------------------------


def box(name: bytes, *inside: bytes) -> bytes:
    whole = b"".join(inside)
    return struct.pack(">I", 8 + len(whole)) + name + whole


def with_data_track(film: Path, packets: Sequence[bytes], entry: bytes = b"gpmd") -> Path:
    """The film with one packet a second in a track of its own: its index is written again behind the new
    data.
    """
    content = film.read_bytes()
    at, boxes = 0, {}
    while at < len(content):
        size = int.from_bytes(content[at : at + 4], "big")
        boxes[content[at + 4 : at + 8]] = (at, size)
        at += size
    start, size = boxes[b"moov"]
    assert start + size == len(content), "the index comes last"
    data = box(b"mdat", *packets)
    offsets = [start + 8 + sum(map(len, packets[:n])) for n in range(len(packets))]
    full = struct.pack(">I", 0)
    description = box(entry, b"\0" * 6 + struct.pack(">H", 1))
    table = box(
        b"stbl",
        box(b"stsd", full, struct.pack(">I", 1), description),
        box(b"stts", full, struct.pack(">3I", 1, len(packets), 1000)),
        box(b"stsc", full, struct.pack(">4I", 1, 1, 1, 1)),
        box(b"stsz", full, struct.pack(f">2I{len(packets)}I", 0, len(packets), *map(len, packets))),
        box(b"stco", full, struct.pack(f">I{len(packets)}I", len(packets), *offsets)),
    )
    length = 1000 * len(packets)
    media = box(
        b"mdia",
        box(b"mdhd", full, struct.pack(">4IHH", 0, 0, 1000, length, 0x55C4, 0)),
        box(b"hdlr", full, b"\0\0\0\0meta" + b"\0" * 12 + b"GoPro MET\0"),
        box(
            b"minf",
            box(b"gmhd", box(b"gmin", full, b"\0" * 12)),
            box(b"dinf", box(b"dref", full, b"\0\0\0\1", box(b"url ", b"\0\0\0\1"))),
            table,
        ),
    )
    head = struct.pack(">I", 3) + struct.pack(">5I", 0, 0, 77, 0, length) + b"\0" * 16
    head += struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000) + b"\0" * 8
    moov = content[start + 8 :] + box(b"trak", box(b"tkhd", head), media)
    film.write_bytes(content[:start] + data + box(b"moov", moov))
    return film


# -- Sony: sets of SMPTE RDD 18, with items of EXIF ----------------------------------------------------------

SMPTE = bytes.fromhex("060e2b34")


def ratios(*values: float) -> bytes:
    fractions = (Fraction(value).limit_denominator(10_000) for value in values)
    return b"".join(struct.pack(">2I", one.numerator, one.denominator) for one in fractions)


def sony(
    north: float,
    east: float,
    *,
    day: str = "2023:05:01",
    clock: tuple[int, ...] = (12, 30, 0),
    seen: bytes = b"A",
) -> bytes:
    """A packet of a Sony: a set of the lens, which says nothing of places, and one of the camera."""

    def items(values: dict[int, bytes]) -> bytes:
        return b"".join(struct.pack(">HH", tag, len(value)) + value for tag, value in values.items())

    def one_set(key: bytes, inside: bytes) -> bytes:
        return SMPTE + key.ljust(12, b"\1") + b"\x83" + len(inside).to_bytes(3, "big") + inside

    def angle(degrees: float) -> bytes:
        minutes = abs(degrees) % 1 * 60
        return ratios(int(abs(degrees)), int(minutes), minutes % 1 * 60)

    lens = one_set(b"lens", items({0x8000: b"\x4a\x1b"}))
    places = {
        0x8500: b"\2\2\0\0", 0x8501: b"N\0" if north >= 0 else b"S\0", 0x8502: angle(north),
        0x8503: b"E\0" if east >= 0 else b"W\0", 0x8504: angle(east), 0x8507: ratios(*clock),
        0x8509: seen + b"\0", 0x851D: day.encode() + b"\0",
    }  # fmt: skip
    return struct.pack(">H", 28).ljust(28, b"\0") + lens + one_set(b"camera", items(places))


# -- drones: local sets of MISB ST 0601 ----------------------------------------------------------------------


def drone(north: float, east: float, *, microseconds: int = 1_682_944_200_000_000) -> bytes:
    """A local set with a time, a place and something else."""
    mission = b"reel"
    items = bytes([2, 8]) + microseconds.to_bytes(8, "big") + bytes([3, len(mission)]) + mission
    for tag, share in ((13, north / 90), (14, east / 180)):
        items += bytes([tag, 4]) + round(share * (2**31 - 1)).to_bytes(4, "big", signed=True)
    return SMPTE + bytes.fromhex("020b01010e01030101000000") + b"\x81" + bytes([len(items)]) + items


# -- dash cameras: boxes among the pictures, and one that says where they are --------------------------------


def block(place: tuple[float, float] | None, second: int, *, begins: int = 48, year: int = 23) -> bytes:
    """A block of a dash camera, at a second after 14:30 on the first of May."""
    north, east = place or (0.0, 0.0)

    def written(degrees: float) -> float:
        return int(abs(degrees)) * 100 + abs(degrees) % 1 * 60

    signs = (b"S" if north < 0 else b"N") + (b"W" if east < 0 else b"E")
    record = struct.pack("<6I", 14, 30 + second // 60, second % 60, year, 5, 1)
    record += (
        (b"A" if place else b"V") + signs + b"0" + struct.pack("<4f", written(north), written(east), 1, 2)
    )
    content = b"GPS ".ljust(begins - 8, b"\x10") + record
    return box(b"free", content.ljust(200, b"\0"))


def with_blocks(film: Path, blocks: Sequence[bytes]) -> Path:
    """The film with such boxes behind its pictures, and the box in its index that names them."""
    content = film.read_bytes()
    start = content.index(b"moov") - 4
    assert start + int.from_bytes(content[start : start + 4], "big") == len(content), "the index comes last"
    places, at = b"", start
    for one in blocks:
        places += struct.pack(">2I", at, len(one))
        at += len(one)
    table = box(b"gps ", struct.pack(">2I", 257, len(blocks)), places)
    film.write_bytes(content[:start] + b"".join(blocks) + box(b"moov", content[start + 8 :], table))
    return film
