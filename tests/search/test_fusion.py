"""Pictures and words together: spans, scores, limits, order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.search.found import Found
from moviola.search.fusion import fused
from moviola.types import Span


def found(row: int, start: float, end: float, score: float, source: str = "visual") -> Found:
    return Found(row, Span(start, end), score, source, "words" if source == "subtitle" else "")


def test_evidence_for_the_same_moment_adds_up() -> None:
    (moment,) = fused([found(1, 10, 20, 0.6)], [found(1, 15, 17, 0.5, "subtitle")])
    assert moment.source == "both"
    assert moment.score == pytest.approx(0.8)
    assert (moment.span, moment.snippet) == (Span(10, 20), "words")


def test_the_stronger_evidence_keeps_its_span() -> None:
    (moment,) = fused([found(1, 10, 20, 0.3)], [found(1, 15, 17, 0.5, "subtitle")])
    assert moment.span == Span(15, 17)


def test_other_times_and_videos_stay_apart() -> None:
    seen = [found(1, 10, 20, 0.6), found(2, 15, 17, 0.9)]
    moments = fused(seen, [found(1, 30, 31, 0.5, "subtitle")])
    assert [m.source for m in moments] == ["visual", "visual", "subtitle"]


scores = st.floats(0, 1)


@given(scores, scores)
def test_added_evidence_never_lowers_a_score(seen: float, heard: float) -> None:
    (moment,) = fused([found(1, 0, 2, seen)], [found(1, 1, 3, heard, "subtitle")])
    assert max(seen, heard) - 1e-12 <= moment.score <= 1


def test_evidence_of_one_kind_keeps_its_name() -> None:
    (moment,) = fused([found(1, 0, 2, 0.5, "subtitle")], [found(1, 1, 3, 0.4, "subtitle")])
    assert (moment.source, moment.score) == ("subtitle", pytest.approx(0.7))


def test_words_of_two_kinds_support_each_other() -> None:
    written = Found(1, Span(0, 10), 0.6, "text", "THE HARBOUR", snippet_kind="text")
    spoken = Found(1, Span(4, 6), 0.8, "speech", "the harbour", snippet_kind="speech")
    (both,) = fused([written], [spoken])
    assert (both.source, both.snippet, both.snippet_kind) == ("both", "the harbour", "speech")
    assert both.span == Span(4, 6) and both.score == pytest.approx(0.92)
    (seen,) = fused([Found(1, Span(3, 9), 0.95, "visual", match=2.0)], [both])
    assert (seen.span, seen.snippet, seen.snippet_kind, seen.match) == (
        Span(3, 9),
        "the harbour",
        "speech",
        2.0,
    )
