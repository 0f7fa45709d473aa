"""Proposals snapped to shots, and what a shot scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures
from moviola.retrieval import CurveRefiner, Proposals, ShotRefiner
from moviola.retrieval.proposals import cut_at_shots
from moviola.retrieval.refiners.trained import Cuts, Decoded, ReelRefiner

QUERY = QueryFeatures.of(["q"], ["query"], [np.array([1.0, 0.0], np.float32)])


@dataclass(frozen=True)
class Rows:
    """Clips in memory whose cosines with the query are given."""

    curves: tuple[tuple[float, ...], ...]
    dim: int = 2

    def read(self, video: int) -> NDArray[np.float16]:
        similar = np.array(self.curves[video])
        return np.stack([similar, np.sqrt(1 - similar**2)], axis=1).astype(np.float16)

    def select(self, videos: object) -> Rows:
        raise NotImplementedError


def videos(*curves: list[float], starts: dict[int, list[float]] | None = None) -> VideoFeatures:
    counts = np.array([len(curve) for curve in curves])
    names = tuple(f"v{number}" for number in range(len(curves)))
    rows = Rows(tuple(tuple(curve) for curve in curves))
    features = VideoFeatures(names, counts.astype(np.float64), 1.0, counts, rows)
    known = starts
    if known is None:
        return features
    return replace(features, shots=lambda keys: [np.array(known.get(key, [])) for key in keys])


def proposals(*rows: tuple[int, float, float]) -> Proposals:
    video, start, end = zip(*rows, strict=True)
    return Proposals.of_columns([0] * len(rows), video, start, end, [0.5] * len(rows), queries=1)


def spans(found: Proposals) -> list[tuple[int, float, float]]:
    return list(zip(found.video.tolist(), found.start.tolist(), found.end.tolist(), strict=True))


def test_every_shot_that_is_touched_is_proposed_once() -> None:
    features = videos([0.1] * 20, starts={0: [0, 3.4, 6.0, 11.0]})
    found = cut_at_shots(proposals((0, 4, 8), (0, 0, 4)), features, 20)
    assert spans(found) == [(0, 3.4, 6.0), (0, 6.0, 11.0), (0, 0.0, 3.4)]
    assert found.rank.tolist() == [1, 1, 2] and found.offsets.tolist() == [0, 3]


def test_of_a_long_shot_what_the_proposal_covers() -> None:
    features = videos([0.1] * 60, starts={0: [0, 5.5]})
    assert spans(cut_at_shots(proposals((0, 4, 8), (0, 40, 44)), features, 20)) == [
        (0, 0.0, 5.5), (0, 5.5, 8.0), (0, 40.0, 44.0),
    ]  # fmt: skip


def test_videos_of_one_shot_keep_their_proposals() -> None:
    given_rows = [(0, 4.0, 8.0), (1, 0.0, 4.0), (0, 8.0, 12.0)]
    for starts in (None, {}, {0: [0.0]}):
        features = videos([0.1] * 12, [0.2] * 12, starts=starts)
        assert spans(cut_at_shots(proposals(*given_rows), features, 20)) == given_rows


@given(
    st.lists(st.floats(0.1, 59.0), unique=True, max_size=12),
    st.lists(st.tuples(st.floats(0, 55), st.floats(0.5, 30)), min_size=1, max_size=6),
    st.floats(1, 60),
)
def test_pieces_lie_in_one_shot_and_cover_the_proposals(
    cuts: list[float], windows: list[tuple[float, float]], longest: float
) -> None:
    edges = [0.0, *sorted(cuts), 60.0]
    features = videos([0.1] * 60, starts={0: edges[:-1]})
    whole = proposals(*((0, start, min(start + length, 60.0)) for start, length in windows))
    found = spans(cut_at_shots(whole, features, longest))
    if cuts:
        for _, start, end in found:
            assert any(opens <= start < end <= closes for opens, closes in pairwise(edges))
    for _, start, end in spans(whole):
        covered = sum(
            max(0.0, min(stop, closes, end) - max(first, opens, start))
            for opens, closes in pairwise(edges)
            for first, stop in {(f, s) for _, f, s in found if opens <= f < closes}
        )
        assert covered >= (end - start) * 0.999


def refined(
    features: VideoFeatures, *rows: tuple[int, float, float], **options: float
) -> list[tuple[float, ...]]:
    refiner = ShotRefiner(**options)  # type: ignore[arg-type]
    found = refiner.refine(QUERY, 0, features, proposals(*rows))
    return [tuple(np.round(row, 3)) for row in zip(found.start, found.end, found.score, strict=True)]


def test_a_shot_is_a_moment_and_scores_its_best_clips() -> None:
    curve = [0.0, 0.0, 0.9, 0.8, 0.1, 0.1, 0.7, 0.0, 0.0, 0.0]
    features = videos(curve, starts={0: [0, 1.5, 7.2]})
    assert refined(features, (0, 1.5, 7.2), best=3) == [(1.5, 7.2, 0.8)]
    assert refined(features, (0, 1.5, 7.2), best=1) == [(1.5, 7.2, 0.9)]
    assert refined(features, (0, 2.0, 4.0), best=3) == [(1.5, 7.2, 0.8)]


def test_a_shot_between_two_clips_scores_as_the_one_beside_it() -> None:
    features = videos([0.2, 0.3, 0.4, 0.5], starts={0: [0, 1.2, 1.6, 3.2]})
    assert refined(features, (0, 1.2, 1.6), (0, 3.2, 4.0)) == [(1.2, 1.6, 0.4), (3.2, 4.0, 0.5)]


def test_a_shot_has_the_clips_that_begin_in_it_at_any_rate() -> None:
    """At 3 clips a second, 5 / 3 s divided by the length of a clip is more than 5."""
    features = videos([0.1] * 5 + [0.9] + [0.2] * 6, starts={0: [0, 5 / 3]})
    features = replace(features, clip_seconds=1 / 3, durations=np.array([4.0]))
    assert refined(features, (0, 0.0, 5 / 3), (0, 5 / 3, 4.0)) == [(0.0, 1.667, 0.1), (1.667, 4.0, 0.55)]


def test_the_curve_decides_inside_a_long_shot() -> None:
    curve = [0.9] * 8 + [0.1] * 10 + [0.8] * 6 + [0.1] * 26
    features = videos(curve, starts={0: [0, 8.0]})
    ((start, end, _),) = refined(features, (0, 16.0, 20.0))
    assert (start, end) == (18.0, 24.0)
    ((start, end, _),) = refined(features, (0, 8.0, 12.0))
    assert start >= 8.0


def test_without_cuts_it_is_the_curve() -> None:
    generator = np.random.default_rng(0)
    curves = [generator.uniform(-0.9, 0.9, 40).tolist() for _ in range(3)]
    rows = [(place, float(start), float(start + 4)) for place in range(3) for start in (0, 12, 35)]
    curve = CurveRefiner(before=1, coarse_share=0.3)
    expected = curve.refine(QUERY, 0, videos(*curves), proposals(*rows))
    for starts in (None, {}, {0: [0.0], 1: [0.0], 2: [0.0]}):
        found = ShotRefiner(curve).refine(QUERY, 0, videos(*curves, starts=starts), proposals(*rows))
        for column in ("start", "end", "score"):
            np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))


@pytest.mark.parametrize("count", [0, 1])
def test_of_no_proposals_and_of_one(count: int) -> None:
    features = videos([0.1] * 10, starts={0: [0, 4.0]})
    empty = Proposals.of_columns(
        [0] * count, [0] * count, [0.0] * count, [4.0] * count, [0.5] * count, queries=1
    )
    assert len(ShotRefiner().refine(QUERY, 0, features, empty).start) == count
    assert len(cut_at_shots(empty, features, 20).video) == count


# ---- moments of trained refiners ---------------------------------------------------------------------------


def test_a_moment_begins_and_ends_at_the_nearest_cut() -> None:
    features = videos([0.1] * 20, [0.1] * 20, starts={0: [0, 2.4, 3.3, 3.6, 9.5, 11.45]})
    video = np.array([0, 0, 0, 0, 1])
    found = Cuts(features, video).moved(np.array([2.0, 3, 4, 0, 2]), np.array([11.0, 4, 9, 20, 11]))
    starts, ends = (column.tolist() for column in found)
    assert starts == [2.4, 3.3, 3.6, 0, 2]
    assert ends == [11.45, 3.6, 9, 20, 11]  # 9.5 belongs to the even clip, 10
    short = replace(videos([0.1] * 20, starts={0: [0, 19.2]}), durations=np.array([19.4]))
    found = Cuts(short, np.array([0])).moved(np.array([19.0]), np.array([19.4]))
    assert [column.tolist() for column in found] == [[19.2], [19.4]]


@given(
    st.lists(st.floats(0.1, 59.0), unique=True, max_size=40),
    st.lists(st.tuples(st.integers(0, 55), st.integers(1, 30)), max_size=6),
    st.sampled_from([0.5, 1.0, 1.5]),
)
def test_moving_to_cuts_against_brute_force(
    cuts: list[float], moments: list[tuple[int, int]], clip_seconds: float
) -> None:
    features = replace(
        videos([0.1] * 60, starts={0: [0.0, *(clip_seconds * cut for cut in sorted(cuts))]}),
        clip_seconds=clip_seconds, durations=np.array([60 * clip_seconds]),
    )  # fmt: skip
    start = clip_seconds * np.array([first for first, _ in moments], np.float64)
    end = np.minimum(start + clip_seconds * np.array([more for _, more in moments]), 60 * clip_seconds)
    found = Cuts(features, np.zeros(len(moments), np.int64)).moved(start, end)
    for before, after in zip((start, end), found, strict=True):
        for boundary, time in zip(before, after, strict=True):
            near = [clip_seconds * cut for cut in cuts if round(cut) == round(boundary / clip_seconds)]
            near = near if 0 < boundary < 60 * clip_seconds else []
            assert abs(time - boundary) == min((abs(cut - boundary) for cut in near), default=0)
    assert (found[0] < found[1]).all()


class Parts:
    """Parts of a Reel that reads cuts: the best span of a window is all of it."""

    settings = {"max_tokens": 4, "subtitle_size": 0, "cuts": True, "longest_span": 1}  # noqa: RUF012 - not changed

    def encode_clips(self, visual: NDArray[np.float32], subtitles: object) -> NDArray[np.float32]:
        return np.ones((len(visual), 3, 2), np.float32)

    def encode_query(self, tokens: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.ones((3, 2), np.float32)

    def best_spans(
        self, similarity: NDArray[np.float32], mask: NDArray[np.float32], cuts: NDArray[np.float32] | None
    ) -> Decoded:
        assert cuts is not None
        self.cuts = cuts
        last = mask.sum(axis=1).astype(np.int64) - 1
        return Decoded(similarity.sum(axis=(1, 2)), np.zeros_like(last), last)


@pytest.mark.parametrize(
    ("context", "given", "cuts", "found", "seen"),
    [
        (2.0, [(8, 12), (13, 28)], [6.4, 11.6], [(6.4, 14), (11, 30)], [[0, 0], [1, 1]]),
        # Of two clips each, so that both are decoded once more, with a clip on both sides.
        (0.0, [(8, 10), (13, 15)], [6.6, 15.6], [(6.6, 11), (12, 15.6)], [[0, 0]]),
    ],
)
def test_cuts_are_looked_up_once_for_a_model_and_for_its_times(
    context: float,
    given: list[tuple[int, int]],
    cuts: list[float],
    found: list[tuple[float, float]],
    seen: list[list[int]],
) -> None:
    looked_up: list[list[int]] = []
    features = videos([0.1] * 20, [0.1] * 30, starts={video: [0, cut] for video, cut in enumerate(cuts)})
    shots = features.shots
    assert shots is not None

    def counted(keys: Sequence[int]) -> list[NDArray[np.float64]]:
        looked_up.append(list(keys))
        return list(shots(keys))

    parts = Parts()
    refiner = ReelRefiner(parts, "r", context=context)
    own = proposals(*((video, *span) for video, span in enumerate(given)))
    refined = refiner.refine(QUERY, 0, replace(features, shots=counted), own)
    assert looked_up == [[0, 1]]
    assert list(zip(refined.start.tolist(), refined.end.tolist(), strict=True)) == found
    assert np.argwhere(parts.cuts).tolist() == seen
