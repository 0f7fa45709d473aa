"""The figures of the page about more film are those of the files that it names."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scale import simulated
from scale.hours import HOURS, Constants, plan_of, table

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "plan.md").read_text(encoding="utf-8")


def _written(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / name).read_text(encoding="utf-8"))


def test_costs_are_those_of_the_constants() -> None:
    """A constant that is measured again, or a table that is changed by hand, shows here."""
    known = Constants.read()
    assert table([plan_of(hours, known) for hours in HOURS]) in PAGE
    assert f"{known.pictures:.0f} and {known.pictures + known.text:.0f} processor seconds" in PAGE
    assert f"{known.megabytes:.1f} MB an hour" in PAGE
    assert f"{known.segment_bytes:,.0f} bytes a segment" in PAGE
    assert f"{known.index_segments:,} segments (`cost.csv`: {known.index_megabytes:.0f} MB" in PAGE
    assert f"`docs/benchmark/scale/search.csv`: {known.segments_ms} ms" in PAGE


def test_costs_grow_with_hours_and_prices() -> None:
    """Ten times the film costs ten times as much, more cores only shorten what they share."""
    known = Constants.read()
    plans = [plan_of(hours, known) for hours in HOURS]
    for one, other in pairwise(plans):
        assert other.core_hours == pytest.approx(10 * one.core_hours)
        assert other.gigabytes == pytest.approx(10 * one.gigabytes)
        assert other.processor_ms >= one.processor_ms
    million, dear = plans[-1], plan_of(10**6, known, cores=64, core_hour=0.4)
    assert dear.to_index == pytest.approx(10 * million.to_index)
    assert dear.processor_ms == million.processor_ms
    assert dear.answer_ms == pytest.approx(million.answer_ms / 4)


def test_simulations_are_those_of_their_files() -> None:
    """Recall by depth; what several libraries gave is among the tables that were measured once."""
    found = _written("scale/simulated.json")
    assert simulated.table(found) in PAGE
    assert f"within {simulated.farthest(found):.3f}".replace("0.", ".", 1) in PAGE


def test_recall_of_parts() -> None:
    """Of ten answers, eight in one part and two in another, three of each part are five."""
    assert simulated.recall(np.array([0] * 8 + [2] * 2), [1, 3, 8]) == [0.2, 0.5, 1.0]
