"""A fixed draw of what `make torture` tries."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from calls import STRACE
from run import PARTS, tortured

# Each draw takes about a minute at most.
DRAWN = {
    "flips": 40,
    "writes": 30,
    "system calls": 15,
    "media": 60,
    "input": 40,
    "many at once": 100,
    "server": 1000,
    "floods": 600,
    "power": 40,
    "time": 300,
}
MET = {
    "flips": {"refused", "mended"},
    "writes": {"refused", "killed"},
    "system calls": {"refused", "killed"},
    "media": {"read", "refused", "refused by the index"},
    "input": {"refused", "succeeded"},
    "many at once": {"as before", "cycles of the writer"},
    "floods": {"answered", "searches beside floods", "floods"},
    "power": {"as before", "as after"},
    "time": {"as before", "clocks set"},
    "server": {"as before", "right", "refused with a reason", "half requests cut off"},
}
"""Outcomes of each part that must occur: what cannot fail is no trial."""


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_lost(part: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if part == "system calls" and STRACE is None:
        pytest.skip("strace is not installed")
    caplog.set_level(logging.ERROR)
    counts, failures = tortured(part, tmp_path, 0, lambda tried: tried < DRAWN[part])
    assert failures == [] and counts["tried"] >= DRAWN[part]
    assert {outcome for outcome in MET[part] if not counts[outcome]} == set()


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
