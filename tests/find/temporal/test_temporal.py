"""Spans on arrays, held against arithmetic on single spans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue
from moviola.temporal import fold, intersection, overlap, suppress
from moviola.types import Span

spans = st.tuples(st.integers(0, 20), st.integers(1, 20)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(st.tuples(spans, spans), min_size=1, max_size=8))
def test_overlap_and_intersection_are_those_of_single_spans(pairs: list[tuple[tuple[int, int], ...]]) -> None:
    table = np.array(pairs, np.float64)
    columns = (table[:, 0, 0], table[:, 0, 1], table[:, 1, 0], table[:, 1, 1])
    assert overlap(*columns).tolist() == [Span(*a).iou(Span(*b)) for a, b in pairs]
    shared = [max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in pairs]
    assert intersection(*columns).tolist() == shared


def test_spans_without_extent_overlap_nothing_and_arrays_broadcast() -> None:
    start, end = np.array([[0.0], [5.0]], np.float32), np.array([[10.0], [5.0]], np.float32)
    found = overlap(start, end, start.T, end.T)
    assert found.tolist() == [[1, 0], [0, 0]]
    assert found.dtype == intersection(start, end, start.T, end.T).dtype == np.float32


def test_suppression_is_strict_and_stable_among_equals() -> None:
    start, end = np.array([0.0, 0, 5, 20]), np.array([10.0, 10, 15, 30])
    score = np.array([1.0, 1, 1, 2])
    assert suppress(start, end, score, 1 / 3).tolist() == [3, 0, 2]
    assert suppress(start, end, score, 0.3).tolist() == [3, 0]
    assert suppress(start, end, score, 1.0).tolist() == [3, 0, 1, 2]
    assert suppress(start, end, score, 1.0, keep=2).tolist() == [3, 0]
    assert suppress(start[:0], end[:0], score[:0], 0.5).tolist() == []


@given(st.lists(st.tuples(spans, st.integers(0, 3)), max_size=8), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_survivors_are_apart_and_each_dropped_span_met_a_better_one(
    rows: list[tuple[tuple[int, int], int]], threshold: float
) -> None:
    start = np.array([row[0][0] for row in rows], np.float64)
    end = np.array([row[0][1] for row in rows], np.float64)
    best = suppress(start, end, np.array([row[1] for row in rows]), threshold).tolist()
    order = sorted(range(len(rows)), key=lambda i: -rows[i][1])
    assert best == [i for i in order if i in best]
    for i in order:
        met = [j for j in best if order.index(j) < order.index(i)]
        clear = all(Span(*rows[i][0]).iou(Span(*rows[j][0])) <= threshold for j in met)
        assert clear == (i in best)


@given(
    st.lists(st.tuples(spans, st.integers(0, 3), st.integers(0, 1)), max_size=10), st.sampled_from([0.3, 0.5])
)
def test_folded_spans_stand_for_others(
    rows: list[tuple[tuple[int, int], int, int]], threshold: float
) -> None:
    start = np.array([row[0][0] for row in rows], np.float64)
    end = np.array([row[0][1] for row in rows], np.float64)
    video = np.array([row[2] for row in rows], np.int64)
    stands = fold(start, end, np.array([row[1] for row in rows]), threshold, video=video).tolist()

    def close(i: int, j: int) -> bool:
        a, b = Span(*rows[i][0]), Span(*rows[j][0])
        inside = a.intersection(b) == min(a.duration, b.duration)
        return rows[i][2] == rows[j][2] and (a.iou(b) > threshold or inside)

    order = sorted(range(len(rows)), key=lambda i: -rows[i][1])
    kept: list[int] = []
    for i in order:
        better = [j for j in kept if close(i, j)]
        assert stands[i] == (better[0] if better else i)
        kept += [] if better else [i]


def test_values_out_of_range_are_refused() -> None:
    one = np.array([0.0])
    with pytest.raises(InvalidValue, match="threshold"):
        suppress(one, one + 1, one, 1.5)
    with pytest.raises(InvalidValue, match="keep 0"):
        suppress(one, one + 1, one, 0.5, keep=0)
