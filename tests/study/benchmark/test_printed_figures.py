"""Figures on pages are those of the stored results, rounded once.

A table of results has an entry in ``tables_of_comparison`` or ``tables_of_measurements``, which computes each
of its rows from the file that a measurement left; claims have theirs beside (``test_printed_claims.py``).
"""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import tables_of_comparison
import tables_of_measurements
from printed import Printed, figures, tables
from stored import ROOT

DOCS = ROOT / "docs"
PRINTED = [*tables_of_comparison.PRINTED, *tables_of_measurements.PRINTED]
ELSEWHERE = {
    "figures.md": (),
    "scores.md": (),
    "howto/encoder.md": ("| `precision`", "| format", "| encoder | pictures"),  # encoders/test_published.py
    "studies.md": ("| to",),
    "benchmark/README.md": (),
    "benchmark/claims.md": ("| claim",),  # test_printed_claims.py
    "benchmark/copies.md": (),
    "benchmark/real-annotations.md": ("| the paper says",),
    "benchmark/reel-ideas.md": (),
    "papers/000-tvr-ranking.md": ("| part",),
    "papers/001-axiou.md": ("| part",),
    "papers/002-spr.md": ("| part",),
    "papers/003-relevant-pairs.md": ("| part",),
    "papers/004-prem.md": ("| part",),
}
"""Pages with results, and the heads of their tables that are none, or are compared elsewhere."""
RESULTS = [ROOT / "benchmarks" / "comparison" / name for name in ("third", "large", "pool-small")]
PAGES = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / name
        for name in ("studies.md", "figures.md", "benchmark/README.md", "benchmark/claims.md")
    ),
    *sorted((ROOT / "docs" / "papers").glob("*.md")),
]


@pytest.mark.parametrize("printed", PRINTED, ids=lambda own: f"{own.page} {own.head}")
def test_each_figure_of_a_table_is_stored(printed: Printed) -> None:
    """A wrong digit, a row that moved, a figure rounded from a rounded one, a row that nothing measured."""
    wrong = list(printed.wrong(printed.found()))
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("printed", PRINTED, ids=lambda own: f"{own.page} {own.head}")
def test_another_last_digit_of_any_figure_is_noticed(printed: Printed) -> None:
    """That the comparison above compares each figure: with one more in its last place each is wrong."""
    table = printed.found()
    for row in table.rows:
        for figure in figures(" ".join(row.cells[slice(*printed.columns)])):
            number, unit = re.fullmatch(r"(.*?)((?: ?%)?)", figure).groups()  # type: ignore[union-attr]
            other = f"{number[:-1]}{(int(number[-1]) + 1) % 10}{unit}"
            cells = tuple(cell.replace(figure, other) for cell in row.cells[1:])
            changed = replace(row, cells=(row.cells[0], *cells))
            if printed.figures(changed) != printed.figures(row):
                rows = tuple(changed if own is row else own for own in table.rows)
                ours = row.label not in printed.without
                assert bool(list(printed.wrong(replace(table, rows=rows)))) == ours, (row.line, figure)


def test_every_table_of_results_is_compared() -> None:
    """A table that was added, or lost its entry, without results behind it."""
    held = {(own.page, own.found().rows[0].line) for own in PRINTED}
    loose = [
        f"{page}: {table.head}"
        for page, others in ELSEWHERE.items()
        for table in tables(DOCS / page)
        if (page, table.rows[0].line) not in held and not table.head.startswith(others or "-")
    ]
    assert loose == []


def test_tables_of_the_scale_report_are_their_files() -> None:
    """A cell that was written by hand."""
    folder = DOCS / "benchmark" / "scale"
    printed = [[row.cells for row in table.rows] for table in tables(folder / "report.md")]
    stored = []
    for path in sorted(folder.glob("*.csv")):
        _, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
        stored.append([tuple(row) for row in rows])
    assert sorted(printed) == sorted(stored)


def test_means_and_deviations_are_of_stored_trainings() -> None:
    """A mean or deviation that was rounded from a rounded one, mistyped, or of trainings that are gone."""
    stored = {shown for trainings in _seeds() for shown in _means(trainings)}
    printed = [
        (f"{page.name}:{number}: {found[0]}", found.groups())
        for page in PAGES
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        for found in re.finditer(r"(?<![\d.])(\.\d{3}) ± (\.\d{3})(?!\d)", line)
    ]
    assert len(printed) > 200
    assert [place for place, shown in printed if shown not in stored] == []


def _seeds() -> Iterator[list[dict[str, float]]]:
    """The numbers in the results of each row's seeds."""
    for folder in RESULTS:
        rows = defaultdict(list)
        for path in sorted(folder.glob("*.json")):
            result = json.loads(path.read_text(encoding="utf-8"))
            result.pop("per_query", None)
            rows[re.sub(r"-seed\d+$", "", path.stem)].append(dict(_numbers(result)))
        yield from (seeds for seeds in rows.values() if len(seeds) > 1)


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, own in value.items():
            yield from _numbers(own, f"{name}/{key}")
    elif isinstance(value, int | float):
        yield name, float(value)


def _means(seeds: list[dict[str, float]]) -> Iterator[tuple[str, str]]:
    """Mean and deviation of each number that all have, as pages print them."""
    for name in set.intersection(*map(set, seeds)):
        values = [seed[name] for seed in seeds]
        shown = statistics.mean(values), statistics.stdev(values)
        yield tuple(f"{value:.3f}".lstrip("0") for value in shown)  # type: ignore[misc]
