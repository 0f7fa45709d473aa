"""Which type is chosen, and how far it looks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.index import BACKENDS, Exact, suited, tune


@pytest.mark.parametrize(
    ("count", "present", "kind"),
    [
        (0, "", "flat"), (49_999, "flat", "flat"), (50_000, "flat", "reranked"), (50_000, "", "reranked"),
        (30_000, "reranked", "reranked"), (24_999, "reranked", "flat"),
    ],
)  # fmt: skip
def test_the_type_goes_by_the_number_of_vectors(count: int, present: str, kind: str) -> None:
    assert suited(count, present) == kind
    assert kind in BACKENDS


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_exact_answers_come_of_parts() -> None:
    generator = np.random.default_rng(0)
    vectors, queries = unit(generator.normal(size=(100, 8))), unit(generator.normal(size=(4, 8)))
    exact = Exact(queries, 10)
    for part in (slice(0, 3), slice(3, 60), slice(60, 100)):
        exact.see(np.arange(100)[part] * 2, vectors[part])
    wanted = np.argsort(-(queries @ vectors.T), axis=1)[:, :10] * 2
    np.testing.assert_array_equal(np.sort(exact.ids, axis=1), np.sort(wanted, axis=1))


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_tuning_leaves_what_finds_enough_or_most(name: str) -> None:
    generator = np.random.default_rng(0)
    vectors, queries = unit(generator.normal(size=(1500, 16))), unit(generator.normal(size=(5, 16)))
    index = BACKENDS[name](16)
    index.build(np.arange(1500, dtype=np.int64), vectors)
    exact = Exact(queries, 20)
    exact.see(np.arange(1500, dtype=np.int64), vectors)
    trials = tune(index, {"text": (queries, exact.ids), "picture": (queries, exact.ids)})
    choices = [len(values) for values in index.LADDERS.values()]
    assert len(trials) == (np.prod(choices) if choices else 1)
    (left,) = [trial for trial in trials if trial.parameters == index.parameters]
    most = max(min(trial.recall.values()) for trial in trials)
    assert min(left.recall.values()) >= min(0.99, most)
