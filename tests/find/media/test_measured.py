"""Places and times that cameras measure: streams made byte by byte, sound ones and hostile ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camera_tracks import (
    BERLIN,
    block,
    dji,
    drone,
    gps5,
    gps9,
    motion,
    nest,
    sony,
    with_blocks,
    with_data_track,
)  # fmt: skip
from made_films import Data, Pictures, make_film
from moviola.media import read_facts, route_of
from moviola.media.dji import dji_of
from moviola.media.measurements import Reading, reader_of
from moviola.types import Capture


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
    read(packet)
    null = gps5(BERLIN).replace(struct.pack(">i", 10_000_000), b"\0\0\0\0")
    assert read(null)[1] is None


def read(packet: bytes) -> Reading:
    reader = reader_of(packet)
    assert reader is not None
    return reader(packet)


@given(st.binary(max_size=300), st.binary(max_size=40))
def test_any_bytes_are_read_without_an_error(inside: bytes, tail: bytes) -> None:
    for packet in (
        b"DEVC\0" + inside.ljust(4, b"\0"),
        nest("DEVC", inside),
        nest("DEVC", nest("STRM", inside)),
        gps5(BERLIN) + tail,
        sony(*BERLIN)[: 60 + len(inside)] + tail,
        sony(*BERLIN)[:48] + inside,
        drone(*BERLIN)[:17] + inside,
        struct.pack("<HH", 0, 6) + inside[:56].ljust(56, b"\0"),
        struct.pack("<HH", 0, 5) + inside[:24].ljust(24, b"\xff"),
    ):
        read(packet)


LISBON = (38.7, -9.14)


@pytest.mark.parametrize("place", [BERLIN, LISBON, (-33.86, 151.21)])
def test_each_format_says_the_same_place(place: tuple[float, float]) -> None:
    """South and west are below zero in all of them; the clock is that of half past twelve."""
    for packet in (gps5(place), gps9(*place), sony(*place), drone(*place)):
        time, found, _ = read(packet)
        assert found == pytest.approx(place, abs=1e-5)
        assert time is not None
        assert time.isoformat(timespec="minutes") == "2023-05-01T12:30+00:00"
    assert read(sony(*place, seen=b"V")) == (None, None, "")


def way(*places: tuple[float, float]) -> list[tuple[float, float]]:
    return [place for place in places for _ in range(2)]


@pytest.mark.parametrize("make", [gps5, lambda place: gps9(*place), lambda place: sony(*place)])
def test_a_film_has_the_way_of_its_camera(film: Path, make: Callable[[tuple[float, float]], bytes]) -> None:
    """Not its first place alone; a camera that stands is at one place."""
    facts = read_facts(with_data_track(film, [*map(make, way(BERLIN, LISBON, BERLIN))]))
    route = route_of(facts.fixes)
    assert [second for second, _, _ in route] == [0.0, 2.0, 4.0]
    assert [point[1:] for point in route] == [pytest.approx(p, abs=1e-5) for p in (BERLIN, LISBON, BERLIN)]


@pytest.mark.parametrize(
    ("model", "way", "units"),
    [("Mini4_Pro", (3, 4), None), ("AVATA2", (4, 4), None), ("ac204", (4, 2), 0), ("wm265e", (3, 4), 1)],
)
def test_cameras_of_dji_have_their_way_in_a_track(
    film: Path, model: str, way: tuple[int, int], units: int | None
) -> None:
    """The first packet alone names the model, and whether it is in degrees depends on it; they were data."""
    packets = [
        dji((0.0, 0.0), model, way, units),
        *(dji(one, "", way, units) for one in (BERLIN, BERLIN, LISBON)),
    ]
    facts = read_facts(with_data_track(film, packets))
    assert [one.held_as for one in facts.holdings] == ["film", "measurements"]
    assert [(one.time, one.place) for one in facts.fixes] == [
        (1.0, pytest.approx(BERLIN)), (2.0, pytest.approx(BERLIN)), (3.0, pytest.approx(LISBON)),
    ]  # fmt: skip
    assert (facts.capture.latitude, facts.capture.longitude) == pytest.approx(BERLIN)


def test_models_of_dji_that_nobody_knows_are_in_the_account(film: Path) -> None:
    """Where a place lies depends on the model: a guess would be anywhere."""
    facts = read_facts(with_data_track(film, [dji(BERLIN, "model9"), dji(BERLIN), dji(BERLIN)]))
    assert [one.held_as for one in facts.holdings] == ["film", "data"] and facts.fixes == ()


@given(st.binary(max_size=60), st.integers(0, 90), st.integers(0, 60))
def test_damaged_packets_of_dji_say_nothing_wrong(noise: bytes, at: int, gone: int) -> None:
    whole = dji(BERLIN, "Air3")
    reader = dji_of(whole)
    assert reader is not None and reader(whole)[1] == pytest.approx(BERLIN)
    _, place, _ = reader(whole[:at] + noise + whole[at + gone :])
    assert place is None or (abs(place[0]) <= 90 and abs(place[1]) <= 180)


def test_a_drone_has_its_way_in_a_transport_stream(tmp_path: Path) -> None:
    packets = [drone(*place) for place in way(BERLIN, LISBON)]
    facts = read_facts(make_film(tmp_path / "drone.ts", Pictures(4.0), Data(packets)))
    assert [round(second) for second, _, _ in route_of(facts.fixes)] == [0, 2]
    assert (facts.capture.taken, facts.capture.source) == (FIRST, "satellites")
    assert [one.held_as for one in facts.holdings] == ["film", "measurements"]


@pytest.mark.parametrize(("begins", "year"), [(48, 23), (16, 23), (48, 2023)])
def test_boxes_of_dash_cameras(film: Path, begins: int, year: int) -> None:
    """Wherever the record begins in its block, and before satellites are seen; the clock is a local one."""
    film = film.rename(film.with_name("drive.mp4"))
    blocks = [
        block(place, at, begins=begins, year=year) for at, place in enumerate([None, BERLIN, BERLIN, LISBON])
    ]
    facts = read_facts(with_blocks(film, blocks))
    assert [second for second, _, _ in route_of(facts.fixes)] == [1.0, 3.0]
    capture = facts.capture
    assert (capture.latitude, capture.longitude) == pytest.approx(BERLIN, abs=1e-5)
    assert (capture.taken, capture.source) == ("2023-05-01T14:30:00", "tags")
    assert [one.held_as for one in facts.holdings] == ["film", "measurements"]


def test_boxes_that_cannot_be_read_are_in_the_account(film: Path) -> None:
    """Scrambled ones of other makers, a table that points anywhere, a table that is cut off."""
    blocks = [block(BERLIN, 0).replace(b"GPS ", b"SPG ")] * 2
    (_, held) = read_facts(with_blocks(film, blocks)).holdings
    assert (held.held_as, held.stream) == ("data", None)
    content = film.read_bytes()
    film.write_bytes(content[:-9] + b"\xff" * 9)
    assert read_facts(film).fixes == ()
