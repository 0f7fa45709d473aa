"""The small preset through the command line, from filming to the report."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from comparison.bench import Bench
from comparison.plan import PRESETS
from comparison.world import prepare
from moviola.errors import InvalidValue

pytestmark = [pytest.mark.long(0), pytest.mark.timeout(3600)]

TABLES = {
    "all-models": ("All models", 14),
    "all-models-val": ("All models on val", 11),
    "types-of-queries": ("By type of query", 11),
    "claims": ("Claims", 36),
    "seeds": ("Seeds", 11),
    "trainings": ("Trainings and their cost", 11),
    "hours": ("CPU hours", 11),
    "upper-bounds": ("Upper bounds of refinement and re-ranking (SPR, Table 4)", 9),
    "coarse-and-refined": ("Coarse proposals against refined moments", 5),
    "duplicates-dropped": ("Duplicates dropped", 10),
    "number-of-segments": ("Number of segments (SPR, Table 6)", 5),
    "untrained-and-trained": ("CLIP without training against trained (SPR, Table 7)", 6),
    "longer-training": ("Longer training", 4),
    "second-edition": ("Reel's second edition", 2),
    "streams": ("Streams of pictures and of subtitles", 9),
    "pseudo-labels": ("The similarity of pseudo labels", 16),
    "training-strategies": ("Training strategies (SPR, Table 5)", 15),
    "more-queries": ("More training queries", 8),
    "fifth": ("A fifth of the training films", 10),
    "hard-negatives": ("The baselines' hard negatives", 4),
    "recall": ("Recall of moments in the corpus and in one video, and of videos", 10),
    "relevant-pairs": ("Potentially relevant pairs on XML", 8),
    "prem-parts": ("PREM's parts", 11),
}
"""By the name of its file: the title, and how many rows it has."""
Table = list[dict[str, str]]


SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "compare_models.py"


def compare(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """The script in a process of its own, as a person runs it; one thread for each of two workers."""
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, words)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the comparison lives, done."""
    folder = tmp_path_factory.mktemp("gridhouse")
    done = compare("--preset", "small", "--out", folder, "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^\d+/\d+ ", done.stderr, re.MULTILINE)) == len(plan(folder))
    assert str(folder / "report" / "report.md") in done.stdout
    return folder


def plan(work: Path) -> set[str]:
    """The names of all trainings; which they are depends on the settings that were chosen."""
    return {job.name for job in Bench(work, PRESETS["small"]).jobs()}


def tables(work: Path) -> dict[str, Table]:
    found = {}
    for path in (work / "report").glob("*.csv"):
        with path.open(newline="") as file:
            found[path.stem] = list(csv.DictReader(file))
    return found


def test_the_report_is_whole(work: Path) -> None:
    text = (work / "report" / "report.md").read_text()
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert titles == [title for title, _ in TABLES.values()]
    planned = len(plan(work))
    assert f"**{planned} of {planned} trainings are finished.**" in text
    assert {name: len(table) for name, table in tables(work).items()} == {
        name: rows for name, (_, rows) in TABLES.items()
    }
    for figure in ("ndcg", "curves"):
        with Image.open(work / "report" / f"{figure}.png") as image:
            image.load()
            assert min(image.size) > 200
            assert image.convert("L").getextrema()[0] < 128  # something is drawn on it


def test_every_figure_is_a_number_in_its_range(work: Path) -> None:
    for title, table in tables(work).items():
        for row in table:
            for name, cell in row.items():
                measured = any(word in name for word in ("nDCG", "R@", "recall@", "PUB"))
                if measured and title != "seeds":
                    assert 0 <= float(cell) <= 1, (title, row)
                elif title == "seeds" and measured:
                    assert all(0 <= float(part) <= 1 for part in cell.split(" ± "))
                elif name in ("parameters", "CPU minutes", "CPU hours", "ms a query"):
                    assert math.isfinite(value := float(cell.replace(",", "")))
                    assert value > 0 or name != "parameters"
                else:
                    assert "nan" not in cell
                    assert "inf" not in cell


