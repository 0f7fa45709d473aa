"""Files of rows: read JSON, JSON lines, CSV and TREC text, and say on which line a row stands."""

from __future__ import annotations

import csv
import gc
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from moviola.errors import DataError, NotFound

__all__ = ["Rows", "csv_rows", "document", "json_lines", "line_of", "read_text", "trec_rows", "uncollected"]

_GAP = re.compile(r"[\s,:]*")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file and, for messages, where each stands: ``where(i)`` is for instance ``line 7``."""

    path: Path
    rows: Sequence[Any]
    where: Callable[[int], str]

    def fields(self, *names: str) -> list[list[Any]]:
        """One list a field.

        Raises:
            DataError: a row is no object or lacks a field.
        """
        try:
            return [[row[name] for row in self.rows] for name in names]
        except (KeyError, TypeError, IndexError):
            for i, row in enumerate(self.rows):
                if not isinstance(row, dict):
                    raise self.error(i, f"a row must be an object, not {type(row).__name__}") from None
                for name in names:
                    if name not in row:
                        raise self.error(i, f"the field {name!r} is missing") from None
            raise

    def error(self, row: int, complaint: str) -> DataError:
        """A :class:`DataError` that names the file and the line."""
        return DataError(f"{self.path}: {self.where(row)}: {complaint}")


@contextmanager
def uncollected() -> Iterator[None]:
    """Put off the search for cycles: rows hold none, and a million of them would be searched often."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def read_text(path: Path) -> str:
    """The file as text, a byte order mark left out.

    Raises:
        NotFound: no such file.
        DataError: not UTF-8.
    """
    if not path.is_file():
        raise NotFound(f"{path}: no such file")
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}: line {line}: not UTF-8 text; save the file as UTF-8") from None


def document(path: Path, text: str) -> Any:
    """The file as one JSON document.

    Raises:
        DataError: not JSON, or an object names a key twice.
    """
    return _parsed(path, text, None)


def _parsed(path: Path, text: str, line: int | None) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        number = error.lineno if line is None else line
        raise DataError(
            f"{path}: line {number}: not valid JSON ({error.msg}, column {error.colno})"
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: {'' if line is None else f'line {line}: '}not usable JSON ({error})"
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return made


def line_of(text: str, path: Sequence[str | int]) -> int:
    """Line, from 1, on which the value at ``path`` (keys and positions) of a valid JSON document begins."""
    decode = json.JSONDecoder().raw_decode
    at = _skip(text, 0)
    for step in path:
        at = _skip(text, at + 1)
        position = 0
        while True:
            if isinstance(step, str):
                key, at = decode(text, at)
                at = _skip(text, at)
                if key == step:
                    break
            elif position == step:
                break
            _, at = decode(text, at)
            at = _skip(text, at)
            position += 1
    return text.count("\n", 0, at) + 1


def _skip(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    assert gap is not None
    return gap.end()


def json_lines(path: Path, text: str) -> Rows:
    """One JSON value a line; empty lines are passed over.

    Raises:
        DataError: a line is not JSON.
    """
    lines = text.split("\n")
    numbers = [n for n, line in enumerate(lines) if line and not line.isspace()]
    kept = [lines[n] for n in numbers]

    def where(row: int) -> str:
        return f"line {numbers[row] + 1}"

    # One parse of all lines is much faster than one a line; it counts only if every line is one whole object.
    if all(line.startswith("{") and line.rstrip().endswith("}") for line in kept):
        try:
            rows = json.loads(f"[{','.join(kept)}]", object_pairs_hook=_once)
        except (ValueError, RecursionError):
            rows = []
        if len(rows) == len(kept):
            return Rows(path, rows, where)
    return Rows(path, [_parsed(path, line, n + 1) for line, n in zip(kept, numbers, strict=True)], where)


def csv_rows(path: Path, text: str) -> tuple[list[str], Rows]:
    """Header and rows of a CSV file, every row as long as the header.

    Raises:
        DataError: no header, or a row has more or fewer fields.
    """
    lines = text.splitlines(keepends=True)
    reader = csv.reader(lines)
    try:
        header = next(reader, [])
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: not valid CSV ({error})") from None

    def where(row: int) -> str:
        again = csv.reader(lines)
        ends = (again.line_num for fields in again if fields)
        return f"line {next(islice(ends, row + 1, None))}"

    made = Rows(path, rows, where)
    if set(map(len, rows)) - {len(header)}:
        i, row = next((i, row) for i, row in enumerate(rows) if len(row) != len(header))
        missing = header[len(row)] if len(row) < len(header) else f"number {len(header) + 1}"
        complaint = "is missing" if len(row) < len(header) else "has no name in the header"
        raise made.error(i, f"the field {missing} {complaint}")
    return [name.strip() for name in header], made


def trec_rows(path: Path, text: str, names: Sequence[str]) -> Rows:
    """Rows of blank-separated fields, all of ``names``, for TREC's run and qrels files.

    Raises:
        DataError: a row has more or fewer fields.
    """
    lines = text.splitlines()
    rows = [row for row in map(str.split, lines) if row]

    def where(row: int) -> str:
        filled = (n for n, line in enumerate(lines, start=1) if line.split())
        return f"line {next(islice(filled, row, None))}"

    made = Rows(path, rows, where)
    if set(map(len, rows)) - {len(names)}:
        i, row = next((i, row) for i, row in enumerate(rows) if len(row) != len(names))
        if len(row) < len(names):
            raise made.error(i, f"the field {names[len(row)]!r} is missing; a row reads: {' '.join(names)}")
        raise made.error(i, f"{len(row)} fields; a row reads: {' '.join(names)}")
    return made
