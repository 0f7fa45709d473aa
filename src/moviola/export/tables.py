"""Moments as CSV and JSON, to read, edit by hand and read back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from moviola.errors import DataError, InvalidValue
from moviola.export.selection import Selection
from moviola.files.moments import moment_row, read_moment
from moviola.files.plain import STEERING
from moviola.files.rows import parse_json, read_csv, read_json_lines, read_text
from moviola.files.writing import write_csv, write_json

__all__ = ["read_moments", "write_moments_csv", "write_moments_json"]

_COLUMNS = (
    "rank", "video_id", "start", "end", "score", "band", "title", "note", "source", "snippet",
    "snippet_kind", "steps", "path",
)  # fmt: skip
# First characters that make a formula in spreadsheets; an apostrophe before it makes it text. A text that
# begins with an apostrophe gets another one, so that reading removes exactly what writing added.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_MASKED = re.compile(r"'+[=+\-@\t\r]")
# Letters that steer a terminal are written as ``\\u001b``, and a backslash that would look so as ``\\u005c``.
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")


def write_moments_csv(chosen: Sequence[Selection], paths: Mapping[str, str | Path], out: Path) -> None:
    """Write one row per moment; cells that a spreadsheet would compute get an apostrophe in front, and
    letters that steer a terminal are escaped.

    Times are seconds, with all their digits; steps of a sequence are written ``START-END``, with blanks
    between them.
    """
    rows = list(_rows(chosen, paths))
    for row in rows:
        row["steps"] = " ".join(f"{step['start']}-{step['end']}" for step in row["steps"])
        for name, value in row.items():
            if isinstance(value, str):
                text = _escaped(value)
                row[name] = f"'{text}" if _FORMULA.match(text) else text
    write_csv(out, _COLUMNS, ([row[name] for name in _COLUMNS] for row in rows))


def write_moments_json(chosen: Sequence[Selection], paths: Mapping[str, str | Path], out: Path) -> None:
    """Write a list of objects: the fields of a moment, with ``title``, ``note`` and its video's ``path``."""
    write_json(out, list(_rows(chosen, paths)), indent=1)


def read_moments(path: str | Path) -> tuple[list[Selection], dict[str, str]]:
    """Read moments from CSV or JSON, written by moviola or by hand.

    Args:
        path: ``.csv`` or ``.tsv`` with a header, as spreadsheets write them in any country
            (:func:`moviola.files.rows.csv_rows`), ``.json`` with a list of objects, or ``.jsonl``. Of the
            fields only ``video_id``, ``start`` and ``end`` (seconds) are needed; others are passed over.

    Returns:
        the moments, ranked in their order, and paths of videos by id as far as given.

    Raises:
        NotFound: no such file.
        DataError: a row that is no moment; the message names the file, its line and the field.
        InvalidValue: another suffix.
    """
    chosen: list[Selection] = []
    paths: dict[str, str] = {}
    for rank, (place, row) in enumerate(_objects(Path(path)), start=1):
        moment = read_moment({**row, "steps": _steps(row)}, place, rank)
        chosen.append(Selection(moment, str(row.get("title") or ""), str(row.get("note") or "")))
        if row.get("path"):
            paths[moment.video_id] = str(row["path"])
    return chosen, paths


def _rows(chosen: Sequence[Selection], paths: Mapping[str, str | Path]) -> Iterator[dict[str, Any]]:
    for selection in chosen:
        path = str(paths.get(selection.moment.video_id, ""))
        yield {**moment_row(selection.moment), "title": selection.title, "note": selection.note, "path": path}


def _objects(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        for place, row in read_csv(path, ("video_id", "start", "end")).objects():
            cells = {name: cell[1:] if _MASKED.match(cell) else cell for name, cell in row.items()}
            yield place, {name: _ESCAPED.sub(_letter, cell) for name, cell in cells.items()}
    elif suffix == ".jsonl":
        yield from read_json_lines(path)
    elif suffix == ".json":
        rows = parse_json(path, read_text(path))
        if not isinstance(rows, list):
            raise DataError(f"{path}: a list of moments is expected, not {type(rows).__name__}")
        for at, row in enumerate(rows, start=1):
            if not isinstance(row, dict):
                raise DataError(f"{path}: moment {at}: an object is expected, not {row!r:.60}")
            yield f"{path}: moment {at}", row
    else:
        raise InvalidValue(f"{path}: moments are read from .csv, .tsv, .json and .jsonl; name such a file")


def _escaped(text: str) -> str:
    """A text without letters that steer a terminal, which reading brings back."""
    text = _ESCAPED.sub(
        lambda match: match[0] if _letter(match) == match[0] else "\\u005c" + match[0][1:], text
    )
    return STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}" if match[0] < "\ud800" else match[0], text)


def _letter(match: re.Match[str]) -> str:
    """The letter that was escaped; the text itself where it is none of those that are."""
    letter = chr(int(match[1], 16))
    return letter if letter == "\\" or (STEERING.match(letter) and letter < "\ud800") else match[0]


def _steps(row: Mapping[str, Any]) -> Any:
    """Steps of a table, ``START-END`` each, in their JSON form."""
    given = row.get("steps")
    if not isinstance(given, str):
        return given
    # A time may have an exponent: 1e-05.
    steps = [(*re.split(r"(?<![eE])-", step, maxsplit=1), "") for step in given.split()]
    return [{"video_id": row.get("video_id"), "start": start, "end": end} for start, end, *_ in steps]
