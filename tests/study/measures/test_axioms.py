"""The two axioms of the AxIoU paper, decided in exact fractions.

One judged moment [0, 60) and predictions [0, n) of its video have IoU n/60 exactly. Two lists differ only
at rank k, where the second has the larger IoU. INV-k: k > 1 and the larger one is no better than what stands
before it, then nothing changes. MON-k: k = 1 or it is better than all before, then the measure rises.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.study.measures import Measure, Qrels, Run, evaluate

WHOLE = 60
DEPTH = 5
QRELS = Qrels.from_dict({"q": [{"video_id": "v", "start": 0, "end": WHOLE, "relevance": 1}]})


def score(measure: Measure | str, parts: list[int]) -> float:
    """A measure on a list of predictions with IoU parts/60, best rank first; 0 means another video."""
    rows = [
        {"video_id": "v" if n else "other", "start": 0, "end": n or 1, "score": -rank}
        for rank, n in enumerate(parts)
    ]
    results = evaluate(Run.from_dict({"q": rows}), QRELS, measure)
    return next(iter(results.measures.values()))


def exact_axiou(parts: list[int]) -> Fraction:
    best = [max(parts[:k], default=0) for k in range(1, DEPTH + 1)]
    return sum((Fraction(n, WHOLE) for n in best), Fraction()) / DEPTH


parts = st.lists(st.integers(0, WHOLE), min_size=1, max_size=DEPTH)


@st.composite
def improved(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    """Two lists and the place, from 0, where the second is better."""
    first = draw(parts)
    place = draw(st.integers(0, len(first) - 1))
    first[place] = draw(st.integers(0, WHOLE - 1))
    second = list(first)
    second[place] = draw(st.integers(first[place] + 1, WHOLE))
    return first, second, place


def redundant(second: list[int], place: int) -> bool:
    return place > 0 and second[place] <= max(second[:place])


@given(parts)
def test_axiou_is_the_exact_fraction(found: list[int]) -> None:
    assert score("AxIoU@5", found) == pytest.approx(float(exact_axiou(found)), abs=1e-15)


@given(parts)
def test_axiou_is_the_mean_integral_of_recall(found: list[int]) -> None:
    """R@k,θ is constant on [j/60, (j + 1)/60), so the integral over θ is a sum of 60 steps."""
    rows = [
        {"video_id": "v" if n else "other", "start": 0, "end": n or 1, "score": -rank}
        for rank, n in enumerate(found)
    ]
    steps = [Measure("R", k, j / WHOLE, strict=True) for k in range(1, DEPTH + 1) for j in range(WHOLE)]
    recall = evaluate(Run.from_dict({"q": rows}), QRELS, steps).measures.values()
    assert len(recall) == DEPTH * WHOLE
    assert Fraction(sum(map(int, recall)), WHOLE * DEPTH) == exact_axiou(found)


@given(improved())
def test_axiou_has_both(lists: tuple[list[int], list[int], int]) -> None:
    first, second, place = lists
    before, after = score("AxIoU@5", first), score("AxIoU@5", second)
    if redundant(second, place):
        assert exact_axiou(second) == exact_axiou(first)
        assert after == before
    else:
        assert exact_axiou(second) > exact_axiou(first)
        assert after > before


@given(improved(), st.sampled_from(["R@5,IoU>0.5", "R@5,IoU>=0.5", "R@3,IoU>0.7"]))
def test_recall_is_invariant_but_not_monotone(lists: tuple[list[int], list[int], int], name: str) -> None:
    first, second, place = lists
    if redundant(second, place):
        assert score(name, second) == score(name, first)
    assert score(name, second) >= score(name, first)


def test_recall_does_not_see_a_better_moment() -> None:
    assert score("R@5,IoU>0.5", [10, 20]) == score("R@5,IoU>0.5", [10, 25])


def test_ap_has_neither() -> None:
    assert score("AP@5,IoU>0.5", [50, 10]) < score("AP@5,IoU>0.5", [50, 40])
    assert score("AP@5,IoU>0.5", [10, 5]) == score("AP@5,IoU>0.5", [10, 25])


@given(improved())
def test_dcg_is_monotone(lists: tuple[list[int], list[int], int]) -> None:
    first, second, _ = lists
    assert score("DCG@5", second) > score("DCG@5", first)


def test_dcg_rewards_what_adds_nothing() -> None:
    assert score("DCG@5", [50, 10]) < score("DCG@5", [50, 40])
