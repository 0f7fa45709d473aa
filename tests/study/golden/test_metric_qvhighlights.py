"""QVHighlights: published predictions give the published values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moviola.study.measures import qvhighlights, read_qvhighlights


def test_every_value(golden: Path) -> None:
    fixture = json.loads((golden / "metric_qvhighlights.json").read_text())
    atol = fixture["tolerance"]["atol"]
    folder = golden / fixture["folder"]
    truth = read_qvhighlights(folder / fixture["ground_truth"])
    assert fixture["cases"]
    for case in fixture["cases"]:
        found = qvhighlights(read_qvhighlights(folder / case["predictions"]), truth)
        expected = json.loads((folder / case["expected"]).read_text())
        compare(found, expected, atol, case["predictions"])


def compare(found: Any, expected: Any, atol: float, where: str) -> None:
    """Every expected value, however deep."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            compare(found[key], value, atol, f"{where} {key}")
    else:
        assert found == pytest.approx(expected, abs=atol + 1e-9), where
