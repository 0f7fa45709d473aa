"""Every script beside the package starts: what it imports is there, and it says what it takes.

mypy reads the scripts too (``make check``), so that a renamed function breaks it rather than a reader's run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kernels
from turns import NUMERIC, TURNS

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


@pytest.mark.parametrize("lacking", ["", "Haswell"])
def test_folders_that_make_test_leaves_to_a_kind_of_machine_are_run(
    lacking: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is ignored, and not run, or without its slow tests, or only on some processors."""
    run: list[tuple[tuple[str, ...], str]] = []
    monkeypatch.setattr(kernels, "able", lambda kind, _: kind.name != lacking)
    monkeypatch.setattr(kernels, "passes", lambda _, folders, marks: run.append((folders, marks)) or True)
    monkeypatch.setattr(sys, "argv", ["kernels.py"])
    kernels.main()
    assert run == [(NUMERIC, "not long")]
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["kernels.py", "--folders"])
    kernels.main()
    assert tuple(capsys.readouterr().out.split()) == NUMERIC and len(run) == 1
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ntest: ")[2].partition("\n\n")[0]
    assert "$(NUMERIC:%=--ignore=%)" in recipe and "scripts/kernels.py" in recipe


@pytest.mark.parametrize("lacking", ["", "SkylakeX", "Haswell"])
def test_four_turns_run_everything_on_every_kind_of_machine_once(lacking: str) -> None:
    """A folder that no turn runs under some kernels, one that two run, or a turn that has most to do."""
    kinds = [kind for kind in (kernels.SHIFTED, *kernels.OTHERS) if kind.name != lacking]
    turns = kernels.turns(kinds)
    run = sorted((kind.name, folder) for turn in turns for kind, folders in turn for folder in folders)
    expected = [(kind.name, folder) for kind in kinds for folder in kernels.SHOWN]
    expected += [(kind.name, folder) for kind in kinds if kind != kernels.SHIFTED for folder in NUMERIC]
    assert len(turns) == len(kernels.LONG_SECONDS) == TURNS and run == sorted(expected)
    seconds = [
        sum(
            kernels.SHOWN.get(folder, kernels.NUMERIC_SECONDS / len(NUMERIC))
            for _, own in turn
            for folder in own
        )
        for turn in turns
    ]
    whole = [own + long for own, long in zip(seconds, kernels.LONG_SECONDS, strict=True)]
    assert max(whole) - min(whole) <= kernels.NUMERIC_SECONDS
