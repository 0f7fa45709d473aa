"""Reading annotation files row by row, with errors that name file, row and field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from moviola.errors import DataError, NotFound

__all__ = ["json_file", "json_lines", "number", "span", "text", "text_of"]


def text_of(path: Path) -> str:
    """A text file.

    Raises:
        NotFound: no such file.
        DataError: not UTF-8.
    """
    if not path.is_file():
        raise NotFound(f"{path}: no such file")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start})") from error


def json_file(path: Path) -> Any:
    """A JSON document; see :func:`text_of`."""
    try:
        return json.loads(text_of(path))
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not valid JSON ({error})") from error


def json_lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Objects of a JSON-lines file, each with where it stands."""
    for place, line in enumerate(text_of(path).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}: line {place}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where}: not valid JSON ({error})") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: an object is expected, not {row!r:.60}")
        yield where, row


def text(row: Mapping[str, Any], name: str, where: str) -> str:
    """A field as text, not empty."""
    value = row.get(name)
    if value is None or str(value) == "":
        raise DataError(f"{where}: the field {name!r} is missing")
    return str(value)


def number(value: Any, name: str, where: str) -> float:
    """A finite number, >= 0."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = float("nan")
    if not 0 <= found < float("inf"):
        raise DataError(f"{where}: {name}: {value!r} is no number >= 0")
    return found


def span(value: Any, name: str, where: str) -> tuple[float, float]:
    """``[start, end]`` in whatever unit."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise DataError(f"{where}: {name}: [start, end] is expected, not {value!r:.60}")
    return number(value[0], name, where), number(value[1], name, where)
