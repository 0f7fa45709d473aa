"""Ideas for Reel: every row trains and answers, and begins where Reel begins."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from comparison.bench import Bench
from comparison.figures import OVER
from comparison.run import run_pieces
from moviola.files.rows import read_json
from moviola.study.models.reel import Reel
from moviola.study.training.recipe import AnswerSettings
from moviola.study.training.recipes.reel import REEL
from moviola.study.training.validation import judge
from reel_ideas.models import ManyVectors
from reel_ideas.rows import BASELINE, ROWS, Row
from reel_ideas.run import ComparisonIdeas

pytestmark = pytest.mark.long(1)


@pytest.fixture(scope="module")
def ideas(bench: Bench) -> ComparisonIdeas:
    """Every row on the toy world."""
    run_pieces(bench, only=("*spr-stage1*", "*reel*"), note=lambda _: None)
    work = ComparisonIdeas(bench)
    for row, seed in work.pieces(ROWS, bench.preset.seeds):
        work.piece(row, seed)
    return work


def test_every_row_is_done_once_and_the_table_has_it(ideas: ComparisonIdeas) -> None:
    assert list(ideas.pieces(ROWS, ideas.bench.preset.seeds)) == []
    table = ideas.table()
    assert [row["row"] for row in table] == [row.name for row in ROWS]
    assert table[0]["val"]["mean_above"] == [0, 0, 0]
    for row in table:
        found = read_json(ideas.result_file(next(own for own in ROWS if own.name == row["row"]), 0))
        assert row["test"]["mean"] == pytest.approx([found["test"][name] for name in OVER], abs=1e-4)
        assert len(found["per_query"][OVER[1]]) > 0
    longer = read_json(ideas.result_file(next(row for row in ROWS if row.name == "longer"), 0))
    assert longer["steps"] == 2 * read_json(ideas.result_file(BASELINE, 0))["steps"]


def test_the_baseline_is_the_comparisons(ideas: ComparisonIdeas) -> None:
    found = ideas.bench.result("reel-n20")
    own = read_json(ideas.result_file(BASELINE, 0))
    assert found["test"][OVER[1]] == pytest.approx(own["test"][OVER[1]], abs=1e-6)


BEGIN_AS_REEL = [
    row
    for row in ROWS
    if row.model is not Reel and row.name != "finer" and not issubclass(row.model, ManyVectors)
]


@pytest.mark.parametrize("row", BEGIN_AS_REEL, ids=lambda row: row.name)
def test_a_variant_that_has_learned_nothing_more_answers_as_reel(ideas: ComparisonIdeas, row: Row) -> None:
    """Its further layers begin at zero; finer times begin somewhere, several vectors have other layers."""
    base = ideas.baseline(0).to("cpu")
    model = row.model(base.config)
    model.load_state_dict(base.state_dict(), strict=False)
    experiment = ideas.prepared(0)
    before = experiment.built_on[0]
    assert before is not None
    val = before.complete(experiment.val, REEL.needs)
    found, expected = (
        judge(how.run(own, val, AnswerSettings()), val)
        for how, own in ((row.recipe, model.eval()), (REEL, base))
    )
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_row_that_needs_the_baseline_waits_for_it(bench: Bench, tmp_path: Path) -> None:
    work = ComparisonIdeas(replace(bench, out=tmp_path))
    waiting = [row for row in ROWS if not row.is_trained]
    assert waiting and list(work.pieces(waiting, (0,))) == []


def test_from_the_command_line(ideas: ComparisonIdeas, tmp_path: Path) -> None:
    script = Path(__file__).parents[3] / "benchmarks" / "reel_ideas" / "run.py"
    out = tmp_path / "table.json"
    printed = subprocess.run(
        [sys.executable, script, "--preset", "small", "--out", ideas.bench.out, "--table", out],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert json.loads(printed) == json.loads(out.read_text()) == ideas.table()


def test_weights_are_read_as_they_were_written(ideas: ComparisonIdeas) -> None:
    one, two = (ideas.baseline(0).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)
