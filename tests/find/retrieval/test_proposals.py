"""Properties of merging that hold for any hits."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue
from moviola.features import VideoFeatures
from moviola.retrieval import Hits, Proposals, propose
from moviola.retrieval.proposals import merged_apart

Place = tuple[int, int]
"""A video, and the position of a segment of 4 s in it."""

VIDEOS, SECONDS = 3, 4.0
places = st.lists(st.tuples(st.integers(0, VIDEOS - 1), st.integers(0, 40)), unique=True, max_size=60)


def videos() -> VideoFeatures:
    """Three videos of 41 segments, of which nothing but times is asked."""
    counts = np.full(VIDEOS, 41 * 4)
    return VideoFeatures(("a", "b", "c"), counts.astype(np.float64), 1.0, counts, cast("Any", None))


def hits(*queries: list[Place]) -> Hits:
    """Best first, scores falling; a query with fewer hits than another has empty places."""
    depth = max(map(len, queries))
    table = np.zeros((2, len(queries), depth), dtype=np.int64)
    score = np.full((len(queries), depth), -np.inf, dtype=np.float32)
    for query, own in enumerate(queries):
        if own:
            table[:, query, : len(own)] = np.array(own).T
        score[query, : len(own)] = 1 - np.arange(len(own)) / 100
    return Hits(table[0], table[1], score, depth)


def proposed(found: list[Place], **how: Any) -> Proposals:
    return propose(hits(found), videos(), 4, **how)


def holding(proposals: Proposals, place: Place) -> np.ndarray:
    """Rows of the proposals that hold a segment."""
    middle = SECONDS * place[1] + 2
    there = (proposals.video == place[0]) & (proposals.start < middle) & (middle < proposals.end)
    return np.flatnonzero(there)


@given(places, st.integers(0, 3), st.sampled_from([0, 0.3, 1.0]))
def test_every_hit_is_in_exactly_one_proposal(found: list[Place], gap: int, adaptive_gap: float) -> None:
    proposals = proposed(found, gap=gap, adaptive_gap=adaptive_gap)
    assert len(proposals) == 1
    for place in found:
        assert len(holding(proposals, place)) == 1


@given(places)
def test_without_gaps_a_proposal_is_as_long_as_its_hits(found: list[Place]) -> None:
    proposals = proposed(found)
    assert (proposals.end - proposals.start).sum() == pytest.approx(SECONDS * len(found))


@given(places, st.integers(0, 3))
def test_rank_and_score_are_those_of_the_best_hit(found: list[Place], gap: int) -> None:
    proposals = proposed(found, gap=gap)
    assert proposals.rank.tolist() == sorted(proposals.rank.tolist())
    for row, rank in enumerate(proposals.rank.tolist()):
        assert proposals.score[row] == pytest.approx(1 - (rank - 1) / 100)
        assert row in holding(proposals, found[rank - 1])


@given(places, st.integers(0, 3))
def test_a_larger_gap_never_gives_more_proposals(found: list[Place], gap: int) -> None:
    assert len(proposed(found, gap=gap + 1).video) <= len(proposed(found, gap=gap).video)


@given(places)
def test_an_adaptive_gap_joins_what_is_near_for_its_length(found: list[Place]) -> None:
    assert len(proposed(found, adaptive_gap=100.0).video) == len({video for video, _ in found})


@pytest.mark.parametrize("options", [{"gap": -1}, {"adaptive_gap": -0.1}, {"adaptive_gap": float("nan")}])
def test_a_negative_gap_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match="negative"):
        proposed([(0, 0)], **options)


@given(places, places)
def test_queries_do_not_see_each_other(one: list[Place], other: list[Place]) -> None:
    together = propose(hits(one, other), videos(), 4)
    for query, own in enumerate((one, other)):
        alone, part = proposed(own), together.of(query)
        for name in ("offsets", "video", "start", "end", "score", "rank"):
            np.testing.assert_array_equal(getattr(part, name), getattr(alone, name))


@given(places, st.integers(0, 60))
def test_the_best_hits_merge_with_each_other_alone(found: list[Place], apart: int) -> None:
    """As if the best hits and the others were two queries."""
    proposals = proposed(found, apart=apart)
    expected = {
        (int(p.video[row]), float(p.start[row]), float(p.end[row]), int(p.rank[row]) + first)
        for first, p in ((0, proposed(found[:apart])), (len(found[:apart]), proposed(found[apart:])))
        for row in range(len(p.video))
    }
    columns = (proposals.video, proposals.start, proposals.end, proposals.rank)
    assert set(zip(*(column.tolist() for column in columns), strict=True)) == expected
    assert proposals.rank.tolist() == sorted(proposals.rank.tolist())


def test_from_20000_segments_on_all_200_merge_as_in_the_paper() -> None:
    assert merged_apart(20_000) == 200
    assert merged_apart(80) == merged_apart(1_000) == merged_apart(2_000) == 20


def test_of_few_segments_a_quarter_merges() -> None:
    assert [merged_apart(segments) for segments in (0, 1, 5, 20, 40)] == [1, 1, 1, 5, 10]
