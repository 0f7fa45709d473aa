"""Upper bounds against brute force, and as bounds of what refining inside the same windows can reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.bounds import upper_bounds
from moviola.features import QueryFeatures, VideoFeatures
from moviola.retrieval import Proposals
from moviola.study.measures import Run, evaluate
from moviola.study.training.data import Pairs, Split
from moviola.types import Span

DURATIONS = {"a": 16.0, "b": 12.0, "c": 20.0}
OVERLAPS = (0.3, 0.5, 0.7)
NAMES = [f"nDCG@20,IoU>={overlap}" for overlap in OVERLAPS]
Answer = tuple[int, str, float, float, float]
"""Query, video, start, end, grade."""


def split_of(answers: Sequence[Answer], proposals: Sequence[Sequence[tuple[str, float, float]]]) -> Split:
    """A split without features, which bounds do not read."""
    videos = tuple(DURATIONS)
    ids = tuple(f"q{row}" for row in range(len(proposals)))
    query, video, start, end, grade = zip(*answers, strict=True)
    pairs = Pairs(
        ids,
        ids,
        videos,
        np.array([videos.index(name) for name in video]),
        np.array(start, dtype=np.float64),
        np.array(end, dtype=np.float64),
        ("",) * len(answers),
        np.array(query),
        np.arange(len(answers)),
        np.ones(len(answers), dtype=np.float32),
        np.array(grade, dtype=np.float64),
    )
    durations, nothing = np.array(list(DURATIONS.values())), cast("Any", None)
    features = VideoFeatures(videos, durations, 1.0, durations.astype(np.int64), nothing)
    queries = QueryFeatures(ids, ids, (nothing,) * len(ids))
    return Split(features, queries, pairs, proposals_of(proposals))


def proposals_of(proposals: Sequence[Sequence[tuple[str, float, float]]]) -> Proposals:
    """Of each query, best first."""
    names = list(DURATIONS)
    rows = [(query, names.index(video), a, b) for query, own in enumerate(proposals) for video, a, b in own]
    query, video, start, end = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Proposals.of_columns(query, video, start, end, np.zeros(len(rows)), queries=len(proposals))


def spans_of(split: Split, query: int) -> list[tuple[str, Span]]:
    """The proposals of a query."""
    assert split.proposals is not None
    own = split.proposals.of(query)
    columns = (own.video.tolist(), own.start.tolist(), own.end.tolist())
    return [(split.pairs.videos[video], Span(a, b)) for video, a, b in zip(*columns, strict=True)]


def bounds(split: Split, context: float, grid: float | None = None) -> list[float]:
    assert split.proposals is not None
    found = upper_bounds(split, split.proposals, context=context, overlaps=OVERLAPS, grid=grid)
    return [found[name] for name in NAMES]


def by_brute_force(split: Split, context: float, step: float) -> list[float]:
    """Every span of every window that is whole clips of ``step`` seconds, the window's last one cut short."""
    assert split.proposals is not None
    pairs, values = split.pairs, []
    for overlap in OVERLAPS:
        each = []
        for query in range(len(split.proposals)):
            answers = np.flatnonzero(pairs.query == query)
            if not len(answers):
                continue
            grades = [float(pairs.relevance[row]) for row in answers]
            reached = []
            for row, grade in zip(answers, grades, strict=True):
                moment = pairs.moment[row]
                answer = Span(float(pairs.start[moment]), float(pairs.end[moment]))
                spans = [
                    Span(a, b)
                    for video, wide in spans_of(split, query)
                    if pairs.videos[pairs.video[moment]] == video
                    for a, b in combinations(edges_of(wide, context, step, DURATIONS[video]), 2)
                ]
                if any(span.iou(answer) >= overlap for span in spans):
                    reached.append(grade)
            each.append(_dcg(reached) / _dcg(grades))
        values.append(sum(each) / len(each))
    return values


def edges_of(wide: Span, context: float, step: float, duration: float) -> list[float]:
    """Where the clips of a padded proposal begin and end, rising."""
    low, high = max(wide.start - context, 0), min(wide.end + context, duration)
    return [*(low + clip * step for clip in range(math.ceil((high - low) / step))), high]


