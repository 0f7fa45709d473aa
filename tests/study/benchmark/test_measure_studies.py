"""The studies of measures: published numbers where there are some, and what must hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from measure_studies import statistics
from moviola.errors import InvalidValue
from moviola.study.measures import Qrels, Run


def spans(rows: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    start, end = np.array(rows, np.float64).T
    return start, end


def charades(annotations: Path) -> tuple[np.ndarray, np.ndarray]:
    lines = (annotations / "charades-sta" / "charades_sta_test.txt").read_text().splitlines()
    return spans([[float(word) for word in line.split("##")[0].split()[1:3]] for line in lines if line])


def activitynet(annotations: Path) -> tuple[np.ndarray, np.ndarray]:
    videos = json.loads((annotations / "activitynet-captions" / "val_2.json").read_text())
    return spans([stamp for video in videos.values() for stamp in video["timestamps"]])


@pytest.mark.parametrize(
    ("read", "expected"),
    [(charades, (0.846, 0.777, 0.709, 0.647)), (activitynet, (0.907, 0.870, 0.834, 0.802))],
)
def test_label_noise_as_the_paper_computed_it(
    annotations: Path, read: type, expected: tuple[float, ...]
) -> None:
    start, end = read(annotations)
    found = [
        statistics.label_iou(start, end, level, model="paper_fit", datasets=10) for level in statistics.LEVELS
    ]
    assert found == pytest.approx(expected, abs=0.005)


def test_label_noise_as_the_paper_prints_it(annotations: Path) -> None:
    start, end = charades(annotations)
    assert statistics.label_iou(start, end, 1, model="literal", datasets=5) == pytest.approx(0.57, abs=0.01)


def test_noise_falls_with_the_level_and_refuses_what_is_none() -> None:
    start = np.linspace(0, 50, 500)
    for model in statistics.NOISE:
        ious = [statistics.label_iou(start, start + 10, level, model=model) for level in (0.5, 2, 5)]
        assert ious == sorted(ious, reverse=True)
        drawn = statistics.noisy(start, start + 10, 4, np.random.default_rng(0), model)
        assert (drawn[1] > drawn[0]).all()
    with pytest.raises(InvalidValue, match="noise model 'x'"):
        statistics.label_iou(start, start + 1, 1, model="x")
    with pytest.raises(InvalidValue, match="level 0"):
        statistics.label_iou(start, start + 1, 0)


@pytest.mark.parametrize(("theta", "error"), [(0.55, 0.308538), (0.7, 0.022750)])
def test_figure_10(theta: float, error: float) -> None:
    squared, variance, mse = statistics.bias_variance(np.array([theta]), 0.1)["R@1"]
    assert mse[0] == pytest.approx(error, abs=1e-6)
    assert mse[0] == squared[0] + variance[0]
    squared, variance, mse = statistics.bias_variance(np.array([theta]), 0.1)["AxIoU@1"]
    assert (squared[0], variance[0], mse[0]) == (0, 0.1**2, 0.1**2)


def test_tau_is_scipys_ties_included() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        first, second = random.integers(0, 4, (2, 6)).astype(np.float64)
        expected = stats.kendalltau(first, second).statistic
        np.testing.assert_allclose(statistics.tau_b(first, second), expected, atol=1e-12)


def test_agreement_is_symmetric() -> None:
    tau = statistics.agreement(np.random.default_rng(1).random((4, 6)))
    np.testing.assert_array_equal(tau, tau.T)
    np.testing.assert_array_equal(np.diag(tau), 1)


@pytest.mark.parametrize("disjoint", [False, True])
def test_self_agreement_grows_with_the_subset(disjoint: bool) -> None:
    random = np.random.default_rng(2)
    values = random.random((5, 200)) + np.arange(5)[:, None] * 0.1
    found = statistics.self_agreement(values, [5, 20, 100], trials=400, disjoint=disjoint)
    assert list(found.mean) == sorted(found.mean)
    assert list(found.variance) == sorted(found.variance, reverse=True)
    with pytest.raises(InvalidValue, match="subset size"):
        statistics.self_agreement(values, [101 if disjoint else 201], disjoint=disjoint)


def test_whole_sets_agree_with_themselves_and_tied_systems_do_not_count() -> None:
    values = np.array([[0.0, 1.0, 0.5, 0.5], [0.0, 0.0, 1.0, 0.0]])
    assert statistics.self_agreement(values, [4], trials=10).mean[0] == 1
    tied = statistics.self_agreement(np.ones((3, 4)), [2], trials=10)
    assert tied.undefined[0] == 10
    assert np.isnan(tied.mean[0])


def test_all_tied() -> None:
    assert statistics.all_tied(np.array([[0.0, 1.0, 0.5, 0.2], [0.0, 1.0, 0.4, 0.2]])) == 0.75


def test_model_selection() -> None:
    validation = np.array([[0.1, 0.9, 0.5], [0.8, 0.2, 0.1]])
    test = np.array([[1.0, 3.0, 9.0], [2.0, 2.0, 2.0]])
    picked, z = statistics.model_selection(validation, test)
    assert picked.tolist() == [1, 0]
    np.testing.assert_allclose(z, [[1, 0], [-1, 0]])
    with pytest.raises(InvalidValue, match="models"):
        statistics.model_selection(validation, test[:, :2])


def test_noise_moves_a_strict_recall_more_than_axiou() -> None:
    random = np.random.default_rng(5)
    start = random.uniform(0, 20, 200)
    names, videos = list(range(200)), [f"v{i}" for i in range(200)]
    qrels = Qrels.from_columns(names, videos, start, start + 6, np.ones(200))
    runs = {
        str(shift): Run.from_columns(names, videos, start + shift, start + shift + 6, np.ones(200))
        for shift in (0.5, 1.0)
    }
    error = statistics.label_noise(runs, qrels, ["R@1,IoU>0.7", "AxIoU@1"], levels=(1, 2), datasets=5)
    assert error.shape == (2, 2)
    assert (error[0] > error[1]).all()
    assert (error > 0).all()
