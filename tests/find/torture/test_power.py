"""What says that it is done has reached the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from power import PowerLoss

_MIXTURES = 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index", "compact", "keep", "upload"])
def test_the_power_fails_when_all_is_done(name: str, tmp_path: Path) -> None:
    """A sync that is left out: of a file, of its folder, of a commit, of new or moved features."""
    power = PowerLoss(tmp_path, 0, [name])
    found = [
        problem for mixture in range(_MIXTURES) for problem in power.disturb(name, power.last(name), mixture)
    ]
    assert power.failures + found == []


@pytest.mark.slow
def test_the_power_fails_while_an_upload_gets_its_name(tmp_path: Path) -> None:
    """Its first name was deleted before the second one was synced: a disk might show neither."""
    power = PowerLoss(tmp_path, 0, ["upload"])
    calls = range(10, power.last("upload"))
    problems = [p for call in calls for mixture in range(6) for p in power.disturb("upload", call, mixture)]
    assert problems == []
