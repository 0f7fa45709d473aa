"""A fixed draw of what `make torture` tries."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from run import PARTS, tortured

# Each draw takes about a minute at most.
DRAWN = {
    "flips": 40,
    "writes": 30,
    "media": 60,
    "input": 40,
    "many at once": 100,
    "server": 1000,
    "power": 40,
    "time": 300,
}
MET = {
    "flips": {"refused", "mended"},
    "writes": {"refused", "killed"},
    "media": {"read", "refused", "refused by the index"},
    "input": {"refused", "succeeded"},
    "many at once": {"as before", "cycles of the writer"},
    "power": {"as before", "as after"},
    "time": {"as before", "clocks set"},
    "server": {"as before", "right", "refused with a reason", "half requests cut off"},
}
"""Outcomes of each part that must occur: what cannot fail is no trial."""


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_lost(part: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    counts, failures = tortured(part, tmp_path, 0, lambda tried: tried < DRAWN[part])
    assert failures == [] and counts["tried"] >= DRAWN[part]
    assert {outcome for outcome in MET[part] if not counts[outcome]} == set()
