"""Frames and timecodes at all rates, drop-frame at its boundaries, spans that become frames."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue
from moviola.export.timebase import STANDARD_RATES, Timebase, nominal_rate, parse_rate, sequence_rate
from moviola.types import Span
from numbered import NTSC, NTSC_FAST, NTSC_FILM

COUNTINGS = [
    *(Timebase(rate) for rate in STANDARD_RATES),
    Timebase(NTSC, True),
    Timebase(NTSC_FAST, True),
    Timebase(Fraction(48)),
    Timebase(Fraction(25, 2)),
    Timebase(Fraction(10)),
]


def day(timebase: Timebase) -> int:
    """Frames in 24 hours of timecode."""
    dropped = 6 * 9 * 24 * (timebase.base // 15) if timebase.drop_frame else 0
    return timebase.base * 86_400 - dropped


@given(st.sampled_from(COUNTINGS), st.integers(0, 10**9))
def test_every_frame_has_one_label(timebase: Timebase, frame: int) -> None:
    frame %= day(timebase)
    label = timebase.timecode(frame)
    assert timebase.frame_of(label) == frame
    assert (label[-3] == ";") == timebase.drop_frame
    assert timebase.timecode(frame + day(timebase)) == label


@given(st.sampled_from([timebase for timebase in COUNTINGS if timebase.drop_frame]), st.integers(0, 10**9))
def test_drop_frame_keeps_to_the_clock(timebase: Timebase, frame: int) -> None:
    """SMPTE ST 12-1, 5.2.2: within 2 frames of 30 inside ten minutes, and exact to a day's drift of 86 ms."""
    frame %= day(timebase)
    hours, minutes, rest = timebase.timecode(frame).replace(";", ":").split(":", 2)
    seconds, frames = map(int, rest.split(":"))
    said = int(hours) * 3600 + int(minutes) * 60 + seconds + Fraction(frames, timebase.base)
    assert abs(said - timebase.seconds(frame)) < Fraction(16, 100)


@pytest.mark.parametrize(
    ("rate", "frame", "label"),
    [
        (NTSC, 1799, "00:00:59;29"),
        (NTSC, 1800, "00:01:00;02"),
        (NTSC, 17_981, "00:09:59;29"),
        (NTSC, 17_982, "00:10:00;00"),
        (NTSC, 107_892, "01:00:00;00"),
        (NTSC_FAST, 3599, "00:00:59;59"),
        (NTSC_FAST, 3600, "00:01:00;04"),
        (NTSC_FAST, 35_964, "00:10:00;00"),
    ],
)
def test_numbers_that_drop_frame_leaves_out(rate: Fraction, frame: int, label: str) -> None:
    assert Timebase(rate, True).timecode(frame) == label


@pytest.mark.parametrize(
    ("timebase", "wrong"),
    [
        (Timebase(NTSC, True), "00:01:00;00"),
        (Timebase(NTSC, True), "00:11:00:01"),
        (Timebase(NTSC_FAST, True), "00:01:00;03"),
        (Timebase(NTSC), "00:00:00;05"),
        (Timebase(Fraction(25)), "00:00:00:25"),
        (Timebase(Fraction(25)), "00:60:00:00"),
        (Timebase(Fraction(25)), "24:00:00:00"),
        (Timebase(Fraction(25)), "1:00:00:00"),
    ],
)
def test_labels_that_do_not_exist(timebase: Timebase, wrong: str) -> None:
    with pytest.raises(InvalidValue, match="timecode"):
        timebase.frame_of(wrong)


def test_a_thousand_frames_a_second_have_labels_too() -> None:
    """WebM without a rate of its own is said to have as many as its clock has ticks."""
    fast, usual = Timebase(Fraction(1000)), Timebase(Fraction(25))
    assert fast.timecode(3_661_500) == "01:01:01:500"
    assert usual.nearest_label(fast.timecode(3_661_500), fast.base) == usual.frame_of("01:01:01:12")


