"""Places and times that cameras measure: streams made byte by byte, sound ones and hostile ones."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_films import Pictures, make_film
from moviola.media import read_facts
from moviola.media.measured import _gpmf, _motion
from moviola.types import Capture

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


@pytest.fixture
def film(tmp_path: Path) -> Path:
    return make_film(tmp_path / "GX010123.mp4", Pictures(5.0))


UNSEEN = gps5((0, 0), fix=0, time=b"150101000000.000")


FIRST, SECOND = "2023-05-01T12:30:00+00:00", "2023-05-01T12:29:59+00:00"
"""When a film began whose first, or second, packet says half past twelve."""


@pytest.mark.parametrize(
    ("packets", "taken"),
    [
        pytest.param([UNSEEN, gps5(BERLIN)], SECOND, id="GPS5, no satellite at first"),
        pytest.param([gps9(*BERLIN)], FIRST, id="GPS9"),
        pytest.param([gps9(0, 0, fix=0), gps9(*BERLIN)], SECOND, id="GPS9, no satellite at first"),
        pytest.param([gps5(BERLIN, dop=9999), gps5(BERLIN)], SECOND, id="a bad place at first"),
        pytest.param(
            [motion(2, 0, 0, 0, form="3f"), motion(5, *BERLIN, 34, form="3d")], "", id="camm, places"
        ),
        pytest.param(
            [motion(6, 1366979400 + 18, 3, *BERLIN, *[0.0] * 7, form="di2d7f")], FIRST, id="camm, with times"
        ),
    ],
)
def test_a_film_was_taken_where_and_when_its_camera_measured_it(
    film: Path, packets: list[bytes], taken: str
) -> None:
    """Whatever the stream is called; the account says that it is read."""
    facts = read_facts(with_data_track(film, packets))
    capture = facts.capture
    assert (capture.latitude, capture.longitude) == pytest.approx(BERLIN, abs=1e-6)
    assert (capture.taken, capture.source) == (taken, "satellites" if taken else "")
    assert [one.held_as for one in facts.holdings] == ["film", "measurements"]


def test_a_camera_is_named_and_shows_its_zone(film: Path) -> None:
    """A GoPro writes its clock as universal time: by satellites it is two hours ahead of that."""
    tags = {"creation_time": "2023-05-01T14:30:10.000000Z"}
    clocked = make_film(film.with_name("GX020123.mp4"), Pictures(5.0), tags=tags)
    capture = read_facts(with_data_track(clocked, [gps5(BERLIN)])).capture
    assert capture == Capture(
        "2023-05-01T14:30:00+02:00", "satellites", pytest.approx(BERLIN[0]), pytest.approx(BERLIN[1]),
        "GoPro", "Hero9 Black",
    )  # fmt: skip


@pytest.mark.parametrize(
    "packets",
    [
        [b"DEVC\0" + b"\xff" * 100], [b"DEVC\0\1\0\0" * 3], [gps5(BERLIN)[:60]], [nest("DEVC", nest("STRM"))],
        [gps5((91.0, 13.4), time=b"never")], [gps5(BERLIN, time=b"999999999999.999", fix=0)], [b"\0"],
        [motion(6, 0, 0, *BERLIN, *[0.0] * 7, form="di2d7f")], [motion(5, float("nan"), 0, 0, form="3d")],
    ],
)  # fmt: skip
def test_what_measures_nothing_says_nothing(film: Path, packets: list[bytes]) -> None:
    capture = read_facts(with_data_track(film, packets)).capture
    assert (capture.latitude, capture.longitude, capture.taken) == (None, None, "")


@pytest.mark.parametrize(
    ("packets", "held_as"), [([b"\1\2\3\4" * 20] * 5, "data"), ([UNSEEN] * 3, "measurements")]
)
def test_streams_that_nobody_knows_are_in_the_account(film: Path, packets: list[bytes], held_as: str) -> None:
    """One that is read and saw no satellite is read all the same."""
    (_, held) = read_facts(with_data_track(film, packets)).holdings
    assert (held.held_as, "GoPro MET" in held.about) == (held_as, True)


def test_a_deep_nest_and_a_null_scale_end(film: Path) -> None:
    """Neither the depth of a file nor its numbers decide how long it is read."""
    packet = gps5(BERLIN)
    for _ in range(60):
        packet = nest("DEVC", packet, packet) if len(packet) < 20_000 else nest("DEVC", packet)
    _gpmf(packet)
    null = gps5(BERLIN).replace(struct.pack(">i", 10_000_000), b"\0\0\0\0")
    assert _gpmf(null)[1] is None


@given(st.binary(max_size=300), st.binary(max_size=40))
def test_any_bytes_are_read_without_an_error(inside: bytes, tail: bytes) -> None:
    for packet in (
        b"DEVC\0" + inside,
        nest("DEVC", inside),
        nest("DEVC", nest("STRM", inside)),
        gps5(BERLIN) + tail,
    ):
        _gpmf(packet)
    _motion(struct.pack("<HH", 0, 6) + inside[:56].ljust(56, b"\0"))
    _motion(struct.pack("<HH", 0, 5) + inside[:24].ljust(24, b"\xff"))
