"""Measures: what holds for all of them, and each beside a plain implementation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviola.errors import InvalidValue
from moviola.study.measures import Measure, Qrels, Run, evaluate, overlap
from moviola.types import Span

NAMES = [
    "nDCG@5,IoU>=0.5",
    "nDCG@3,IoU>0.5",
    "DCG@4,IoU>=0.3",
    "DCG@4",
    "R@2,IoU>0.5",
    "R@2,IoU>=0.5",
    "AP@3,IoU>=0.5",
    "AxIoU@6",
]

times = st.tuples(st.integers(0, 8), st.integers(1, 6)).map(lambda t: (1.5 * t[0], 1.5 * (t[0] + t[1])))
videos = st.sampled_from(["a", "b", "c"])


def moment(field: str, values: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(videos, times, values).map(
        lambda m: {"video_id": m[0], "start": m[1][0], "end": m[1][1], field: m[2]}
    )


queries = st.sampled_from(["1", "2", "3", "4"])
judged = st.dictionaries(queries, st.lists(moment("relevance", st.integers(0, 4)), max_size=6), max_size=4)
answered = st.dictionaries(queries, st.lists(moment("score", st.integers(0, 9)), max_size=9), max_size=4)


def iou(a: dict[str, Any], b: dict[str, Any]) -> float:
    same = a["video_id"] == b["video_id"]
    return Span(a["start"], a["end"]).iou(Span(b["start"], b["end"])) if same else 0.0


def plain(name: str, answer: list[dict[str, Any]], truths: list[dict[str, Any]]) -> float:
    """The definitions, written down with loops."""
    measure = Measure.parse(name)
    truths = sorted((t for t in truths if t["relevance"] > 0), key=lambda t: -t["relevance"])
    ranked = sorted(answer, key=lambda m: -m["score"])[: measure.k]

    def enough(value: float) -> bool:
        limit = measure.overlap or 0.0
        return value > 0 and (value > limit if measure.strict else value >= limit)

    best = [max((iou(m, t) for t in truths), default=0.0) for m in ranked]
    if measure.family == "R":
        return float(any(enough(value) for value in best))
    if measure.family == "AP":
        return sum(sum(map(enough, best[:k])) / k for k in range(1, measure.k + 1)) / measure.k
    if measure.family == "AxIoU":
        return sum(max(best[:k], default=0.0) for k in range(1, measure.k + 1)) / measure.k
    if measure.overlap is None:
        return sum(value / math.log2(rank + 1) for rank, value in enumerate(best, start=1))
    free, total = list(truths), 0.0
    for rank, m in enumerate(ranked, start=1):
        top = max(free, key=lambda t: iou(m, t), default=None)
        if top is not None and enough(iou(m, top)):
            free = [t for t in free if t is not top]
            total += (2 ** top["relevance"] - 1) / math.log2(rank + 1)
    if measure.family == "DCG":
        return total
    ideal = sum(
        (2 ** t["relevance"] - 1) / math.log2(rank + 1) for rank, t in enumerate(truths[: measure.k], start=1)
    )
    return total / ideal


@settings(max_examples=150, deadline=None)
@given(judged, answered)
def test_equals_the_definitions(truth: dict[str, Any], answers: dict[str, Any]) -> None:
    results = evaluate(Run.from_dict(answers), Qrels.from_dict(truth), NAMES)
    counted = [query for query, moments in truth.items() if any(m["relevance"] > 0 for m in moments)]
    assert list(results.query_ids) == counted
    assert results.missing == tuple(query for query in truth if query not in answers)
    assert set(results.extra) == set(answers) - set(truth)
    for name in NAMES:
        expected = [plain(name, answers.get(query, []), truth[query]) for query in counted]
        np.testing.assert_allclose(results.per_query[name], expected, rtol=0, atol=1e-12, err_msg=name)
        assert results.measures[name] == pytest.approx(np.mean(expected) if counted else 0.0, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(judged, answered, st.randoms(use_true_random=False))
def test_the_order_of_queries_changes_nothing(
    truth: dict[str, Any], answers: dict[str, Any], random: Any
) -> None:
    first = evaluate(Run.from_dict(answers), Qrels.from_dict(truth), NAMES)
    names = list(truth)
    random.shuffle(names)
    second = evaluate(
        Run.from_dict(dict(reversed(answers.items()))), Qrels.from_dict({n: truth[n] for n in names}), NAMES
    )
    for name in NAMES:
        assert dict(zip(first.query_ids, first.per_query[name], strict=True)) == dict(
            zip(second.query_ids, second.per_query[name], strict=True)
        )
        assert first.measures[name] == second.measures[name]


@given(times, times)
def test_overlap_is_symmetric_and_bounded(a: tuple[float, float], b: tuple[float, float]) -> None:
    (x, y), (u, v) = (tuple(np.array([t]) for t in span) for span in (a, b))
    value = overlap(x, y, u, v)[0]
    assert value == overlap(u, v, x, y)[0]
    assert 0 <= value <= 1
    assert overlap(x, y, x, y)[0] == 1
    assert value == pytest.approx(Span(*a).iou(Span(*b)), abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(judged)
def test_a_perfect_ranking_gives_one_and_an_empty_one_zero(truth: dict[str, Any]) -> None:
    # Spans of one query must not overlap, or a prediction may take a neighbour's judgement.
    apart = {
        query: [m | {"video_id": f"{m['video_id']}{i}"} for i, m in enumerate(moments)]
        for query, moments in truth.items()
    }
    perfect = {
        query: [{k: v for k, v in m.items() if k != "relevance"} | {"score": m["relevance"]} for m in moments]
        for query, moments in apart.items()
    }
    qrels, names = Qrels.from_dict(apart), ["nDCG@20,IoU>=0.5", "R@1,IoU>=1.0", "AxIoU@10"]
    results = evaluate(Run.from_dict(perfect), qrels, names)
    nothing = evaluate(Run.from_dict({}), qrels, names)
    for name in names:
        assert np.allclose(results.per_query[name], 1)
        assert not nothing.per_query[name].any()
    assert nothing.missing == qrels.query_ids


@pytest.mark.parametrize("name", NAMES)
def test_a_measure_prints_as_it_parses(name: str) -> None:
    assert str(Measure.parse(name)) == name
    assert Measure.parse(str(Measure.parse(name))) == Measure.parse(name)


@given(
    st.sampled_from(["nDCG", "R", "AP", "DCG"]),
    st.integers(1, 10**6),
    st.floats(0, 1, allow_subnormal=False),
    st.booleans(),
)
def test_every_measure_survives_printing(family: str, k: int, limit: float, strict: bool) -> None:
    measure = Measure(family, k, limit, strict)
    assert Measure.parse(str(measure)) == measure


@pytest.mark.parametrize(
    "text",
    ["", "nDCG", "nDCG@20", "R@0,IoU>0.5", "R@5,IoU=0.5", "AxIoU@5,IoU>0.5", "XY@5", "R@5,IoU>1.5", "R@-1"],
)
def test_a_name_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="measure"):
        Measure.parse(text)


@given(st.text(max_size=20))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        Measure.parse(text)
    except InvalidValue:
        return
    assert "@" in text or text.startswith(("AUROC", "Rej-"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"start": math.nan}, "start is nan"),
        ({"end": math.inf}, "end is inf"),
        ({"end": 1.0}, "the end must come after"),
        ({"end": 0.5}, "the end must come after"),
        ({"score": math.nan}, "score is nan"),
        ({"score": "high"}, "score is 'high'"),
        ({"start": True}, "start is True"),
        ({"video_id": None}, "video_id is None"),
    ],
)
def test_what_may_not_be_is_refused_with_the_row(change: dict[str, Any], complaint: str) -> None:
    good = {"video_id": "v", "start": 1.0, "end": 2.0, "score": 0.5}
    with pytest.raises(InvalidValue, match=complaint) as caught:
        Run.from_dict({"a": [good], "b": [good, good | change]})
    assert "query b, moment 2" in str(caught.value)


def test_negative_relevance_a_missing_field_and_a_query_given_twice_are_refused() -> None:
    row = {"video_id": "v", "start": 1.0, "end": 2.0, "relevance": -1}
    with pytest.raises(InvalidValue, match="relevance is -1"):
        Qrels.from_dict({"a": [row]})
    with pytest.raises(InvalidValue, match="query a, moment 1: the field 'score' is missing"):
        Run.from_dict({"a": [row]})
    with pytest.raises(InvalidValue, match="given twice"):
        Run.from_dict({7: [], "7": []})


def test_equal_scores_keep_the_order_in_which_they_were_given() -> None:
    """More than an unstable sort leaves in order by chance: it inserts up to sixteen."""
    start = np.random.default_rng(0).permutation(400) / 2
    score = np.repeat([0.25, 0.75], 200)
    run = Run.from_columns(["q"] * 400, ["v"] * 400, start, start + 1, score)
    assert run.start.tolist() == [*start[200:].tolist(), *start[:200].tolist()]


@pytest.mark.parametrize("preset", [None, "tvr_ranking"])
def test_the_example_of_figure_2(preset: str | None) -> None:
    """TVR-Ranking, Figure 2: nDCG@3, IoU >= .3, of p1 to p3, which find g3, g1 and g4.

    p1 and its copy p2 overlap with g1 by .35 and with g3 by .4; p2 gets g1, which alone is left. Their levels
    are 2, 4 and 2, those of a perfect ranking 4, 2 and 2. Gains are 2^rel - 1, where Eq. 1 prints rel.
    """
    truths = {"g1": (0.0, 7.0, 4), "g2": (40.0, 50.0, 2), "g3": (12.0, 20.0, 2), "g4": (100.0, 110.0, 2)}
    rows = [{"video_id": "v", "start": a, "end": b, "relevance": level} for a, b, level in truths.values()]
    spans = [(0.0, 20.0), (0.0, 20.0), (100.0, 120.0)]
    found = [{"video_id": "v", "start": a, "end": b, "score": 3 - n} for n, (a, b) in enumerate(spans)]
    ious = [[Span(a, b).iou(Span(c, d)) for c, d, _ in truths.values()] for a, b in spans]
    assert ious == [[0.35, 0, 0.4, 0]] * 2 + [[0, 0, 0, 0.5]]
    discount = 1 / math.log2(3)
    expected = (3 + 15 * discount + 3 / 2) / (15 + 3 * discount + 3 / 2)
    value = evaluate(Run.from_dict({"q": found}), Qrels.from_dict({"q": rows}), "nDCG@3,IoU>=0.3", preset)
    assert list(value.measures.values()) == [pytest.approx(expected, abs=1e-12)]


@pytest.mark.parametrize(("levels", "found"), [((1, 4), 15.0), ((2, 2), 3.0)])
def test_of_two_moments_of_equal_iou_the_first_is_taken(levels: tuple[int, int], found: float) -> None:
    """The one of the higher level, or, of one level, the one listed first: then nothing is left for p2."""
    spans = [(0.0, 10.0), (10.0, 20.0)]
    truth = [
        {"video_id": "v", "start": start, "end": end, "relevance": level}
        for (start, end), level in zip(spans, levels, strict=True)
    ]
    second = spans[levels.index(max(levels))]
    answers = [
        {"video_id": "v", "start": start, "end": end, "score": 2 - place}
        for place, (start, end) in enumerate([(5.0, 15.0), second])
    ]
    value = evaluate(Run.from_dict({"q": answers}), Qrels.from_dict({"q": truth}), "DCG@2,IoU>=0.3")
    assert list(value.measures.values()) == [found]


def test_ids_are_text_everywhere() -> None:
    qrels = Qrels.from_dict({7: [{"video_id": "v", "start": 0, "end": 2, "relevance": 1}]})
    run = Run.from_dict({"7": [{"video_id": "v", "start": 0, "end": 2, "score": 1}]})
    assert evaluate(run, qrels, "R@1,IoU>=0.5").measures == {"R@1,IoU>=0.5": 1.0}


@pytest.mark.parametrize("family", ["R@1", "nDCG@1", "DCG@1", "AP@1"])
def test_an_overlap_of_exactly_the_threshold_counts_where_the_sign_says_so(family: str) -> None:
    """An IoU of exactly 0.5; one a little below it counts for neither sign, one above for both."""
    qrels = Qrels.from_dict({"q": [{"video_id": "v", "start": 0, "end": 4, "relevance": 1}]})
    found = {}
    for end in (1.9, 2.0, 2.1):
        run = Run.from_dict({"q": [{"video_id": "v", "start": 0, "end": end, "score": 1}]})
        names = [f"{family},IoU{sign}0.5" for sign in (">", ">=")]
        found[end] = [value > 0 for value in evaluate(run, qrels, names).measures.values()]
    assert found == {1.9: [False, False], 2.0: [False, True], 2.1: [True, True]}


def test_zero_length_overlaps_nothing_where_it_is_let_in() -> None:
    rows = {"q": [{"video_id": "v", "start": 1, "end": 1, "score": 1}]}
    qrels = Qrels.from_dict({"q": [{"video_id": "v", "start": 0, "end": 2, "relevance": 1}]})
    run = Run.from_dict(rows, zero_length=True)
    assert evaluate(run, qrels, ["AxIoU@1", "R@1,IoU>=0"]).measures == {"AxIoU@1": 0.0, "R@1,IoU>=0.0": 0.0}


def test_a_preset_and_a_measure_must_exist() -> None:
    with pytest.raises(InvalidValue, match="preset 'x'"):
        evaluate(Run.from_dict({}), Qrels.from_dict({}), "AxIoU@1", "x")
    with pytest.raises(InvalidValue, match="no measure"):
        evaluate(Run.from_dict({}), Qrels.from_dict({}), [])
