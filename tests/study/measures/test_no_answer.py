"""Measures of queries with no answer, one or several: in plain loops, by hand, and what holds."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from measure_studies.statistics import per_query_values
from moviola.errors import InvalidValue
from moviola.study.measures import (
    Measure,
    Qrels,
    Run,
    auroc,
    auroc_interval,
    compare,
    evaluate,
    refused_share,
    rejection_f1,
)
from moviola.types import Span

NAMES = ["mR@1", "mR@3", "mR+@3", "mIoU@2", "mIoU+@3", "G-mIoU@2", "G-mIoU@3,score<=4.0"]
TOGETHER = ["AUROC", "Rej-F1", "Rej-F1,score<=4.0", "Rej-Acc", "Rej-Acc,score<=4.0"]
OVERLAPS = [0.5 + 0.05 * i for i in range(10)]

times = st.tuples(st.integers(0, 8), st.integers(1, 6)).map(lambda t: (1.5 * t[0], 1.5 * (t[0] + t[1])))


def moments(field: str, values: st.SearchStrategy[int], most: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.tuples(st.sampled_from("ab"), times, values).map(
        lambda m: {"video_id": m[0], "start": m[1][0], "end": m[1][1], field: m[2]}
    )
    return st.lists(one, max_size=most)


queries = st.sampled_from("12345")
judged = st.dictionaries(queries, moments("relevance", st.integers(0, 2), 4), max_size=5)
answered = st.dictionaries(queries, moments("score", st.integers(0, 9), 6), max_size=5)


def iou(a: dict[str, Any], b: dict[str, Any]) -> float:
    same = a["video_id"] == b["video_id"]
    return Span(a["start"], a["end"]).iou(Span(b["start"], b["end"])) if same else 0.0


def matches(found: list[dict[str, Any]], truths: list[dict[str, Any]], threshold: float) -> list[float]:
    free, taken = list(truths), []
    for m in found:
        top = max(free, key=lambda t: iou(m, t), default=None)
        if top is not None and iou(m, top) >= threshold:
            free = [t for t in free if t is not top]
            taken.append(iou(m, top))
    return taken


def plain(name: str, answer: list[dict[str, Any]], truths: list[dict[str, Any]]) -> float | None:
    """The definitions of one query, written down with loops; None where it does not count."""
    measure = Measure.parse(name)
    truths = sorted((t for t in truths if t["relevance"] > 0), key=lambda t: -t["relevance"])
    ranked = sorted(answer, key=lambda m: -m["score"])[: measure.k]
    beyond = measure.family.endswith("+")
    if measure.family == "G-mIoU":
        if measure.level is not None and all(m["score"] <= measure.level for m in answer):
            ranked = []
        if not truths or not ranked:
            return float(not truths and not ranked)
        taken = matches(ranked, truths, 1e-12)
        return sum(taken) / (len(ranked) + len(truths) - len(taken))
    if len(truths) < 1 + beyond:
        return None
    if measure.family.startswith("mR"):
        counts = [len(matches(ranked, truths, limit - 1e-12)) for limit in OVERLAPS]
        return float(np.mean([max(0, n - beyond) / (len(truths) - beyond) for n in counts]))
    taken = sorted(matches(ranked, truths, 1e-12))
    pairs = min(len(ranked), len(truths)) - beyond
    return sum(taken[: len(taken) - beyond]) / pairs if pairs > 0 else 0.0


@settings(max_examples=150, deadline=None)
@given(judged, answered)
def test_equals_the_definitions(truth: dict[str, Any], answers: dict[str, Any]) -> None:
    results = evaluate(Run.from_dict(answers), Qrels.from_dict(truth), NAMES)
    assert results.query_ids == tuple(truth)  # G-mIoU counts all
    for name in NAMES:
        expected = [plain(name, answers.get(query, []), truth[query]) for query in truth]
        found = [None if math.isnan(value) else value for value in results.per_query[name].tolist()]
        assert found == [None if value is None else pytest.approx(value, abs=1e-12) for value in expected]
        counted = [value for value in expected if value is not None]
        assert results.counts[name] == len(counted)
        assert results.measures[name] == pytest.approx(np.mean(counted) if counted else 0.0, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(judged, answered)
def test_refusals_equal_the_definitions(truth: dict[str, Any], answers: dict[str, Any]) -> None:
    absent = [not any(m["relevance"] > 0 for m in rows) for rows in truth.values()]
    best = [max((m["score"] for m in answers.get(q, [])), default=-math.inf) for q in truth]
    run, qrels = Run.from_dict(answers), Qrels.from_dict(truth)
    if all(absent) or not any(absent):
        with pytest.raises(InvalidValue, match="AUROC needs some"):
            evaluate(run, qrels, "AUROC")
        return
    results = evaluate(run, qrels, TOGETHER)
    assert not results.per_query
    pairs = [
        (a > b) + (a == b) / 2
        for (a, no_a), (b, no_b) in itertools.product(zip(best, absent, strict=True), repeat=2)
        if no_b and not no_a
    ]
    assert results.measures["AUROC"] == pytest.approx(np.mean(pairs), abs=1e-12)
    for level, tail in ((-math.inf, ""), (4.0, ",score<=4.0")):
        refused = [value <= level for value in best]
        hits = sum(r and a for r, a in zip(refused, absent, strict=True))
        precision, recall = hits / max(1, sum(refused)), hits / sum(absent)
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        assert results.measures[f"Rej-F1{tail}"] == pytest.approx(f1, abs=1e-12)
        assert results.measures[f"Rej-Acc{tail}"] == pytest.approx(
            np.mean(np.equal(refused, absent)), abs=1e-12
        )


@settings(max_examples=80, deadline=None)
@given(judged, answered)
def test_values_lie_between_nothing_and_everything(truth: dict[str, Any], answers: dict[str, Any]) -> None:
    results = evaluate(Run.from_dict(answers), Qrels.from_dict(truth), NAMES)
    for name in NAMES:
        values = results.per_query[name][~np.isnan(results.per_query[name])]
        assert ((values >= 0) & (values <= 1)).all()
    # One moment found cannot be more of what lies beyond the first than of all.
    both = ~np.isnan(results.per_query["mR+@3"])
    assert (results.per_query["mR+@3"][both] <= results.per_query["mR@3"][both] + 1e-12).all()


def test_the_truth_itself_gives_one_everywhere() -> None:
    truth = {
        "none": [],
        "one": [{"video_id": "v", "start": 0, "end": 4, "relevance": 1}],
        "two": [{"video_id": "v", "start": 9 * i, "end": 9 * i + 4, "relevance": 1} for i in range(2)],
    }
    run = {
        query: [{"video_id": m["video_id"], "start": m["start"], "end": m["end"], "score": 0.9} for m in rows]
        for query, rows in truth.items()
    }
    names = ["mR@5", "mR+@5", "mIoU@5", "mIoU+@5", "G-mIoU@5", "AUROC", "Rej-F1", "Rej-Acc"]
    results = evaluate(Run.from_dict(run), Qrels.from_dict(truth), names)
    assert results.measures == dict.fromkeys(names, 1.0)
    assert results.counts == {
        "mR@5": 2, "mR+@5": 1, "mIoU@5": 2, "mIoU+@5": 1,
        "G-mIoU@5": 3, "AUROC": 3, "Rej-F1": 3, "Rej-Acc": 3,
    }  # fmt: skip


def test_a_case_by_hand() -> None:
    """Two moments, [0, 10) and [20, 30); found [0, 8) at .9, [21, 31) at .7 and [40, 50) at .3."""
    qrels = Qrels.from_dict(
        {"q": [{"video_id": "v", "start": 20 * i, "end": 20 * i + 10, "relevance": 1} for i in range(2)]}
    )
    spans = [(0, 8, 0.9), (21, 31, 0.7), (40, 50, 0.3)]
    run = Run.from_dict({"q": [{"video_id": "v", "start": s, "end": e, "score": c} for s, e, c in spans]})
    names = ["mR@1", "mR@3", "mR+@3", "mIoU@3", "mIoU+@3", "G-mIoU@1", "G-mIoU@3", "G-mIoU@3,score<=0.9"]
    found = evaluate(run, qrels, names).measures
    first, second = 8 / 10, 9 / 11  # .8 reaches .50 to .80, seven thresholds of ten; .818 too
    assert found == pytest.approx(
        {
            "mR@1": 0.7 / 2,
            "mR@3": 0.7,
            "mR+@3": 0.7,
            "mIoU@3": (first + second) / 2,
            "mIoU+@3": first,
            "G-mIoU@1": first / 2,
            "G-mIoU@3": (first + second) / (3 + 2 - 2),
            "G-mIoU@3,score<=0.9": 0.0,
        }
    )


def test_a_query_judged_with_relevance_0_alone_has_no_answer() -> None:
    row = {"video_id": "v", "start": 0, "end": 4}
    qrels = Qrels.from_dict({"a": [row | {"relevance": 1}], "b": [row | {"relevance": 0}], "c": []})
    run = Run.from_dict({"a": [row | {"score": 0.5}], "b": [row | {"score": 0.2}]})
    found = evaluate(run, qrels, ["AUROC", "Rej-F1", "Rej-F1,score<=0.2", "R@1,IoU>=0.5"])
    assert found.measures == {
        "AUROC": 1.0,
        "Rej-F1": pytest.approx(2 / 3),
        "Rej-F1,score<=0.2": 1.0,
        "R@1,IoU>=0.5": 1.0,
    }
    assert found.missing == ("c",)
    assert found.without_relevant == ("b", "c")
    # A query that the measure does not count has no value beside one that counts all.
    assert np.isnan(found.per_query["R@1,IoU>=0.5"][1:]).all()


def test_comparisons_and_studies_leave_out_what_does_not_count() -> None:
    row = {"video_id": "v", "start": 0, "end": 4}
    qrels = Qrels.from_dict({"a": [row | {"relevance": 1}], "b": []})
    runs = [Run.from_dict({"a": [row | {"score": 1}], "b": []}), Run.from_dict({"a": [], "b": []})]
    names = ["mR@1", "G-mIoU@1", "AUROC"]
    first, second = (evaluate(run, qrels, names) for run in runs)
    assert compare(first, second, "mR@1", trials=10).queries == 1
    assert compare(first, second, "G-mIoU@1", trials=10).difference == -0.5
    with pytest.raises(InvalidValue, match="all queries together"):
        compare(first, second, "AUROC")
    values = per_query_values(dict(zip("xy", runs, strict=True)), qrels, ["mR@1", "G-mIoU@1"])
    assert {name: table.tolist() for name, table in values.items()} == {
        "mR@1": [[1.0], [0.0]], "G-mIoU@1": [[1.0], [0.0]],
    }  # fmt: skip


sure = st.lists(st.integers(0, 6).map(float) | st.just(-math.inf), min_size=1, max_size=12)


@given(sure, sure)
def test_auroc_is_the_share_of_pairs_in_order(answerable: list[float], absent: list[float]) -> None:
    pairs = [(a > b) + (a == b) / 2 for a in answerable for b in absent]
    value = auroc(answerable, absent)
    assert value == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    assert auroc(absent, answerable) == pytest.approx(1 - value, abs=1e-12)
    # Only the order matters.
    assert auroc(*(np.exp(np.array(part)) for part in (answerable, absent))) == pytest.approx(
        value, abs=1e-12
    )


@settings(max_examples=40)
@given(sure, sure, st.integers(0, 3))
def test_the_interval_is_seeded_and_inside(answerable: list[float], absent: list[float], seed: int) -> None:
    low, high = auroc_interval(answerable, absent, trials=200, seed=seed)
    assert (low, high) == auroc_interval(answerable, absent, trials=200, seed=seed)
    assert 0 <= low <= high <= 1
    wide = auroc_interval(answerable, absent, trials=200, seed=seed, confidence=0.99)
    assert wide[0] <= low and high <= wide[1]


def test_the_interval_covers_what_it_should() -> None:
    """Normal scores one deviation apart have an area of Φ(1/√2) = .760; of 100 samples some 95 cover it."""
    random = np.random.default_rng(7)
    covered = 0
    for seed in range(100):
        bounds = auroc_interval(random.normal(1, 1, 60), random.normal(0, 1, 60), trials=400, seed=seed)
        covered += bounds[0] <= 0.7602 <= bounds[1]
    assert 88 <= covered <= 99


def test_the_interval_is_that_of_draws_one_by_one() -> None:
    random = np.random.default_rng(3)
    a, b = random.integers(0, 9, 40).astype(float), random.integers(-3, 6, 30).astype(float)
    drawn = [auroc(random.choice(a, 40), random.choice(b, 30)) for _ in range(4000)]
    assert auroc_interval(a, b) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01)


def test_the_share_refused_where_a_share_is_kept() -> None:
    answerable, absent = np.arange(20.0), np.array([-1.0, 0.0, 0.5, 1.0, 5.0])
    assert refused_share(answerable, absent) == 0.6  # 19 of 20 reach 1: below lie -1, 0 and .5
    assert refused_share(answerable, absent, kept=1.0) == 0.2
    assert refused_share(answerable, absent, kept=0.5) == 1.0


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: auroc([], [1.0]), "with an answer: there is none"),
        (lambda: auroc([1.0], [math.nan]), "score 1 is NaN"),
        (lambda: auroc_interval([1.0], [0.0], trials=0), "trials 0"),
        (lambda: auroc_interval([1.0], [0.0], confidence=1.0), "confidence 1.0"),
        (lambda: refused_share([1.0], [0.0], kept=0.0), "kept 0.0"),
        (lambda: rejection_f1([True], [False]), "no judged query is without an answer"),
        (lambda: rejection_f1([True], [True, False]), "one value each per query"),
        (lambda: Measure.parse("AUROC@5"), "has no depth; write AUROC"),
        (lambda: Measure.parse("G-mIoU"), "depth must be at least 1, for instance G-mIoU@10"),
        (lambda: Measure.parse("mR@5,score<=0.5"), "has no score level"),
        (lambda: Measure.parse("mR@5,IoU>0.5"), "has no overlap; write mR@5"),
        (lambda: Measure("Rej-F1", level=math.inf), "must be a finite number"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        call()


@pytest.mark.parametrize("name", [*NAMES, *TOGETHER, "Rej-F1,score<=-0.25"])
def test_a_measure_prints_as_it_parses(name: str) -> None:
    assert str(Measure.parse(name)) == name
    assert Measure.parse(name.replace("<=", " ≤ ")) == Measure.parse(name)
