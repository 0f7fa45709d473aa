"""A missing folder of reference material fails in CI, and is named where its tests are skipped elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ONE = "study/golden/test_temporal_nms.py"


@pytest.mark.parametrize("ci", ["", "true"])
def test_missing_golden_files(tmp_path: Path, ci: str) -> None:
    environment = {**os.environ, "MOVIOLA_GOLDEN": str(tmp_path / "none"), "CI": ci}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS / ONE)],
        env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = " ".join(run.stdout.split())
    assert "no reference material" in said
    assert "set MOVIOLA_GOLDEN to the one that holds it" in said
    if ci:
        assert run.returncode == 1
        assert "CI skips no test for want of it" in said
    else:
        assert run.returncode == 0
        assert "SKIPPED [1]" in said
