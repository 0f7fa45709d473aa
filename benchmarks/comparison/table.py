"""A table of a report."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Row", "Table"]

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table with its title, and what it says in words."""

    title: str
    head: Row
    rows: Sequence[Row]
    text: str = ""

    def markdown(self) -> str:
        """As Markdown."""
        cells = [self.head, ("---",) * len(self.head), *self.rows]
        body = "\n".join(f"| {' | '.join(row)} |" for row in cells)
        return f"## {self.title}\n\n{self.text + chr(10) + chr(10) if self.text else ''}{body}\n"

    def write_csv(self, path: Path) -> None:
        """As CSV."""
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([self.head, *self.rows])