def test_what_must_hold_at_any_size_holds(work: Path) -> None:
    found = tables(work)
    models = {row["model"]: row for row in found["all-models"]}
    bounds = {(row["context (s)"], row["bound"]): row for row in found["upper-bounds"]}
    for overlap in ("0.3", "0.5", "0.7"):
        name = f"nDCG@20,IoU>={overlap}"
        for refiner in ("SPR_CLIP", "SPR_ReLo-S", "SPR_ReLo-L", "Reel (ours)"):
            assert float(models[refiner][name]) <= float(bounds["8", "PUB, 1 s"][name])
        for less, more in (("0", "4"), ("4", "8")):
            assert float(bounds[less, "UB"][name]) <= float(bounds[more, "UB"][name])
        for context in ("0", "4", "8"):
            assert float(bounds[context, "PUB, 1 s"][name]) <= float(bounds[context, "UB"][name])


def test_a_second_call_trains_nothing_and_says_the_same(work: Path) -> None:
    results = work / "results"
    before = {path.name: path.stat().st_mtime_ns for path in results.iterdir()}
    planned = plan(work)
    assert set(before) == {f"{name}.json" for name in planned}
    again = compare("--out", work, "--report", work / "again", "--json")
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert (found["done"], found["planned"], found["names"]) == (len(planned), len(planned), [])
    assert not re.search(r"^\d+/\d+ ", again.stderr, re.MULTILINE)
    assert "filming" not in again.stderr
    assert {path.name: path.stat().st_mtime_ns for path in results.iterdir()} == before
    assert (work / "again" / "report.md").read_text() == (work / "report" / "report.md").read_text()


def test_remaining_pieces_are_named_and_no_time_trains_nothing(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "worlds", tmp_path / "worlds")
    shutil.copytree(work / "results", tmp_path / "results")
    (tmp_path / "results" / "xml-n20.json").unlink()
    said = compare("--out", tmp_path, "--status")
    planned = len(plan(work))
    assert f"{planned - 1} of {planned} trainings are finished" in said.stdout
    assert "left: about 0.0 CPU hours\nleft: xml-n20\n" in said.stdout
    over = compare("--out", tmp_path, "--only", "xml-*", "--minutes", "0")
    assert "0 minutes are over; the same command goes on from here" in over.stderr
    assert not (tmp_path / "models").exists()
    assert "Not trained yet, and missing below: xml-n20." in (tmp_path / "report" / "report.md").read_text()


def test_another_preset_does_not_take_over_the_folder(work: Path) -> None:
    refused = compare("--preset", "third", "--out", work)
    assert refused.returncode == 1
    assert "but revision cf4f03a5c3dd7cc3 is needed" in " ".join(refused.stderr.split())
    with pytest.raises(InvalidValue, match="holds 40 plain and 0 edited films of seed 33, not 300"):
        prepare(work / "worlds" / "report", videos=300, seed=97, workers=1, subtitles=True)


def test_rows_of_another_seed_bring_their_stage_1(tmp_path: Path) -> None:
    words = ["--seeds", "3", "--films", "7", "--only", "xml-n20-seed3,spr-relo-n20-seed3"]
    said = compare("--preset", "pool-small", "--out", tmp_path, *words, "--status").stdout
    assert "0 of 3 trainings are finished" in said
    assert said.endswith("left: spr-stage1-n20-seed3, xml-n20-seed3, spr-relo-n20-seed3\n")


def test_films_of_another_seed_are_not_taken_for_those_of_a_folder(work: Path) -> None:
    refused = compare("--out", work, "--films", "7")
    assert refused.returncode == 1
    assert "holds 40 plain and 0 edited films of seed 33, not 40" in " ".join(refused.stderr.split())


def test_an_unknown_preset_is_named(tmp_path: Path) -> None:
    refused = compare("--preset", "huge", "--out", tmp_path)
    assert refused.returncode == 1
    assert "preset 'huge': unknown; there are small, third, large" in " ".join(refused.stderr.split())
