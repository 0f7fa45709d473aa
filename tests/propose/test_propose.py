"""Properties of merging that hold for any hits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue
from moviola.propose import propose
from moviola.types import Hit, Segment, Span

places = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), unique=True, max_size=60)


def hits(where: list[tuple[str, int]]) -> list[Hit]:
    """Best first, scores falling."""
    return [
        Hit(Segment(video, position, Span(4.0 * position, 4.0 * position + 4)), 1 - rank / 100)
        for rank, (video, position) in enumerate(where)
    ]


@given(places, st.integers(0, 3), st.floats(0, 1))
def test_every_hit_is_in_exactly_one_proposal(
    where: list[tuple[str, int]], gap: int, adaptive: float
) -> None:
    proposals = propose(hits(where), gap=gap, adaptive_gap=adaptive)
    for video, position in where:
        middle = 4.0 * position + 2
        holding = [p for p in proposals if p.video_id == video and p.span.start < middle < p.span.end]
        assert len(holding) == 1


@given(places)
def test_without_gaps_a_proposal_is_as_long_as_its_hits(where: list[tuple[str, int]]) -> None:
    assert sum(p.span.duration for p in propose(hits(where))) == pytest.approx(4.0 * len(where))


@given(places, st.integers(0, 3))
def test_rank_and_score_are_those_of_the_best_hit(where: list[tuple[str, int]], gap: int) -> None:
    proposals = propose(hits(where), gap=gap)
    assert [p.rank for p in proposals] == sorted(p.rank for p in proposals)
    for proposal in proposals:
        assert proposal.score == pytest.approx(1 - (proposal.rank - 1) / 100)
        video, position = where[proposal.rank - 1]
        assert video == proposal.video_id
        assert proposal.span.start <= 4.0 * position < proposal.span.end


@given(places, st.integers(0, 3))
def test_a_larger_gap_never_gives_more_proposals(where: list[tuple[str, int]], gap: int) -> None:
    assert len(propose(hits(where), gap=gap + 1)) <= len(propose(hits(where), gap=gap))


def test_a_negative_gap_is_refused() -> None:
    with pytest.raises(InvalidValue, match="negative"):
        propose([], gap=-1)
