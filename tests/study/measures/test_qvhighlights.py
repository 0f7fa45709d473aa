"""QVHighlights: what its published files do not show; those are in ``tests/study/golden``."""

from __future__ import annotations

from typing import Any

import pytest

from moviola.errors import DataError
from moviola.study.measures import qvhighlights

TRUTH = {
    "qid": 1, "duration": 10, "relevant_windows": [[0, 4]], "relevant_clip_ids": [0, 1],
    "saliency_scores": [[4, 4, 4], [4, 4, 4]],
}  # fmt: skip
ANSWER = {"qid": 1, "pred_relevant_windows": [[0, 4, 1]], "pred_saliency_scores": [0.5, 0.4, 0.3, 0.2, 0.1]}


def highlights(scores: list[float]) -> Any:
    return qvhighlights([ANSWER | {"pred_saliency_scores": scores}], [TRUTH])["HL-min-Fair"]


def test_clips_without_a_predicted_score_have_zero() -> None:
    """Two of five clips are relevant. The first alone is scored; the other is one of four equal ones."""
    assert highlights([0.5, 0.4, 0.3, 0.2, 0.1]) == {"HL-mAP": 100, "HL-Hit1": 100}
    assert highlights([0.5]) == {"HL-mAP": 70, "HL-Hit1": 100}  # (1 + 2 / 5) / 2
    assert highlights([]) == {"HL-mAP": 40, "HL-Hit1": 0}


@pytest.mark.parametrize(
    ("length", "kind"),
    [(10, "short"), (11, "middle"), (30, "middle"), (31, "long"), (150, "long"), (151, None)],
)
def test_a_window_of_exactly_the_longest_length_is_in_its_class(length: float, kind: str | None) -> None:
    found = qvhighlights(
        [{"qid": 1, "pred_relevant_windows": [[0, length, 1]]}],
        [{"qid": 1, "relevant_windows": [[0, length]]}],
    )
    kinds = ("short", "middle", "long")
    assert {name: found[name]["MR-mAP"]["average"] for name in kinds} == {
        name: 100.0 * (name == kind) for name in kinds
    }


def test_without_a_judged_query_every_value_is_zero() -> None:
    found = qvhighlights([ANSWER], [])
    assert set(found["brief"].values()) == {0}
    assert found["HL-min-Fair"] == {"HL-mAP": 0, "HL-Hit1": 0}


@pytest.mark.parametrize(
    ("answer", "truth", "complaint"),
    [
        ({"pred_relevant_windows": None}, {}, "qid 1: pred_relevant_windows: a list of 3 numbers each"),
        ({"pred_relevant_windows": [[0, 4]]}, {}, "pred_relevant_windows: a list of 3 numbers each"),
        ({"pred_relevant_windows": [[0, 4, float("nan")]]}, {}, "pred_relevant_windows: a list of 3 numbers"),
        ({"pred_saliency_scores": ["high"]}, {}, "pred_saliency_scores: a list of numbers is expected"),
        ({}, {"relevant_windows": None}, "qid 1: relevant_windows: a list of 2 numbers each"),
        ({}, {"relevant_windows": [[0, 4, 9], [6, 7, 8]]}, "relevant_windows: a list of 2 numbers each"),
        ({}, {"duration": "long"}, "annotation of qid 1: duration: 'long' is no number"),
        ({}, {"relevant_clip_ids": [0, 7]}, "qid 1: relevant_clip_ids: 7 is no clip of 5"),
        ({}, {"relevant_clip_ids": [-1, 2]}, "qid 1: relevant_clip_ids: -1 is no clip of 5"),
        ({}, {"relevant_clip_ids": [0]}, "qid 1: 2 saliency_scores of 1 relevant_clip_ids"),
    ],
)
def test_malformed_rows_are_named(answer: dict[str, Any], truth: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        qvhighlights([ANSWER | answer], [TRUTH | truth])
