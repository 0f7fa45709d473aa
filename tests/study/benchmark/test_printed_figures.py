"""Figures on pages are those of the stored results, rounded once."""

from __future__ import annotations

import json
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
RESULTS = [ROOT / "benchmarks" / "comparison" / name for name in ("third", "large")]
PAGES = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / name
        for name in ("studies.md", "figures.md", "benchmark/README.md", "benchmark/claims.md")
    ),
    *sorted((ROOT / "docs" / "papers").glob("*.md")),
]


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
