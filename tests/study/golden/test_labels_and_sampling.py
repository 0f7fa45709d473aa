"""Seconds to clips, windows, and pooled features against the published values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.features import normalise_rows
from moviola.retrieval.saved.clip_windows import LABELS, clip_windows, pool_clips

NAME = "labels_and_sampling"

CLIP_SECONDS = 1.5
CONVENTIONS = {"tvr_ranking": "tvr_ranking", "xml_training": "xml", "conquer": "conquer"}


@pytest.mark.parametrize("published", CONVENTIONS)
def test_labels(fixture: dict[str, Any], published: str) -> None:
    starts, ends = np.array([case["moment"] for case in fixture["label_inputs"]]).T
    clips = np.array([case["clips"] for case in fixture["label_inputs"]])
    labels = LABELS[CONVENTIONS[published]].labels(starts, ends, clips, CLIP_SECONDS)
    np.testing.assert_array_equal(labels, fixture["label_outputs"][published])


def test_every_convention_of_the_fixture_is_known(fixture: dict[str, Any]) -> None:
    assert set(fixture["label_outputs"]) == set(CONVENTIONS)


def test_windows(fixture: dict[str, Any]) -> None:
    cases = fixture["window_inputs"]
    starts, ends = np.array([case["window"] for case in cases], dtype=np.float64).T
    moments = np.array([case["moment"] for case in cases]).T
    windows = clip_windows(starts, ends, [case["clips"] for case in cases], clip_seconds=CLIP_SECONDS)
    labels = windows.labels(moments[0], moments[1], LABELS["spr"])
    inside = np.clip(moments, windows.start, windows.end) - windows.start
    for i, expected in enumerate(fixture["window_outputs"]):
        assert [windows.first[i], windows.stop[i]] == expected["clip_range"]
        assert [windows.start[i], windows.end[i]] == pytest.approx(expected["window_seconds"], abs=1e-9)
        assert inside[:, i] == pytest.approx(expected["moment_in_window"], abs=1e-9)
        assert labels[i].tolist() == expected["labels"]


def test_pooling_and_normalisation(fixture: dict[str, Any], golden: Path) -> None:
    arrays = np.load(golden / "labels_and_sampling.npz", allow_pickle=False)
    tolerance = fixture["tolerance"]["features"]
    outputs = [name for name in arrays if name.startswith("out/")]
    assert outputs
    for name in outputs:
        kind, longest = name.removeprefix("out/").rsplit("_to_", 1)
        kind, source = kind.rsplit("_", 1)
        pooled = pool_clips(arrays[f"in/{source}"], int(longest))
        computed = {"pooled": pooled, "pooled_normalised": normalise_rows(pooled)}[kind]
        assert computed.dtype == np.float32
        np.testing.assert_allclose(computed, arrays[name], **tolerance, err_msg=name)
