"""What terminals get: texts and tables by rich, which nobody else's output needs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from rich.box import Box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.containers import Lines
from rich.table import Table
from rich.text import Text

from moviola.files.plain import plain

__all__ = ["Cell", "PlainConsole", "Shortening", "print_table"]

Cell = str | tuple[str, ...]
"""A cell of a table: a text, or several, below each other on a terminal."""

Shortening = Literal["in the middle", "at the end"]
"""Where a text of a table is shortened."""

_LEAST_CELL = 8

# A box that has lines between sections of rows, and nothing else.
_LINES = Box("    \n    \n    \n    \n ── \n    \n    \n    \n")
# Beside a cell whose letters run from right to left, or its row would, numbers and all.
_RIGHT_TO_LEFT, _FROM_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"), "\u200e"
_NUMBER = re.compile(r"([-+]?[\d.,]+%?)?")
_TIMES = re.compile(r"(\d+:[\d:.]+)(?: – \d+:[\d:.]+)?")


class PlainConsole(Console):
    """Prints strings as they are, in tables too, but for what steers the terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(plain(text), **options)


def print_table(
    console: PlainConsole,
    columns: Sequence[str],
    cells: list[list[list[str]]],
    *,
    title: str,
    lines: Collection[int],
    short: Mapping[str, Shortening],
) -> None:
    """Print rows of cells, each of several texts; see :func:`moviola.cli.app.show_table`."""
    cells = _on_one_line(console, columns, cells, short)
    table = Table(
        box=_LINES if lines else None, show_edge=False, pad_edge=False, header_style="bold",
        title=title or None, title_justify="left",
    )  # fmt: skip
    filled = [at for at in range(len(columns)) if any(any(row[at]) for row in cells)]
    for at in filled:
        parts = [part for row in cells for part in row[at]]
        number = all(map(_NUMBER.fullmatch, parts))
        times = [found for found in map(_TIMES.fullmatch, parts) if found]
        width = max(len(found[1]) for found in times) if len(times) == len(parts) else None
        # What may not wrap is cropped in a narrow terminal once nothing else can give way.
        table.add_column(
            columns[at], justify="right" if number else "left", no_wrap=number, overflow="fold",
            min_width=width,
        )  # fmt: skip
    for place, row in enumerate(cells):
        table.add_row(*(_kept_apart(row[at]) for at in filled), end_section=place in lines)
    if cells:
        console.print(table, soft_wrap=False)


def _kept_apart(parts: Sequence[str]) -> str | Text:
    """The texts of a cell below each other, so that a terminal turns none but those that run to the left."""
    if not any(map(_RIGHT_TO_LEFT.search, parts)):
        return "\n".join(parts)
    return _FromLeft("\n".join(map(plain, parts)))


class _FromLeft(Text):
    """A text whose lines, wrapped ones, too, keep their place in a row whichever way they run."""

    def wrap(self, *args: Any, **options: Any) -> Lines:
        lines = super().wrap(*args, **options)
        for line in lines:
            said = line.plain.rstrip()
            line.plain = f"{_FROM_LEFT}{said}{_FROM_LEFT}{line.plain[len(said) :]}"
        return lines


def _on_one_line(
    console: PlainConsole,
    columns: Sequence[str],
    rows: list[list[list[str]]],
    short: Mapping[str, Shortening],
) -> list[list[list[str]]]:
    """Rows with the cells of some columns shortened, as far as a terminal is too narrow for them."""
    widths = {
        at: max(cell_len(name), *(cell_len(part) for row in rows for part in row[at]))
        for at, name in enumerate(columns)
        if any(any(row[at]) for row in rows)
    }
    given = {at: short[columns[at]] for at in sorted(widths, key=widths.__getitem__) if columns[at] in short}
    room = console.width - 3 * (len(widths) - 1) - sum(widths[at] for at in widths if at not in given)
    most: dict[int, int] = {}
    for place, at in enumerate(given):  # what the narrow ones leave is for the others
        most[at] = min(widths[at], max(_LEAST_CELL, room // (len(given) - place)))
        room -= most[at]
    shown = {at: _cropped({part for row in rows for part in row[at]}, most[at], given[at]) for at in most}
    return [
        [[shown[at][part] for part in cell] if at in shown else cell for at, cell in enumerate(row)]
        for row in rows
    ]


def _cropped(texts: Collection[str], width: int, at: Shortening) -> dict[str, str]:
    """Some texts in at most ``width`` columns of a terminal, "…" in place of what is left out: in the middle,
    or further on, or else before it, where different texts stay different, as far as they can.
    """
    middle = (width - 1) // 2
    places = [*range(middle, width), *range(middle)] if at == "in the middle" else [width - 1]
    ways = ({text: _without_middle(text, width, before) for text in texts} for before in places)
    return max(ways, key=lambda shown: len(set(shown.values())))


def _without_middle(text: str, width: int, before: int) -> str:
    """A text in at most ``width`` columns of a terminal, of which ``before`` are those at its beginning."""
    if cell_len(text) <= width:
        return text
    head = set_cell_size(text, before).rstrip()
    while head and _is_mark(text[len(head) : len(head) + 1]):  # a letter goes with its marks
        head = head[:-1]
    tail = text[len(text) - (width - 1 - before) :] if before < width - 1 else ""
    while cell_len(tail) > width - 1 - before or _is_mark(tail[:1]):
        tail = tail[1:]
    return f"{head}…{tail}"


def _is_mark(letter: str) -> bool:
    """Whether a letter is a mark of the one before it, or joins it to the next."""
    return letter != "" and (unicodedata.category(letter)[0] == "M" or letter == "\u200d")
