"""What scripts of several folders measure with: arguments, processes of their own, worlds, runs, tables."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moviola.errors import MoviolaError
from moviola.study.measures import Run
from moviola.types import Moment

__all__ = [
    "VIDEOS", "alone", "arguments", "as_run", "csv_rows", "gridhouse_world", "print_rows", "say",
    "saying_errors",
]  # fmt: skip

VIDEOS = Path(__file__).resolve().parents[2] / "shared" / "videos"
"""The real footage."""


def arguments(doc: str | None, *positional: str, **options: Any) -> Any:
    """Values of a script's command line, which the first line of its text describes.

    Args:
        positional: names of paths.
        options: defaults of options by name, which say the type; None for a path that may be left out.
    """
    parser = ArgumentParser(description=(doc or "").splitlines()[0])
    for name in positional:
        parser.add_argument(name, type=Path)
    for name, value in options.items():
        kind: Any = {"type": Path if value is None else type(value)}
        if isinstance(value, bool):
            kind = {"action": "store_true"}
        elif isinstance(value, list):
            kind = {"nargs": "+", "type": type(value[0])}
        parser.add_argument(f"--{name.replace('_', '-')}", default=value, **kind)
    return parser.parse_args()


@contextmanager
def saying_errors() -> Iterator[None]:
    """End the script with one line for an error that names its remedy."""
    try:
        yield
    except MoviolaError as error:
        sys.exit(f"error: {error}")


def say(found: object, out: Path | None) -> None:
    """Write what was found as JSON, if a file is named."""
    if out:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def alone(do: Callable[..., Any], *inputs: Any) -> Any:
    """What a function gives in a new process, whose memory and time nothing else has touched."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(do, inputs)


def gridhouse_world(given: Path | None, folder: Path, *, videos: int, seed: int) -> Path:
    """A world of gridhouse that is given, or one that is made in a folder."""
    from moviola.media import write_video
    from moviola.study.datasets import gridhouse

    if given is None:
        gridhouse.build(
            folder, videos=videos, seed=seed, workers=os.cpu_count() or 1, write_video=write_video
        )
    return given or folder


def as_run(answers: Iterable[tuple[str, Sequence[Moment]]]) -> Run:
    """The moments of each query, by its id, as a run."""
    return Run.from_dict({
        query: [{"video_id": m.video_id, "start": m.start, "end": m.end, "score": m.score} for m in moments]
        for query, moments in answers
    })  # fmt: skip


def csv_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print values of the same names as a table; of a value with its interval, the value."""
    from rich.console import Console
    from rich.table import Table

    def shown(value: Any) -> str:
        return "–" if value is None else f"{value[0]:.3f}" if isinstance(value, list) else str(value)

    table = Table()
    for name, value in rows[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*map(shown, row.values()))
    Console(width=200).print(table)
