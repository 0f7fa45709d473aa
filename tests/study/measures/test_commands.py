"""The commands: evaluate and compare."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from moviola.cli import all_commands
from moviola.errors import InvalidValue, MoviolaError
from moviola.study.measures import Qrels, Run, read_qrels, read_run, write_qrels, write_run

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
            ids = np.where(query == 19, 20, query)
            columns = ([f"v{i}" for i in query], moved, moved + 5, random.random(100))
            write_run(Run.from_columns(ids, *columns), base / split / f"system{system}.json")
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


def test_faults_are_named(folder: Path) -> None:
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


@pytest.mark.parametrize(
    "given",
    [
        ("compare", "qrels", "system0", "system1"),
        ("compare", "system0", "qrels", "system1"),
        ("evaluate", "qrels", "system0"),
    ],
    ids=" ".join,
)
def test_files_in_the_wrong_order_are_named(folder: Path, given: tuple[str, ...]) -> None:
    """A field that is missing was named, of a file that lacks nothing but its right place."""
    command, *names = given
    files = [folder / f"test/{name}.json" for name in names]
    wanted = "RUN RUN … QRELS, the baseline first" if command == "compare" else "RUN QRELS, the run first"
    said = str(moviola(command, *files).exception)
    assert f"{names[-1]}.json: a run, where the judgements are expected; give {wanted}" in said


def test_a_damaged_file_is_not_taken_for_a_misplaced_one(folder: Path, tmp_path: Path) -> None:
    """A file that is neither a run nor judgements keeps its own error; judgements twice say so of the run."""
    (tmp_path / "bad.json").write_text('{"1": 7}')
    qrels = folder / "test/qrels.json"
    assert "a list of moments" in str(moviola("evaluate", tmp_path / "bad.json", qrels).exception)
    assert "a list of moments" in str(moviola("evaluate", qrels, tmp_path / "bad.json").exception)
    again = tmp_path / "again.json"
    again.write_bytes(qrels.read_bytes())
    assert "judgements, where a run is expected" in str(moviola("evaluate", again, qrels).exception)


def test_a_run_of_other_videos_is_named(folder: Path, tmp_path: Path) -> None:
    renamed, qrels = tmp_path / "renamed.csv", folder / "test/qrels.json"
    rows = [(str(query), f"v{query}.mp4", 0, 5, 1) for query in range(20)]
    write_run(Run.from_columns(*zip(*rows, strict=True)), renamed)
    found = moviola("evaluate", renamed, qrels, "--json")
    assert "no video of the run is judged; it names v0.mp4" in found.stderr
    compared = moviola("compare", folder / "test/system0.json", renamed, qrels, "--trials", 10)
    assert compared.stderr.count("no video of the run is judged") == 1
    assert "no video of the run" not in moviola("evaluate", folder / "test/system0.json", qrels).stderr


def test_a_mean_over_no_query_is_no_number(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels.json", tmp_path / "run.json"
    qrels.write_text('{"1": []}')
    run.write_text('{"1": [{"video_id": "v", "start": 0, "end": 1, "score": 1}]}')
    words = ("evaluate", run, qrels, "-m", "AxIoU@5")
    assert moviola(*words).stdout == "AxIoU@5\t–\n"
    assert json.loads(moviola(*words, "--json").stdout)["measures"] == {"AxIoU@5": None}


def test_one_file_is_counted_as_one(folder: Path) -> None:
    assert str(moviola("compare", folder / "test/qrels.json").exception).startswith("1 file given")


def test_an_unknown_suffix_is_answered_by_those_that_are_known(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"ends in \.json, \.jsonl, \.csv, \.trec, \.txt \(TREC\)"):
        write_qrels(read_qrels(folder / "test/qrels.json"), tmp_path / "q.xyz")


def test_a_file_that_is_no_csv_is_not_printed_whole(folder: Path, tmp_path: Path) -> None:
    qrels, one_line = folder / "test/qrels.json", tmp_path / "run.json"
    one_line.write_text(json.dumps(read_run(folder / "test/system0.json").rows()))
    message = str(moviola("evaluate", one_line, qrels, "--run-format", "csv").exception)
    assert "the header is" in message and len(message) < 500
