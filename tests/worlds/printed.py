"""Figures that pages print: tables, their figures, and whether each is a stored number, rounded once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "PROSE", "TABLE", "Printed", "Row", "Table", "compared", "differences", "figures", "is_rounded",
    "paragraphs", "sentences", "tables",
]  # fmt: skip

DOCS = Path(__file__).resolve().parents[2] / "docs"
Rows = list[tuple[str, list[float]]]

_SIGN, _WHOLE = r"(?<![\w.,@/])[+−-]?", r"(?:\d{1,3}(?:,\d{3})+|\d+)"
TABLE = re.compile(rf"{_SIGN}(?:{_WHOLE}(?:\.\d+)?|\.\d+)(?: ?%)?(?![\w.]*\w)")
"""Every number of a cell."""
PROSE = re.compile(rf"{_SIGN}(?:\d*\.\d\d+(?: ?%)?|{_WHOLE}(?:\.\d)? ?%|{_WHOLE}\.\d(?= times))(?!\d)")
"""Results in a sentence: two decimals or more, a percentage, a multiple; not ``IoU ≥ .5``."""


@dataclass(frozen=True)
class Row:
    """A line of a table: its number in the page, and its cells."""

    line: int
    cells: tuple[str, ...]

    @property
    def label(self) -> str:
        """The first cell without emphasis."""
        return self.cells[0].replace("**", "")


@dataclass(frozen=True)
class Table:
    """A table of a page: its head as it is written, and its rows."""

    head: str
    rows: tuple[Row, ...]


def tables(page: Path) -> Iterator[Table]:
    """The tables of a page in Markdown."""
    head, rows = "", list[Row]()
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate([*lines, ""], 1):
        text = line.strip()
        if not text.startswith("|"):
            if rows:
                yield Table(head, tuple(rows))
            head, rows = "", []
        elif not head:
            head = text
        elif set(text) - set("|-: "):
            rows.append(Row(number, tuple(cell.strip() for cell in text.strip("|").split("|"))))


def paragraphs(page: Path) -> Iterator[tuple[int, str]]:
    """Line and text of the paragraphs and bullets of a page; its tables and blocks of code are left out."""
    begun, own, code = 0, list[str](), False
    for number, line in enumerate([*page.read_text(encoding="utf-8").splitlines(), ""], 1):
        text = line.strip()
        code ^= text.startswith("```")
        if not text or code or text.startswith(("- ", "|", "#", "```")):
            if own:
                yield begun, " ".join(own)
            own = []
        if text and not code and not text.startswith(("|", "#", "```")):
            begun = begun if own else number
            own.append(text)


def figures(text: str, of: re.Pattern[str] = TABLE) -> list[str]:
    """The figures of a text, in order."""
    return of.findall(text)


def is_rounded(figure: str, number: float) -> bool:
    """Whether a figure is a number, rounded once to its digits; a percentage is a hundredfold."""
    text = figure.replace("−", "-").replace(",", "").removesuffix("%").strip()
    digits = len(text.partition(".")[2])
    scaled = 100 * number if figure.endswith("%") else number
    return float(f"{scaled:.{digits}f}") == float(text)


def differences(where: str, found: Sequence[str], numbers: Sequence[float | None]) -> list[str]:
    """What of a text's figures is not the number that is stored for it; a figure more or less is one.

    None stands for a figure that is none of ours.
    """
    if len(found) != len(numbers):
        return [f"{where}: {len(found)} figures ({', '.join(found)}), {len(numbers)} stored numbers"]
    both = zip(found, numbers, strict=True)
    wrong = [(own, n) for own, n in both if n is not None and not is_rounded(own, n)]
    return [f"{where}: {own}, stored {number:.5g}" for own, number in wrong]


def sentences(page: Path) -> Iterator[tuple[int, str]]:
    """Line and text of :func:`paragraphs`, and of the rows that say what of a paper differs."""
    yield from paragraphs(page)
    for table in tables(page):
        if table.head.startswith("| part"):
            yield from ((row.line, " ".join(row.cells)) for row in table.rows)


def compared(
    page: str, texts: Iterable[tuple[int, str]], numbers: Mapping[str, Sequence[float | None]]
) -> tuple[list[str], list[str]]:
    """Which of the texts of a page, by line, begin as ``numbers`` say, and :func:`differences` of all; a text
    of which they say nothing has no figure.
    """
    found, wrong = list[str](), list[str]()
    for line, text in texts:
        begin = next((begin for begin in numbers if text.startswith(begin)), None)
        found += [begin] if begin else []
        wrong += differences(f"{page}:{line}", figures(text, PROSE), numbers[begin] if begin else [])
    return found, wrong


@dataclass(frozen=True)
class Printed:
    """A table of a page under ``docs``, and what is stored for each of its rows.

    Attributes:
        page: under ``docs``.
        head: with which the table's head begins.
        rows: label and numbers of each row, in order.
        columns: the cells with figures of ours, all but the first by default; others are a paper's.
        prose: cells are sentences, of which results alone are compared.
        place: of the tables of the page with such a head, the first by default.
        without: labels of rows that are a paper's.
    """

    page: str
    head: str
    rows: Rows
    columns: tuple[int, int | None] = (1, None)
    prose: bool = False
    place: int = 0
    without: tuple[str, ...] = ()

    def found(self) -> Table:
        """The table as the page has it.

        Raises:
            LookupError: the page has no such table.
        """
        named = [table for table in tables(DOCS / self.page) if table.head.startswith(self.head)]
        if len(named) <= self.place:
            raise LookupError(f"{self.page}: no table {self.head!r} (any more)")
        return named[self.place]

    def figures(self, row: Row) -> list[str]:
        """Those of a row that are ours."""
        return figures(" ; ".join(row.cells[slice(*self.columns)]), PROSE if self.prose else TABLE)

    def wrong(self, table: Table) -> Iterator[str]:
        """What of the printed table is not stored."""
        ours = [row for row in table.rows if row.label not in self.without]
        if [row.label for row in ours] != [label for label, _ in self.rows]:
            stored = [label for label, _ in self.rows]
            yield f"{self.page}: rows {[row.label for row in ours]}, stored {stored}"
            return
        for row, (_, numbers) in zip(ours, self.rows, strict=True):
            yield from differences(f"{self.page}:{row.line}", self.figures(row), numbers)
