"""Searching stretches of videos, and how moments stand, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures
from moviola.features.shards import halves
from moviola.retrieval import MeanPooling, Proposals, Retrieval, Scope, segment_index

SEGMENT = 4


class Rows:
    """Features in memory."""

    def __init__(self, arrays: list[NDArray[np.float32]]) -> None:
        self.arrays, self.dim = arrays, arrays[0].shape[1]

    def read(self, video: int) -> NDArray[np.float16]:
        return halves(self.arrays[video], "video")

    def select(self, videos: list[int]) -> Rows:
        return Rows([self.arrays[video] for video in videos])


@pytest.fixture(scope="module")
def retrieval() -> Retrieval:
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=(count, 16)).astype(np.float32) for count in (26, 17, 9, 40)]
    counts = np.array([len(rows) for rows in arrays])
    features = VideoFeatures(("a", "b", "c", "d"), counts.astype(float), 1.0, counts, Rows(arrays))
    return Retrieval(features, segment_index(MeanPooling(), features, SEGMENT), MeanPooling(), None, SEGMENT)


@pytest.fixture(scope="module")
def queries() -> QueryFeatures:
    rows = np.random.default_rng(1).normal(size=(3, 16))
    return QueryFeatures.of(["0", "1", "2"], ["x", "y", "z"], list(rows))


def placed(retrieval: Retrieval, queries: QueryFeatures, scope: Scope | None) -> list[list[tuple[int, int]]]:
    hits = retrieval.hits(queries, within=scope)
    return [
        list(zip(v, p, strict=True)) for v, p in zip(hits.video.tolist(), hits.position.tolist(), strict=True)
    ]


def test_stretches_against_all_hits(retrieval: Retrieval, queries: QueryFeatures) -> None:
    """A segment that ends where a stretch begins, or begins where it ends, is outside."""
    scope = Scope(np.array([0, 3]), np.array([5.0, 12.0]), np.array([12.0, 16.5]))
    stretch = {0: (5.0, 12.0), 3: (12.0, 16.5)}
    expected = [
        [
            (video, position)
            for video, position in hits
            if video in stretch
            and position * SEGMENT < stretch[video][1]
            and (position + 1) * SEGMENT > stretch[video][0]
        ]
        for hits in placed(retrieval, queries, None)
    ]
    assert placed(retrieval, queries, scope) == expected
    assert {(0, 1), (0, 2), (3, 3), (3, 4)} == set(expected[0])


def test_whole_videos_and_none(retrieval: Retrieval, queries: QueryFeatures) -> None:
    everything = Scope.whole(np.arange(4))
    assert placed(retrieval, queries, everything) == placed(retrieval, queries, None)
    assert placed(retrieval, queries, Scope.whole(np.empty(0, np.int64))) == [[], [], []]


def test_equal_moments_are_in_the_order_of_videos_and_times(
    retrieval: Retrieval, queries: QueryFeatures
) -> None:
    """Of equal scores the earlier video is first, then the earlier moment, in whatever order they came."""
    order = np.random.default_rng(2).permutation(8)
    video, start = np.repeat([0, 3], 4)[order], np.tile([0.0, 4.0, 8.0, 12.0], 2)[order]
    score = np.full(8, 0.5, np.float32)
    proposals = Proposals.of_columns(np.zeros(8, np.int64), video, start, start + 4, score, queries=1)
    moments = retrieval.moments(queries.select([0]), proposals, scored=False)
    assert moments.video.tolist() == [0] * 4 + [3] * 4
    assert moments.start.tolist() == [0.0, 4.0, 8.0, 12.0] * 2


def test_depth(retrieval: Retrieval, queries: QueryFeatures) -> None:
    every = placed(retrieval, queries, None)
    hits = retrieval.hits(queries, segments=3)
    assert hits.video.tolist() == [[video for video, _ in own[:3]] for own in every]


def test_standing_against_its_definition(retrieval: Retrieval, queries: QueryFeatures) -> None:
    vector = retrieval.vectors(queries)[0]
    video = np.array([0, 0, 1, 2, 3])
    start = np.array([0.0, 7.0, 16.2, 8.5, 9.9])
    end = np.array([26.0, 12.0, 17.0, 9.0, 10.1])
    best = []
    for place, begin, stop in zip(video.tolist(), start.tolist(), end.tolist(), strict=True):
        cosines = MeanPooling().segments(retrieval.features.read(place), SEGMENT) @ vector
        middles = np.arange(len(cosines)) * SEGMENT + SEGMENT / 2
        inside = cosines[(middles >= begin) & (middles <= stop)]
        best.append(inside.max() if len(inside) else cosines[int((begin + stop) / 2 // SEGMENT)])
    expected = retrieval.cosines.segment_chance(vector).standing(np.array(best))
    found = retrieval.cosines.standing(vector, video, start, end)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert len(retrieval.cosines.standing(vector, video[:0], start[:0], end[:0])) == 0


@pytest.mark.parametrize("at_once", [4096, 2])
def test_cosines_with_segments_in_any_order(
    retrieval: Retrieval, queries: QueryFeatures, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole segments, a short last one, one that is given twice."""
    monkeypatch.setattr("moviola.retrieval.cosines._COMPARED_AT_ONCE", at_once)
    vectors = retrieval.vectors(queries)
    video, position = np.array([[3, 0, 1], [0, 3, 2]]), np.array([[9, 2, 0], [6, 9, 1]])
    expected = [
        [MeanPooling().segments(retrieval.features.read(place), SEGMENT)[at] @ vectors.T for place, at in row]
        for row in np.stack([video, position], axis=2).tolist()
    ]
    found = retrieval.cosines.of_segments(vectors, video, position)
    np.testing.assert_allclose(found, np.moveaxis(expected, 2, 0), atol=1e-6)
