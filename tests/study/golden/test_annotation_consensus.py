"""The agreed levels of real ratings (golden ``annotation_consensus``), through the command."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from moviola.study.datasets.building.annotation_files import read_ratings
from moviola.study.datasets.building.consensus import agreement, consensus


def test_agreed_levels_equal_the_release(golden: Path) -> None:
    case = json.loads((golden / "annotation_consensus.json").read_text())
    outcome = consensus(read_ratings(golden / case["file"]))
    expected = {pair: level for pair, level in case["expected"].items() if level is not None}
    assert outcome.agreed == expected
    assert set(outcome.discarded) | set(outcome.open) == set(case["expected"]) - set(expected)
    assert outcome.uncountable == ()
    assert len(outcome.agreed) + case["sample"]["discarded"] == case["sample"]["pairs"]
    histogram = {int(level): count for level, count in case["sample"]["level_histogram"].items()}
    assert Counter(outcome.agreed.values()) == histogram
    assert agreement(read_ratings(golden / case["file"])).histogram.sum() == len(expected)


def test_the_command_writes_them(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from moviola.cli import main

    case = json.loads((golden / "annotation_consensus.json").read_text())
    out = tmp_path / "agreed.csv"
    words = ["moviola", "dataset", "consensus", str(golden / case["file"]), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code in (0, None)
    with out.open() as file:
        rows = {row["pair_id"]: int(row["relevance"]) for row in csv.DictReader(file)}
    assert rows == {pair: level for pair, level in case["expected"].items() if level is not None}
