"""Published encoders have the sizes that are listed; suggestions suit the machine."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.encoders import BETTER
from moviola.encoders.published import PUBLISHED, Machine, Published, suggested, this_machine
from published_encoders import row_of
from published_models import MODELS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("model", PUBLISHED, ids=lambda model: model.name)
def test_sizes_are_counted(model: Published) -> None:
    """Parameters and work of a frame, from the shapes of all tensors."""
    made = MODELS[model.name]
    assert round(made.parameters / 1e6) == model.parameters
    assert round(made.work, 1) == model.work


def test_more_machine_gets_a_larger_encoder() -> None:
    """And never one whose licence forbids some use, or that does not fit into memory."""
    sizes = [
        Machine(1, False, 4.0),
        Machine(2, False, 8.0),
        Machine(16, False, 32.0),
        Machine(16, True, 64.0),
    ]
    works = [[one.model.work for one in suggested(machine)] for machine in sizes]
    assert all(len(each) == len(works[0]) == 2 for each in works)
    for less, more in pairwise(works):
        assert all(a <= b for a, b in zip(less, more, strict=True))
    assert works[0] != works[-1]
    for machine in sizes:
        for one in suggested(machine):
            assert one.model.any_use
            assert (one.milliseconds is None) == machine.gpu
    (small, *_), (large, *_) = suggested(Machine(64, False, 1.0)), suggested(Machine(64, False, 64.0))
    assert small.model.megabytes < 1000 * 1.0 / 2 < large.model.megabytes
    assert suggested(Machine(64, False, None)) == suggested(Machine(64, False, 1e6))


def test_the_first_index_offers_one_of_them() -> None:
    """By its name and its work, which are written in two places."""
    work = {model.name: model.work for model in PUBLISHED}
    assert BETTER.operations == pytest.approx(2e9 * work[BETTER.name], rel=0.05)


def test_the_list_says_what_suits_this_machine() -> None:
    done = CliRunner().invoke(all_commands(), ["models", "list"])
    assert done.exit_code == 0, done.output
    machine = this_machine()
    assert f"Recommended for this machine ({machine})" in " ".join(done.output.split())
    assert all(one.model.name in done.output for one in suggested(machine))
    assert machine.cores >= 1


MEASURED = json.loads((ROOT / "benchmarks" / "published_encoders.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("model", PUBLISHED, ids=lambda model: model.name)
def test_listed_costs_were_measured(model: Published) -> None:
    """The page has the row that the script writes, and suggestions go by the same milliseconds."""
    found = MEASURED.get(model.name, {})
    assert row_of(model.name, found) in (ROOT / "docs" / "howto" / "encoder.md").read_text(encoding="utf-8")
    assert model.milliseconds == (round(found["frame_ms"]) if found else None)
    if found:
        assert min(found["frame_cosine"], found["text_cosine"]) > 0.99999
