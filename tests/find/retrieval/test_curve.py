"""The refinement that needs no training, on curves whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures
from moviola.retrieval import CurveRefiner, Proposals
from moviola.retrieval.refiners import Refined
from moviola.types import Span

QUERY = QueryFeatures.of(["q"], ["query"], [np.array([1.0, 0.0], np.float32)])


def frames_with(similarities: NDArray[np.float64]) -> NDArray[np.float32]:
    """Unit vectors with these cosines to the query."""
    return np.stack([similarities, np.sqrt(1 - similarities**2)], axis=1).astype(np.float32)


@dataclass(frozen=True)
class Videos:
    """Videos in memory."""

    arrays: tuple[NDArray[np.float16], ...]
    dim: int = 2

    def read(self, video: int) -> NDArray[np.float16]:
        return self.arrays[video]

    def select(self, videos: Sequence[int]) -> Videos:
        return Videos(tuple(self.arrays[video] for video in videos))


def videos_of(*curves: list[float]) -> VideoFeatures:
    arrays = tuple((3 * frames_with(np.array(curve))).astype(np.float16) for curve in curves)
    counts = np.array([len(curve) for curve in curves])
    names = tuple(f"v{number}" for number in range(len(curves)))
    return VideoFeatures(names, counts.astype(np.float64), 1.0, counts, Videos(arrays))


def refine(
    features: VideoFeatures,
    *spans: Span,
    refiner: CurveRefiner = CurveRefiner(),  # noqa: B008 - frozen
) -> Refined:
    """A proposal in each video."""
    start, end = ([getattr(span, edge) for span in spans] for edge in ("start", "end"))
    rows = list(range(len(spans)))
    proposals = Proposals.of_columns([0] * len(rows), rows, start, end, [0.5] * len(rows), queries=1)
    return refiner.refine(QUERY, 0, features, proposals)


def refined_span(curve: list[float], span: Span) -> tuple[float, float]:
    found = refine(videos_of(curve), span)
    return float(found.start[0]), float(found.end[0])


def test_a_plateau_is_found_to_the_second() -> None:
    curve = [0.1] * 8 + [0.8] * 6 + [0.1] * 10
    assert refined_span(curve, Span(8, 12)) == (8, 14)


def test_a_last_tenth_of_a_second_has_a_second_before_it() -> None:
    """A film of 20.1 s had a moment of .1 s, which came first: its last picture alone shows it."""
    whole = videos_of([0.1] * 20 + [0.9])
    found = refine(replace(whole, durations=np.array([20.1])), Span(16, 20.1))
    assert (found.start[0], found.end[0]) == (pytest.approx(19.1), 20.1)


@pytest.mark.parametrize("similarity", [0.5, -0.3, 0.0])
def test_in_a_still_picture_the_proposal_stays(similarity: float) -> None:
    assert refined_span([similarity] * 60, Span(20, 24)) == (20, 24)
    assert refined_span([similarity] * 57 + [similarity - 0.2] * 3, Span(44, 52)) == (44, 52)


@pytest.mark.parametrize("rate", [3, 5, 10])
def test_the_proposal_stays_at_any_rate(rate: int) -> None:
    features = replace(videos_of([0.5] * 60), clip_seconds=1 / rate, durations=np.array([60 / rate]))
    for clip in range(0, 56, 4):
        span = Span(clip * features.clip_seconds, (clip + 4) * features.clip_seconds)
        found = refine(features, span)
        np.testing.assert_allclose((found.start[0], found.end[0]), (span.start, span.end))


def test_spans_behind_the_end_are_cut_to_the_video() -> None:
    features = replace(videos_of([0.5] * 14, [0.5] * 4), durations=np.array([10.0, 4.0]))
    start, end = features.clip_spans(np.array([0, 0, 1]), [12.0, 8.0, 0.0], [14.0, 12.0, 4.0])
    assert (start < end).all() and end.max() <= 10
    np.testing.assert_allclose(np.stack([start, end], 1), [(9.999, 10), (8, 10), (0, 4)])


def test_times_count_from_the_video() -> None:
    curve = [0.9] * 95 + [0.1] * 13 + [0.8] * 6 + [0.1] * 10
    assert refined_span(curve, Span(108, 112)) == (108, 114)


def test_a_frame_of_zeros_is_like_nothing() -> None:
    features = videos_of([0.1] * 4 + [0.8] * 4 + [0.1] * 4)
    features.visual.read(0)[0] = 0
    found = refine(features, Span(4, 8))
    assert (found.start[0], found.end[0]) == (4, 8)


def test_a_short_dip_is_bridged() -> None:
    curve = [0.1] * 6 + [0.8] * 4 + [0.3] + [0.8] * 4 + [0.1] * 6
    assert refined_span(curve, Span(6, 15)) == (6, 15)


def test_the_context_is_not_what_was_proposed() -> None:
    """The threshold comes from the proposal, not from something better far away in the padding."""
    curve = [0.1] * 6 + [0.5] * 4 + [0.1] * 6
    start, end = refined_span(curve, Span(6, 10))
    assert start < 10 and end > 6


def test_a_better_curve_scores_higher() -> None:
    span = Span(4, 8)
    low, high = ([0.1] * 4 + [level] * 4 + [0.1] * 4 for level in (0.4, 0.7))
    found = refine(videos_of(low, high), span, span)
    assert found.score[0] < found.score[1]


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
    widened = CurveRefiner(before=before, after=after)
    found = refine(videos_of(curve), Span(first, first + length), refiner=widened)
    assert 0 <= found.start[0] < found.end[0] <= len(curve) + 1e-9
    assert np.isfinite(found.score).all()


@pytest.mark.parametrize("count", [1, 2])
def test_very_short_videos(count: int) -> None:
    assert refined_span([0.5] * count, Span(0, count))[1] <= count