@pytest.mark.parametrize("rate", [NTSC_FILM, Fraction(24), Fraction(25), Fraction(30), Fraction(60)])
def test_drop_frame_exists_at_29_97_and_its_multiples_only(rate: Fraction) -> None:
    with pytest.raises(InvalidValue, match=r"only 29\.97 and 59\.94"):
        Timebase(rate, True)


@given(
    st.sampled_from(COUNTINGS),
    st.floats(0, 1e5, allow_nan=False),
    st.floats(1e-6, 1e3, allow_nan=False),
)
def test_spans_are_never_empty_and_hold_what_they_touch(
    timebase: Timebase, start: float, length: float
) -> None:
    if start + length <= start:
        return
    span = Span(start, start + length)
    first, end = timebase.frames(span)
    assert end > first >= 0
    # The frame at the start is on screen there, a sixteenth of a frame granted.
    assert timebase.seconds(first) <= Fraction(start) + Fraction(1, 16) / timebase.rate
    assert timebase.seconds(end) >= Fraction(span.end) - Fraction(1, 16) / timebase.rate
    assert timebase.seconds(end - first) < Fraction(length) + Fraction(2125, 1000) / timebase.rate


@given(st.sampled_from(COUNTINGS), st.integers(0, 10**6), st.integers(1, 10**4), st.floats(-4e-4, 4e-4))
def test_rounded_times_of_frames_are_these_frames(
    timebase: Timebase, first: int, count: int, error: float
) -> None:
    start, end = (float(timebase.seconds(frame)) + error for frame in (first, first + count))
    assert timebase.frames(Span(max(0.0, start), end)) == (first, first + count)


@pytest.mark.parametrize(
    ("average", "base", "rate"),
    [
        (NTSC, NTSC, NTSC),
        (Fraction(2997, 100), Fraction(2997, 100), NTSC),
        (Fraction(2987, 100), Fraction(30), Fraction(30)),
        (Fraction(2987, 100), Fraction(90_000), NTSC),
        (Fraction(25), Fraction(50), Fraction(25)),
        (Fraction(179, 6), Fraction(179, 6), Fraction(179, 6)),
        (Fraction(25, 2), Fraction(25, 2), Fraction(25, 2)),
        (Fraction(120), Fraction(120), Fraction(120)),
        (Fraction(17), None, Fraction(17)),
        (None, None, Fraction(25)),
    ],
)
def test_the_rate_that_a_file_was_made_for(average: Fraction, base: Fraction, rate: Fraction) -> None:
    assert nominal_rate(average, base) == rate


@pytest.mark.parametrize(
    ("rates", "rate"),
    [
        ([25, NTSC, NTSC], NTSC),
        ([25, NTSC], Fraction(25)),
        ([Fraction(25, 2)], Fraction(25)),
        ([10], Fraction(30)),
        ([15], Fraction(30)),
        ([NTSC_FAST * 2], NTSC_FAST),
        ([240], Fraction(60)),
        ([48], Fraction(24)),
        ([18], Fraction(24)),
        ([Fraction(179, 6)], Fraction(30)),
        ([90], Fraction(30)),
        ([Fraction(777, 10)], Fraction(60)),
        ([], Fraction(25)),
    ],
)
def test_the_rate_of_a_timeline(rates: list[Fraction], rate: Fraction) -> None:
    assert sequence_rate(map(Fraction, rates)) == rate


def test_rates_as_people_write_them() -> None:
    said = {
        "25": 25, "23.976": NTSC_FILM, "23.98": NTSC_FILM, "29.97": NTSC, "59.94": NTSC_FAST,
        "12.5": Fraction(25, 2), "30000/1001": NTSC, "29.97002997002997": NTSC,
    }  # fmt: skip
    assert {text: parse_rate(text) for text in said} == said
    for wrong in (
        "",
        "fast",
        "0",
        "-25",
        "1/0",
        "nan",
        "inf",
        "99999",
        "0.0001",
        "1e-999999999",
        "1E999999999",
    ):
        with pytest.raises(InvalidValue, match="rate"):
            parse_rate(wrong)
