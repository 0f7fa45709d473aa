"""A fixed draw of what `make torture` tries."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from run import PARTS, tortured

# So many of each part take about a minute.
DRAWN = {"flips": 40, "writes": 30}


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_lost(part: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    counts, failures = tortured(part, tmp_path, 0, lambda tried: tried < DRAWN[part])
    assert failures == [] and counts["tried"] == DRAWN[part]
    # What cannot fail is no trial: each part has met what it is for.
    assert counts["refused"] and counts[{"flips": "mended", "writes": "killed"}[part]]
