"""A share of what `make torture` tries."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from calls import STRACE
from damaged_media import EXTRAS
from run import PARTS, tortured
from turns import SHARES, number

# The most that is tried of a share, and the turn; each takes about a minute at most.
DRAWN = {
    "flips": (1000, 0),
    "writes": (1000, None),
    "changes": (20, 2),
    "system calls": (15, 1),
    "media": (60, 2),
    "input": (40, 3),
    "many at once": (100, 2),
    "server": (1000, 1),
    "floods": (600, 2),
    "power": (1000, 3),
    "time": (300, 0),
}
MET = {
    "flips": {"refused", "mended"},
    "writes": {"refused", "killed"},
    "changes": {"refused"},
    "system calls": {"refused", "killed"},
    "media": {
        "read",
        "refused",
        "refused by the index",
        "films that are turned",
        *(f"films with {extra}" for extra in EXTRAS),
    },
    "input": {"refused", "succeeded"},
    "many at once": {"with videos away", "cycles of the writers"},
    "floods": {"answered", "searches beside floods", "floods"},
    "power": {"as before", "as after"},
    "time": {"as before", "clocks set"},
    "server": {"as before", "right", "refused with a reason", "half requests cut off"},
}
"""Outcomes of each part that must occur: what cannot fail is no trial."""


def _of_a_turn(part: str) -> object:
    _, turn = DRAWN[part]
    return pytest.param(part, marks=pytest.mark.long if turn is None else pytest.mark.long(turn))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", [_of_a_turn(part) for part in PARTS])
def test_nothing_is_lost(part: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Another share by each run: 31 of them let each call that writes fail in each way."""
    if part == "system calls" and STRACE is None:
        pytest.skip("strace is not installed")
    caplog.set_level(logging.ERROR)
    run, (most, _) = number() or 0, DRAWN[part]
    counts, failures = tortured(part, tmp_path, run, lambda tried: tried < most, (run % SHARES, SHARES))
    assert failures == [], f"seed {run}, share {run % SHARES} of 0 to {SHARES - 1}"
    assert counts["tried"] >= min(most, counts.get("points", most))
    assert {outcome for outcome in MET[part] if not counts.get(outcome)} == set()


def test_it_runs_by_itself() -> None:
    """Without the paths to modules that pytest adds, as by `make torture`."""
    script = Path(__file__).with_name("run.py")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    source = str(script.parents[3] / "src")
    run = subprocess.run(
        [sys.executable, script, "--help"],
        env=environment | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--seed" in run.stdout, run.stderr
