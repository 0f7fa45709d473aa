"""The commands: evaluate and compare."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from moviola.cli import all_commands
from moviola.errors import MoviolaError
from moviola.measures import Qrels, Run, write_qrels, write_run

app = all_commands()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three systems, two splits, 20 queries; the last query is not answered, one answer was not asked for."""
    base = tmp_path_factory.mktemp("measured")
    for split in ("val", "test"):
        (base / split).mkdir()
        random = np.random.default_rng(len(split))
        start = random.uniform(0, 20, 20)
        names, videos = list(range(20)), [f"v{i}" for i in range(20)]
        qrels = Qrels.from_columns(names, videos, start, start + 5, np.arange(20) % 4 + 1)
        write_qrels(qrels, base / split / "qrels.json")
        for system in range(3):
            query = np.repeat(np.arange(20), 5)
            moved = start[query] + random.normal(0, 0.5 + system, 100)
            # Query 19 becomes 20, which nobody judged.
            asked = np.where(query == 19, 20, query)
            columns = ([f"v{i}" for i in query], moved, moved + 5, random.random(100))
            write_run(Run.from_columns(asked, *columns), base / split / f"system{system}.json")
    return base


def moviola(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_evaluate_as_json(folder: Path) -> None:
    name = "nDCG@20,IoU>=0.5"
    found = moviola(
        "evaluate",
        folder / "test/system0.json",
        folder / "test/qrels.json",
        "-m",
        name,
        "-m",
        "AxIoU@10",
        "--json",
    )
    assert found.exit_code == 0
    content = json.loads(found.stdout)
    assert set(content) == {"measures", "queries", "counts", "missing", "extra"}
    assert set(content["measures"]) == {name, "AxIoU@10"}
    assert (content["queries"], content["missing"], content["extra"]) == (20, ["19"], ["20"])


def test_evaluate_with_a_preset_and_by_query(folder: Path) -> None:
    files = (folder / "test/system0.json", folder / "test/qrels.json")
    found = json.loads(moviola("evaluate", *files, "--preset", "spr", "--per-query", "--json").stdout)
    assert found["queries"] == 19
    assert list(found["per_query"]) == [str(n) for n in range(19)]
    for name, mean in found["measures"].items():
        assert mean == pytest.approx(np.mean([row[name] for row in found["per_query"].values()]))


def test_evaluate_for_people(folder: Path) -> None:
    found = moviola("evaluate", folder / "test/system0.json", folder / "test/qrels.json", "--per-query")
    assert found.exit_code == 0
    assert "nDCG@20,IoU>=0.5" in found.output
    assert "missing from the run: 19" in found.output


def test_what_is_wrong_is_said(folder: Path) -> None:
    files = (folder / "test/system0.json", folder / "test/qrels.json")
    for arguments in (("-m", "nope"), ("--preset", "nope"), ("--run-format", "nope")):
        assert isinstance(moviola("evaluate", *files, *arguments).exception, MoviolaError)
    assert isinstance(moviola("compare", *files).exception, MoviolaError)


def test_compare(folder: Path) -> None:
    runs = [folder / f"test/system{n}.json" for n in range(3)]
    arguments = ("compare", *runs, folder / "test/qrels.json", "-m", "AxIoU@5", "--trials", 500)
    rows = [json.loads(line) for line in moviola(*arguments, "--json").stdout.splitlines()]
    assert [row["run"] for row in rows] == [str(run) for run in runs[1:]]
    assert all(row["low"] <= row["difference"] <= row["high"] for row in rows)
    assert moviola(*arguments).exit_code == 0
