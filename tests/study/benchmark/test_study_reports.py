"""Whole studies, from Python and by `benchmarks/study.py`."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from measure_studies.reports import agreement, effectiveness, model_selection, read_runs, tied
from moviola.errors import InvalidValue
from moviola.study.measures import Qrels, Run, write_qrels, write_run
from study import study

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'moviola[studies]'")

QRELS = Qrels.from_dict({"q": [{"video_id": "v", "start": 0, "end": 10, "relevance": 1}]})


TWO = Qrels.from_dict({q: [{"video_id": "v", "start": 0, "end": 10, "relevance": 1}] for q in "qr"})


def answer(end: float) -> dict[str, object]:
    return {"video_id": "v", "start": 0, "end": end, "score": 1}


def run(end: float) -> Run:
    return Run.from_dict({"q": [answer(end)]})


def test_undefined_values_are_left_empty(tmp_path: Path) -> None:
    """A measure that ties all systems has no rank correlation."""
    made = agreement({"a": run(5), "b": run(9)}, QRELS, ["AxIoU@1", "R@1,IoU>0.3"])
    assert made.header == ("first", "second", "tau_b")
    assert [row[2] for row in made.rows] == [1.0, None, None, None]
    table, *pictures = made.write(tmp_path / "new" / "folder")
    assert [path.suffix for path in pictures] == [".png", ".svg"]
    with table.open() as file:
        assert [row["tau_b"] for row in csv.DictReader(file)] == ["1.0", "", "", ""]


def test_systems_are_sorted_by_recall_of_five() -> None:
    """The better one is last, whatever the measures; AxIoU@1 is the overlap of its one answer."""
    made = effectiveness({"good": run(9), "bad": run(2), "fair": run(5.5)}, QRELS, ["AxIoU@1"])
    assert made.header == ("system", "measure", "value")
    assert [row[:2] for row in made.rows] == [(name, "AxIoU@1") for name in ("bad", "good", "fair")]
    assert [row[2] for row in made.rows] == pytest.approx([0.2, 0.9, 0.55])


def test_measures_are_shown_by_the_name_that_they_print(tmp_path: Path) -> None:
    made = tied({"a": run(5), "b": run(9)}, QRELS, ["R @ 1, IoU > .3"])
    assert made.rows == (("R@1,IoU>0.3", 1.0),)


def test_runs_of_one_name_are_distinguished(tmp_path: Path) -> None:
    paths = [tmp_path / "one" / "run.json", tmp_path / "two" / "run.json", tmp_path / "other.json"]
    for path in paths:
        write_run(run(5), path)
    assert list(read_runs(paths)) == [str(paths[0]), str(paths[1]), "other.json"]


def test_selection_names_what_is_missing(tmp_path: Path) -> None:
    val, test = tmp_path / "val", tmp_path / "test"
    for folder in (val, test):
        write_qrels(QRELS, folder / "qrels.json")
    with pytest.raises(InvalidValue, match="val: at least two runs"):
        model_selection(val, test)
    for name in ("a.json", "b.json"):
        write_run(run(5), val / name)
    with pytest.raises(InvalidValue, match=r"test: a\.json is missing"):
        model_selection(val, test)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("effectiveness", ()), ("agreement", ()), ("self-agreement", ("--trials", "5", "--size", "1")),
        ("noise", ("--datasets", "2")),
        ("tied", ()), ("labels", ("--datasets", "1")), ("selection", ()), ("bias", ()),
    ],
)  # fmt: skip
def test_each_command_leaves_figures_and_numbers(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    for folder in (tmp_path / "val", tmp_path / "test"):
        write_qrels(TWO, folder / "qrels.json")
        for system, end in (("a", 5), ("b", 9), ("c", 7)):
            write_run(Run.from_dict({"q": [answer(end)], "r": [answer(14 - end)]}), folder / f"{system}.json")
    test = tmp_path / "test"
    inputs = {"labels": [test / "qrels.json"], "selection": [tmp_path / "val", test], "bias": []}
    paths = inputs.get(name, [test / "a.json", test / "b.json", test / "c.json", test / "qrels.json"])
    done = CliRunner().invoke(study, [name, *map(str, paths), *options, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    table, *pictures = sorted((tmp_path / "out").iterdir())
    assert [path.suffix for path in pictures] == [".png", ".svg"]
    assert len(table.read_text().splitlines()) > 1 and all(path.stat().st_size > 100 for path in pictures)
