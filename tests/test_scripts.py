"""Every script beside the package starts: what it imports is there, and it says what it takes.

mypy reads the scripts too (``make check``), so that a renamed function breaks it rather than a reader's run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = [
    path
    for folder in ("benchmarks", "examples", "scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")  # the site's hooks are none
]


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_starts_and_explains_itself(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.lstrip().lower().startswith("usage: ")
    assert not list(tmp_path.iterdir())
