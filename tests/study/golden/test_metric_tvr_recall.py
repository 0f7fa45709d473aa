"""Recall against the TVR evaluator, on real annotations and on several time stamps a query."""

from __future__ import annotations

from typing import Any

import pytest

from moviola.study.measures import tvr_recall

NAME = "metric_tvr_recall"


def shares(sentence: str) -> dict[str, float]:
    """The numbers of ``"v 74.3 t 9.1"``, percent with one decimal, by name."""
    words = sentence.split()
    return {name: float(share) for name, share in zip(words[::2], words[1::2], strict=True)}


def test_every_value(fixture: dict[str, Any]) -> None:
    atol = fixture["tolerance"]["atol"]
    parts = {name: part for name, part in fixture.items() if isinstance(part, dict) and "submission" in part}
    assert parts
    for name, part in parts.items():
        found = tvr_recall(
            part["submission"], part["ground_truth"], overlaps=fixture["iou"], tops=fixture["K"]
        )
        for task, values in part["expected"].items():
            for key, value in values.items():
                if isinstance(value, str):
                    assert shares(found[task][key]) == pytest.approx(shares(value), abs=0.1 + 1e-9)
                else:
                    assert found[task][key] == pytest.approx(value, abs=atol + 1e-9), (name, task, key)


def test_shares_of_the_types_have_two_decimals() -> None:
    """Like all percentages of the evaluator: two in three queries are 66.67 %."""
    kinds = ["v", "v", "t"]
    truth = [{"desc_id": n, "vid_name": "a", "ts": [0, 1], "type": kind} for n, kind in enumerate(kinds)]
    found = tvr_recall({"video2idx": {"a": 0}, "VR": []}, truth)
    assert found["VR_by_type"]["desc_type_ratio"] == "v 66.67 t 33.33"


@pytest.mark.parametrize(("end", "right"), [(1.9, 0.0), (2.0, 100.0), (2.1, 100.0)])
def test_an_overlap_of_exactly_the_threshold_counts(end: float, right: float) -> None:
    """Half of a moment of 4 s has an IoU of exactly 0.5."""
    truth = [{"desc_id": 1, "vid_name": "a", "ts": [0, 4]}]
    for task in ("VCMR", "SVMR"):
        answer = {"desc_id": 1, "predictions": [[0, 0, end, 1.0]]}
        found = tvr_recall({"video2idx": {"a": 0}, task: [answer]}, truth)
        assert found[task]["0.5-r1"] == right
