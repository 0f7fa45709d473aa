"""The refinement that needs no training, on curves whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.refine import CurveRefiner, EncodedQuery, Footage, Window
from moviola.types import Proposal, Span

QUERY = EncodedQuery(np.array([1.0, 0.0], np.float32))


def frames_with(similarities: NDArray[np.float64]) -> NDArray[np.float32]:
    """Unit vectors with these cosines to the query."""
    return np.stack([similarities, np.sqrt(1 - similarities**2)], axis=1).astype(np.float32)


def window(similarities: list[float], span: Span) -> Window:
    video = Footage(3 * frames_with(np.array(similarities)), 1.0, float(len(similarities)))
    return Window(Proposal("v", span, 0.5, 1), video)


def test_a_plateau_is_found_to_the_second() -> None:
    curve = [0.1] * 8 + [0.8] * 6 + [0.1] * 10
    (refined,) = CurveRefiner().refine(QUERY, [window(curve, Span(8, 12))])
    assert (refined.span.start, refined.span.end) == (8, 14)


def test_times_count_from_the_video() -> None:
    curve = [0.9] * 95 + [0.1] * 13 + [0.8] * 6 + [0.1] * 10
    (refined,) = CurveRefiner().refine(QUERY, [window(curve, Span(108, 112))])
    assert (refined.span.start, refined.span.end) == (108, 114)


def test_a_frame_of_zeros_is_like_nothing() -> None:
    case = window([0.1] * 4 + [0.8] * 4 + [0.1] * 4, Span(4, 8))
    case.footage.frames[0] = 0
    (refined,) = CurveRefiner().refine(QUERY, [case])
    assert (refined.span.start, refined.span.end) == (4, 8)


def test_a_short_dip_is_bridged() -> None:
    curve = [0.1] * 6 + [0.8] * 4 + [0.3] + [0.8] * 4 + [0.1] * 6
    (refined,) = CurveRefiner().refine(QUERY, [window(curve, Span(6, 15))])
    assert (refined.span.start, refined.span.end) == (6, 15)


def test_the_context_is_not_what_was_proposed() -> None:
    """The threshold comes from the proposal, not from something better far away in the padding."""
    curve = [0.1] * 6 + [0.5] * 4 + [0.1] * 6
    (refined,) = CurveRefiner().refine(QUERY, [window(curve, Span(6, 10))])
    assert refined.span.start < 10 and refined.span.end > 6


def test_a_better_curve_scores_higher() -> None:
    span = Span(4, 8)
    low, high = ([0.1] * 4 + [level] * 4 + [0.1] * 4 for level in (0.4, 0.7))
    refined = CurveRefiner().refine(QUERY, [window(low, span), window(high, span)])
    assert refined[0].score < refined[1].score


@settings(deadline=None)
@given(
    curve=st.lists(st.floats(-1, 1), min_size=1, max_size=60),
    first=st.integers(0, 50),
    length=st.integers(1, 12),
    before=st.floats(0, 5),
    after=st.floats(0, 5),
)
def test_any_curve_gives_a_span_inside_the_video(
    curve: list[float], first: int, length: int, before: float, after: float
) -> None:
    first = min(first, len(curve) - 1)
    case = window(curve, Span(first, first + length))
    (refined,) = CurveRefiner(before=before, after=after).refine(QUERY, [case])
    assert 0 <= refined.span.start < refined.span.end <= len(curve) + 1e-9
    assert np.isfinite(refined.score)


@pytest.mark.parametrize("count", [1, 2])
def test_very_short_videos(count: int) -> None:
    (refined,) = CurveRefiner().refine(QUERY, [window([0.5] * count, Span(0, count))])
    assert refined.span.end <= count
