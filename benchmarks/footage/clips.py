"""Real footage: pieces of its files that show one thing, and the queries that they answer."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, its folder is there instead

from measuring import VIDEOS, csv_rows

__all__ = ["VIDEOS", "Clip", "Query", "read_clips", "read_queries", "rows"]


@dataclass(frozen=True)
class Clip:
    """A piece of a file that shows one thing: seconds in that file."""

    clip: str
    file: str
    start: float
    end: float


@dataclass(frozen=True)
class Query:
    """A query and the clips that answer it."""

    text: str
    clips: frozenset[str]


def read_clips() -> dict[str, Clip]:
    """All clips by name."""
    return {row["clip"]: Clip(row["clip"], row["file"], float(row["start"]), float(row["end"]))
            for row in rows("clips.csv")}  # fmt: skip


def read_queries() -> list[Query]:
    """All queries, in the order of the file."""
    return [Query(row["query"], frozenset(row["clips"].split())) for row in rows("queries.csv")]


def rows(name: str) -> list[dict[str, str]]:
    """A table beside this file."""
    return csv_rows(Path(__file__).with_name(name))
