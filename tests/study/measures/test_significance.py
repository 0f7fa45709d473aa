"""Paired tests and intervals, beside scipy and beside what must hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from moviola.errors import InvalidValue
from moviola.study.measures import (
    Qrels,
    Results,
    Run,
    bootstrap_interval,
    compare,
    evaluate,
    permutation_test,
    t_test,
)


def made_up(seed: int = 0, shift: float = 0.0, queries: int = 40) -> tuple[Qrels, Run]:
    random = np.random.default_rng(seed)
    start = np.random.default_rng(9).uniform(0, 20, queries)
    names, videos = list(range(queries)), [f"v{i}" for i in range(queries)]
    qrels = Qrels.from_columns(names, videos, start, start + 5, np.arange(queries) % 3 + 1)
    moved = start + random.normal(shift, 1, queries)
    return qrels, Run.from_columns(names, videos, moved, moved + 5, np.ones(queries))


def results(seed: int, shift: float, preset: str | None = None) -> Results:
    qrels, run = made_up(seed, shift)
    return evaluate(run, qrels, ["AxIoU@1"], preset)


def test_t_is_scipys() -> None:
    random = np.random.default_rng(1)
    first, second = random.random((2, 30))
    assert t_test(second - first) == pytest.approx(stats.ttest_rel(second, first).pvalue, rel=1e-12)


def test_few_queries_are_permuted_exactly() -> None:
    gains = np.array([0.3, 0.2, 0.5, 0.1])
    assert permutation_test(gains) == 2 / 16
    assert permutation_test(np.append(gains, np.zeros(50))) == 2 / 16
    assert permutation_test(np.zeros(5)) == 1


def test_many_queries_agree_with_scipys_permutation() -> None:
    gains = np.random.default_rng(3).normal(0.25, 1, 60)
    expected = stats.permutation_test(
        (gains,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(0)
    ).pvalue
    assert permutation_test(gains, trials=20_000) == pytest.approx(expected, abs=0.01)
    assert permutation_test(gains, seed=5) == permutation_test(gains, seed=5)


def test_drawn_signs_count_the_observed_ones() -> None:
    """No p value is 0: of 99 draws, none of which gives 30 equal signs, it is 1 of 100."""
    assert permutation_test(np.full(30, 0.5), trials=99) == 1 / 100


def test_an_interval_of_one_trial_is_drawn_without_a_warning() -> None:
    low, high = bootstrap_interval(np.array([0.0, 0.5, 1.0]), trials=1)  # warnings are errors here
    assert 0 <= low <= high <= 1


def test_the_bootstrap_interval_is_that_of_the_mean() -> None:
    values = np.random.default_rng(4).normal(3, 1, 400)
    low, high = bootstrap_interval(values)
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.05)
    narrow = bootstrap_interval(values, confidence=0.5)
    assert low < narrow[0] < narrow[1] < high
    with pytest.raises(InvalidValue, match="confidence"):
        bootstrap_interval(values, confidence=95)
    for test in (bootstrap_interval, permutation_test):
        with pytest.raises(InvalidValue, match="seed -1"):
            test(values, seed=-1)


@pytest.mark.parametrize("gains", [[0.1, 0.1, 0.1], [0.1, 0.1 + 1e-16, 0.1]])
def test_queries_that_all_gain_the_same_leave_no_doubt(gains: list[float]) -> None:
    assert t_test(np.array(gains)) == 0
    assert t_test(np.zeros(3)) == t_test(np.array(gains[:1])) == 1


def test_the_interval_of_one_query_is_its_value() -> None:
    assert bootstrap_interval(np.array([0.25])) == (0.25, 0.25)
    assert bootstrap_interval(np.zeros(0)) == (0, 0)


def test_a_worse_system_is_found_worse_and_the_same_one_the_same() -> None:
    good, bad = results(0, 0.0), results(1, 3.0)
    found = compare(good, bad, "AxIoU@1")
    assert found.difference == pytest.approx(found.second - found.first)
    assert found.high < 0
    assert found.losses > found.wins
    assert found.permutation < 0.001
    assert found.t < 0.001
    same = compare(good, good, "AxIoU@1")
    assert (same.difference, same.permutation, same.t, same.wins, same.losses) == (0, 1, 1, 0, 0)


def test_what_rounding_leaves_is_no_difference() -> None:
    """A moment given ten times has the mean IoU of the same moment given once, but for the last digits."""
    qrels, once = made_up()
    ten_times = Run.from_dict({query: rows * 10 for query, rows in once.rows().items()})
    first, second = (evaluate(run, qrels, "AxIoU@10") for run in (once, ten_times))
    assert (first.by_query("AxIoU@10") != second.by_query("AxIoU@10")).any()
    found = compare(first, second, "AxIoU@10")
    assert (found.difference, found.low, found.high, found.permutation, found.t) == (0, 0, 0, 1, 1)
    assert (found.wins, found.losses) == (0, 0)


def test_systems_on_other_queries_are_not_compared() -> None:
    qrels, run = made_up()
    fewer = Run.from_dict(dict(list(run.rows().items())[:10]))
    with pytest.raises(InvalidValue, match="different queries"):
        compare(evaluate(run, qrels, "AxIoU@1", "spr"), evaluate(fewer, qrels, "AxIoU@1", "spr"), "AxIoU@1")
    with pytest.raises(InvalidValue, match="not evaluated"):
        compare(results(0, 0), results(1, 0), "R@1,IoU>0.5")


@pytest.mark.parametrize("function", [bootstrap_interval, permutation_test, t_test])
def test_a_query_that_does_not_count_is_refused(function: Callable[[object], object]) -> None:
    with pytest.raises(InvalidValue, match="NaN is no value; leave out queries that do not count"):
        function(np.array([0.5, np.nan, 0.25]))
    assert function([0.5, 0.25]) == function(np.array([0.5, 0.25]))