def _dcg(grades: list[float]) -> float:
    best = sorted(grades, reverse=True)[:20]
    return sum((2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(best, start=1))


@st.composite
def splits(draw: st.DrawFn, step: float = 1.0) -> Split:
    """Two queries with up to four answers each at multiples of ``step``, proposals of whole segments."""

    def span(video: str) -> tuple[float, float]:
        last = round(DURATIONS[video] / step)
        first = draw(st.integers(0, last - 1))
        return first * step, draw(st.integers(first + 1, last)) * step

    answers: list[Answer] = []
    proposals = []
    for query in range(2):
        answered = draw(st.lists(st.sampled_from(list(DURATIONS)), min_size=1, max_size=4))
        answers += [(query, video, *span(video), float(draw(st.integers(1, 4)))) for video in answered]
        own = []
        for video in draw(st.lists(st.sampled_from(list(DURATIONS)), max_size=3)):
            first = draw(st.integers(0, int(DURATIONS[video]) // 4 - 1))
            own.append((video, 4.0 * first, 4.0 * (first + draw(st.integers(1, 2)))))
        proposals.append(own)
    return split_of(answers, proposals)


@settings(max_examples=20, deadline=None)
@given(splits(step=0.5), st.sampled_from([0.0, 2.0, 4.0, 8.0]))
def test_bounds_are_what_trying_every_span_finds(split: Split, context: float) -> None:
    assert bounds(split, context) == pytest.approx(by_brute_force(split, context, 0.5))
    for clip in (1.0, 1.5):
        assert bounds(split, context, clip) == pytest.approx(by_brute_force(split, context, clip))


@settings(max_examples=30, deadline=None)
@given(splits(step=0.5), st.integers(0, 2**31))
def test_more_context_and_finer_spans_reach_no_less(split: Split, seed: int) -> None:
    contexts = (0.0, 4.0, 8.0)
    exact, on_seconds, on_clips = (
        [bounds(split, context, clip) for context in contexts] for clip in (None, 1.0, 1.5)
    )
    for less, more in (*pairwise(exact), *pairwise(on_seconds)):  # 4 s are not whole clips of 1.5
        assert all(a <= b for a, b in zip(less, more, strict=True))
    for fine, *coarser in zip(exact, on_seconds, on_clips, strict=True):
        assert all(a >= b for coarse in coarser for a, b in zip(fine, coarse, strict=True))
    # Whatever a refiner makes of the same windows, on the clips' grid, cannot beat the bound.
    for clip, limits in ((1.0, on_seconds), (1.5, on_clips)):
        run = refined_at_random(split, contexts[seed % 3], clip, seed)
        values = evaluate(run, split.pairs.qrels, NAMES).measures
        for name, bound in zip(NAMES, limits[seed % 3], strict=True):
            assert values[name] <= bound + 1e-12


def test_an_answer_in_clips_of_a_second_and_a_half() -> None:
    # The window is 4 to 8 s, its clips 4, 5.5, 7 and the end at 8 s. Of 4.5 to 8.5 s it holds 4 to 8 (3.5 of
    # 4.5 s); 7 to 8 s are its last clip, which is cut; 2 to 3.5 s lie before the window.
    answers = [(0, "a", 4.5, 8.5, 4.0), (0, "a", 7.0, 8.0, 2.0), (0, "a", 2.0, 3.5, 1.0)]
    split = split_of(answers, [[("a", 4.0, 8.0)]])
    both, ideal = _dcg([4.0, 2.0]), _dcg([4.0, 2.0, 1.0])
    assert bounds(split, 0.0, 1.5) == pytest.approx([both / ideal] * 3)
    # Of 5 to 6.5 s the spans 4 to 7 and 5.5 to 7 hold half: not on clips of 1.5 s, but on those of a second.
    split = split_of([(0, "a", 5.0, 6.5, 4.0)], [[("a", 4.0, 8.0)]])
    assert bounds(split, 0.0, 1.5) == [1.0, 1.0, 0.0]
    assert bounds(split, 0.0, 1.0) == [1.0, 1.0, 1.0]


def refined_at_random(split: Split, context: float, clip: float, seed: int) -> Run:
    """One span of whole clips inside each window, in any order."""
    assert split.proposals is not None
    draw = np.random.default_rng(seed)
    rows: dict[str, list[dict[str, object]]] = {}
    for query, name in enumerate(split.queries.query_ids):
        rows[name] = []
        for video, wide in spans_of(split, query):
            edges = edges_of(wide, context, clip, DURATIONS[video])
            start, end = np.sort(draw.choice(edges, 2, replace=False)).tolist()
            rows[name].append({"video_id": video, "start": start, "end": end, "score": draw.random()})
    return Run.from_dict(rows)


def test_windows_that_hold_all_answers_are_perfect() -> None:
    answers = [(0, "a", 1.0, 5.5, 4.0), (0, "a", 3.0, 6.0, 1.0), (0, "c", 8.0, 19.0, 2.0)]
    split = split_of(answers, [[("a", 0.0, 8.0), ("c", 8.0, 20.0)]])
    assert bounds(split, 0.0) == [1.0, 1.0, 1.0]


def test_an_answer_that_is_cut_like_another_one_still_counts() -> None:
    # What the window leaves of the longer answer is the shorter one, yet both can be found: one span each.
    answers = [(0, "a", 0.0, 4.0, 1.0), (0, "a", 0.0, 7.0, 4.0)]
    split = split_of(answers, [[("a", 0.0, 4.0)]])
    assert bounds(split, 0.0)[:2] == [1.0, 1.0]
    assert bounds(split, 0.0)[2] == pytest.approx(_dcg([1.0]) / _dcg([4.0, 1.0]))


def test_without_proposals_nothing_is_reached() -> None:
    split = split_of([(0, "a", 0.0, 4.0, 1.0)], [[]])
    assert bounds(split, 8.0) == [0.0, 0.0, 0.0]
