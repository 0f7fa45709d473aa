"""Pictures and words together: spans, scores, limits, order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.search.found import Candidate
from moviola.search.fusion import fused, without_copies
from moviola.types import Span


def found(row: int, start: float, end: float, score: float, source: str = "visual") -> Candidate:
    return Candidate(row, Span(start, end), score, source, "words" if source == "subtitle" else "")


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
    written = Candidate(1, Span(0, 10), 0.6, "text", "THE HARBOUR", snippet_kind="text")
    spoken = Candidate(1, Span(4, 6), 0.8, "speech", "the harbour", snippet_kind="speech")
    (both,) = fused([written], [spoken])
    assert (both.source, both.snippet, both.snippet_kind) == ("both", "the harbour", "speech")
    assert both.span == Span(4, 6) and both.score == pytest.approx(0.92)
    (seen,) = fused([Candidate(1, Span(3, 9), 0.95, "visual", match=2.0)], [both])
    assert (seen.span, seen.snippet, seen.snippet_kind, seen.match) == (
        Span(3, 9),
        "the harbour",
        "speech",
        2.0,
    )


class Copies:
    """Of three videos, the first shows what each of the others shows."""

    def copies_of(self, row: int) -> frozenset[int]:
        return frozenset({1, 3, 9}) - {row}

    def there(self, row: int, span: Span, other: int) -> Span | None:
        return span if row == 1 else None


@pytest.mark.parametrize("rows", [(3, 9), (9, 3)])
def test_a_copy_of_two_moments_is_folded_into_the_better_one(rows: tuple[int, int]) -> None:
    """In an order of sets, it was folded into that of row 9."""
    found = [Candidate(rows[0], Span(8, 18), 0.9, "visual"), Candidate(rows[1], Span(0, 10), 0.8, "visual")]
    found.append(Candidate(1, Span(4, 14), 0.7, "visual"))
    names = {row: f"v{row}" for row in (1, 3, 9)}
    kept = without_copies(found, names, Copies())  # type: ignore[arg-type]
    assert [[copy.video_id for copy in one.copies] for one in kept] == [["v1"], []]


def test_words_support_the_surest_of_the_moments_that_they_overlap() -> None:
    seen = [found(1, 10, 20, 0.3), found(1, 15, 25, 0.6), found(1, 14, 18, 0.4)]
    for shown in (seen, seen[::-1]):
        joined = fused(shown, [found(1, 16, 17, 0.5, "subtitle")])
        assert {m.span.start: m.source for m in joined} == {10: "visual", 15: "both", 14: "visual"}
