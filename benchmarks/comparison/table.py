"""A table of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moviola.files.writing import write_csv

__all__ = ["Row", "Table"]

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table with its title, and what it says in words."""

    title: str
    head: Row
    rows: Sequence[Sequence[str]]
    text: str = ""

    def markdown(self) -> str:
        """As Markdown."""
        cells = [self.head, ("---",) * len(self.head), *self.rows]
        body = "\n".join(f"| {' | '.join(row)} |" for row in cells)
        return f"## {self.title}\n\n{self.text + chr(10) + chr(10) if self.text else ''}{body}\n"

    def write_csv(self, path: Path) -> None:
        """As CSV."""
        write_csv(path, self.head, self.rows)

    def print(self, width: int = 140) -> None:
        """For a terminal, the first column to the left, all others to the right."""
        from rich.console import Console
        from rich.table import Table as Printed

        table = Printed(title=self.title)
        for place, column in enumerate(self.head):
            table.add_column(column, justify="right" if place else "left")
        for row in self.rows:
            table.add_row(*row)
        Console(width=width).print(table)
        if self.text:
            print(self.text)
