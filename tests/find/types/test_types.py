"""Values refuse what makes no sense; the intersection over union is a proper one."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue, MoviolaError
from moviola.types import FrameSize, Moment, Reason, Span, Video, shown_score


@st.composite
def spans(draw: st.DrawFn) -> Span:
    start = draw(st.integers(0, 399))
    return Span(start / 4, draw(st.integers(start + 1, 400)) / 4)


@given(spans(), spans())
def test_iou_is_symmetric_bounded_and_exact(a: Span, b: Span) -> None:
    assert a.iou(b) == b.iou(a)
    assert 0 <= a.iou(b) <= 1
    assert a.iou(a) == 1
    bounds = [Fraction(x) for x in (a.start, a.end, b.start, b.end)]
    shared = max(Fraction(0), min(bounds[1], bounds[3]) - max(bounds[0], bounds[2]))
    union = bounds[1] - bounds[0] + bounds[3] - bounds[2] - shared
    assert a.iou(b) == pytest.approx(float(shared / union), abs=1e-12)


@given(spans(), st.floats(0, 20), st.floats(0, 20))
def test_padding_stays_inside_the_video(span: Span, before: float, after: float) -> None:
    padded = span.padded(before, after, duration=100.0)
    assert 0 <= padded.start <= span.start
    assert span.end <= padded.end <= 100


@pytest.mark.parametrize(
    ("start", "end"), [(1, 1), (2, 1), (-1, 3), (math.nan, 1), (0, math.nan), (0, math.inf)]
)
def test_impossible_spans_are_refused(start: float, end: float) -> None:
    with pytest.raises(InvalidValue, match=r"span \["):
        Span(start, end)


@pytest.mark.parametrize("duration", [0, -1, math.nan, math.inf])
def test_impossible_durations_are_refused(duration: float) -> None:
    with pytest.raises(InvalidValue, match="clip"):
        Video("clip", duration)


@pytest.mark.parametrize("duration", ["b", None, 10**400])
def test_a_duration_is_a_number(duration: float) -> None:
    with pytest.raises(InvalidValue, match=r"clip: duration .* must be finite seconds > 0"):
        Video("clip", duration)


def test_frame_sizes_are_checked() -> None:
    with pytest.raises(InvalidValue, match="at least 1 pixel"):
        FrameSize(0, 10, fit="stretch")
    with pytest.raises(InvalidValue, match="smaller than the crop"):
        FrameSize(224, 224, shortest_edge=200)


def test_a_moment_knows_its_span() -> None:
    assert Moment("v", 1.0, 3.5, 0.5, 1).span == Span(1.0, 3.5)


def test_a_reason_as_text() -> None:
    assert str(Reason("said", 0.64, ("door", "red"))) == "said 0.64 (door, red)"
    assert str(Reason("seen", 0.875)) == "seen 0.87"


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        (0.2499999, "0.249"),
        (0.25, "0.250"),
        (0.569, "0.569"),
        (0.9999, "0.999"),
        (1.0, "1.000"),
        (0.0, "0.000"),
    ],
)
def test_a_shown_score_is_rounded_down(score: float, shown: str) -> None:
    assert shown_score(score) == shown


def test_every_error_has_the_one_root() -> None:
    from moviola import errors

    for name in errors.__all__:
        assert issubclass(getattr(errors, name), MoviolaError)
