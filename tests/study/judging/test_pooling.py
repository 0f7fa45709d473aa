"""Moments to judge: the union of several systems' answers, near-duplicates once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue, NotFound
from moviola.study.judging import make_task, pool, pooling
from moviola.study.measures import Run, write_run
from moviola.types import Query, Span

QUERY = Query("q", "A door opens.")
DURATIONS = {"a": 60.0, "b": 30.0}


def run_of(*moments: tuple[str, float, float]) -> Run:
    rows = [
        {"video_id": video, "start": start, "end": end, "score": -float(place)}
        for place, (video, start, end) in enumerate(moments)
    ]
    return Run.from_dict({"q": rows})


def test_moments_come_by_best_rank_and_near_duplicates_once() -> None:
    first = run_of(("a", 0, 10), ("a", 30, 40), ("b", 5, 9))
    second = run_of(("a", 1, 10), ("b", 20, 25))
    found = pool([QUERY], {"first": first, "second": second}, DURATIONS)
    assert [(p.video_name, p.start, p.end, p.rank) for p in found.pairs] == [
        ("a", 0, 10, 1), ("a", 30, 40, 2), ("b", 20, 25, 3), ("b", 5, 9, 4),
    ]  # fmt: skip
    assert found.found_by[found.pairs[0].pair_id] == ("first", "second")
    assert found.contributions() == {"first": (3, 2), "second": (2, 1)}
    assert [p.similarity for p in found.pairs] == [1, 0.5, 0.5, 0.333333]
    assert {p.duration for p in found.pairs if p.video_name == "a"} == {60}


def test_an_answer_that_overlaps_two_of_the_pool_counts_once() -> None:
    """For the better of the two, and the other one remains found by its own system alone."""
    first, second = run_of(("a", 0, 10), ("a", 4, 14)), run_of(("b", 0, 5), ("b", 9, 12), ("a", 2, 12))
    found = pool([QUERY], {"first": first, "second": second}, DURATIONS)
    assert found.found_by["q:a:0.000-10.000"] == ("first", "second")
    assert found.found_by["q:a:4.000-14.000"] == ("first",)
    assert found.contributions() == {"first": (2, 1), "second": (3, 2)}


def test_depth_and_the_papers_forty_limit_a_pool() -> None:
    long = run_of(*(("a", float(n), n + 0.5) for n in range(50)))
    assert len(pool([QUERY], {"s": long}, DURATIONS, depth=3).pairs) == 3
    assert len(pool([QUERY], {"s": long}, DURATIONS, depth=50).pairs) == 40


def test_a_query_without_answers_is_not_judged() -> None:
    found = pool([QUERY, Query("r", "Nothing.")], {"s": run_of(("a", 0, 1))}, DURATIONS)
    assert {pair.query_id for pair in found.pairs} == {"q"}


@pytest.mark.parametrize(
    ("moment", "error", "message"),
    [
        (("c", 0, 1), NotFound, "other: answers with c"),
        (("b", 30, 31), InvalidValue, "other: b from 30 s, but it ends at 30 s"),
    ],
)
def test_runs_on_other_videos_are_refused(moment: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pool([QUERY], {"other": run_of(moment)}, DURATIONS)


def test_a_moment_ends_with_its_video() -> None:
    assert pool([QUERY], {"s": run_of(("b", 20, 30.04))}, DURATIONS).pairs[0].end == 30


@pytest.mark.parametrize(
    "wrong", [{"depth": 0}, {"merge_above": 1.0}, {"runs": {}}, {"queries": [QUERY, QUERY]}]
)
def test_what_cannot_be_pooled_is_refused(wrong: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"queries": [QUERY], "runs": {"s": run_of(("a", 0, 1))}} | wrong
    with pytest.raises(InvalidValue, match=r"depth=0|merge_above=1|0 systems|given twice"):
        pool(durations=DURATIONS, **asked)


moments = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=12
)


@given(st.lists(moments, min_size=1, max_size=3), st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_every_answer_is_in_the_pool_once(answers: list[Any], near: float) -> None:
    runs = {
        f"s{number}": run_of(*((video, float(start), float(start + length)) for video, start, length in one))
        for number, one in enumerate(answers)
    }
    found = pool([QUERY], runs, DURATIONS, merge_above=near)
    spans = [(pair.video_name, Span(pair.start, pair.end)) for pair in found.pairs]
    assert len({pair.pair_id for pair in found.pairs}) == len(found.pairs) == len(found.found_by)
    for place, (video, span) in enumerate(spans):
        assert all(video != other or span.iou(known) <= near for other, known in spans[:place])
    for video, start, length in (moment for one in answers for moment in one):
        span = Span(start, start + length)
        assert any(video == other and (span == known or span.iou(known) > near) for other, known in spans)


def test_run_files_are_read_before_the_library_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "library_runs", lambda *_, **__: pytest.fail("searched"))
    with pytest.raises(NotFound, match=r"gone\.json"):
        make_task(tmp_path / "task", None, [QUERY], run_files=[tmp_path / "gone.json"])  # type: ignore[arg-type]
    write_run(run_of(("a", 0, 1)), tmp_path / "other.json")
    with pytest.raises(
        InvalidValue, match=r"other\.json: answers queries such as 'q', but none of those given"
    ):
        make_task(tmp_path / "task", None, [Query("1", "x")], run_files=[tmp_path / "other.json"])  # type: ignore[arg-type]
