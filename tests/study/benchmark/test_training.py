"""The benchmark of training compares the same work: no timing is asserted."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

import training


@pytest.mark.parametrize("name", training.MODELS)
def test_both_ways_learn_from_the_same_pairs(name: str, tmp_path: Path) -> None:
    split = training.synthetic(tmp_path, 30)
    found = training.measured(name, split, Namespace(batch=6, device="cpu", steps=1))
    assert found["difference"] < 1e-4
    assert 0 < found["held"] <= 6 * 3
    assert 0 < found["longest"] <= training.CLIPS
