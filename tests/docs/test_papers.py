"""Every part of a paper in docs/papers says where it is and what shows it; that can be called as written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from comparison import studies, tables
from moviola.cli import all_commands
from moviola.study.models.pretrained import build
from moviola.study.training.data import Sizes
from moviola.study.training.recipes import RECIPES, recipe
from moviola.study.training.settings import read_settings

app = all_commands()

PAPERS = sorted((Path(__file__).resolve().parents[2] / "docs" / "papers").glob("*.md"))
CODE = re.compile(r"`([^`]+)`")
TITLE = re.compile(r'"([^"…]+?) ?…?"')
SHOWS = re.compile(r"`(moviola [a-z]|python benchmarks/|tests/)")
SIZES = Sizes(visual=16, subtitle=16, query=16, clip_seconds=1.5, longest=20)


@dataclass(frozen=True)
class Row:
    """A line of a table: the part of the paper, where it is implemented, what shows it."""

    part: str
    where: str
    shown: str


def parts(path: Path) -> Iterator[Row]:
    """The rows of all tables of a page whose first column is "part"."""
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        inside = line.startswith("|") and (inside or cells[0] == "part")
        if inside and cells[0] != "part" and set(line) - set("|-"):
            assert len(cells) == 4, line
            yield Row(*cells[:3])


ROWS = [pytest.param(row, id=f"{path.stem} {row.part}"[:60]) for path in PAPERS for row in parts(path)]
COMMANDS = sorted(
    {
        code
        for path in PAPERS
        for row in parts(path)
        for code in CODE.findall(row.shown)
        if code.startswith("moviola ")
    }
)


def test_there_are_parts_of_five_papers_and_twenty_at_a_glance() -> None:
    pages = {path.stem[:3]: list(parts(path)) for path in PAPERS}
    assert list(pages) == ["000", "001", "002", "003", "004", "ind"]
    assert all(len(rows) >= 10 for rows in pages.values())
    numbers = [row.part.partition(".")[0] for row in pages["ind"]]
    assert numbers == [str(number) for number in range(1, 21)]


@pytest.mark.parametrize("row", ROWS)
def test_each_part_is_somewhere_and_something_shows_it(row: Row) -> None:
    assert re.search(r"`(moviola\.\w|benchmarks/)", row.where), f"{row.part}: where is it?"
    assert SHOWS.search(row.shown), f"{row.part}: what shows it?"


@pytest.mark.parametrize("text", COMMANDS)
def test_commands_take_the_options_that_are_shown(text: str) -> None:
    _, *words = shlex.split(text)
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    known = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
    for word in words:
        if word.startswith("-"):
            assert word in known, f"{text}: {word} is no option"
    overrides = [value for option, value in pairwise(words) if option == "--set"]
    named = [word for word in words if word in RECIPES]
    if command.name == "train" and named:
        how = recipe(named[0])
        settings = read_settings(how, overrides=overrides)
        with torch.device("meta"):  # no weights are made
            build(how.architecture, {**how.sized(SIZES), **settings.model})
    else:
        assert not any(override.startswith("model.") for override in overrides), text


def test_tables_of_the_benchmark_have_the_titles_that_pages_give_them() -> None:
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (tables, studies))
    for path in PAPERS:
        for row in parts(path):
            for title in TITLE.findall(CODE.sub("", row.shown)):
                assert f'"{title}' in source, f"{path.name}, {row.part}: no table {title!r}"
