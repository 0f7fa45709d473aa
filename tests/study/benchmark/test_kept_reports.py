"""The reports on pages are what the results that are kept make: no cell was written by hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from comparison import report
from comparison.bench import Bench
from comparison.plan import PRESETS

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["third", "large"])
def test_a_report_is_made_of_the_results_that_are_kept(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a changed table, a column that moved, a result that was lost, and a page left behind."""
    for draw in ("_overlaps", "_learned"):
        monkeypatch.setattr(report, draw, lambda found, path: None)
    shutil.copytree(ROOT / "benchmarks" / "comparison" / name, tmp_path / "results")
    page = ROOT / "docs" / "benchmark" / name
    title = (page / "report.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    report.write_report(Bench(tmp_path, PRESETS[name]), tmp_path / "out", title=title, note=lambda _: None)
    made = sorted((tmp_path / "out").iterdir())
    assert len(made) > 10
    for path in made:
        assert path.read_text(encoding="utf-8") == (page / path.name).read_text(encoding="utf-8"), path.name
