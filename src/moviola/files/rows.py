"""Files of rows: JSON, JSON lines, CSV and blank-separated text, with the file and the line in every error.

A reader also takes the ``text`` itself, for callers that detect the format first; the path is then used in
messages only.

Examples:
    >>> from pathlib import Path
    >>> from moviola.files.rows import number, read_csv
    >>> from moviola.files.writing import write_csv
    >>> write_csv("found.csv", ["video_id", "start"], [["beach", 12.5], ["harbour", "soon"]])
    >>> found = read_csv(Path("found.csv"), required=["video_id", "start"])
    >>> (starts,) = found.fields("start")
    >>> [number(start, "start", found.where(place)) for place, start in enumerate(starts)]
    Traceback (most recent call last):
    moviola.errors.DataError: line 3: start: 'soon' is no number >= 0
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from moviola.errors import DataError, NotFound
from moviola.files.names import no_such

__all__ = [
    "CsvRows", "Rows", "blank_separated_rows", "csv_rows", "json_rows", "line_of", "lines_of", "listed_rows",
    "number", "parse_json", "read_csv", "read_json", "read_json_lines", "read_text", "span", "text",
]  # fmt: skip

_GAP = re.compile(r"[\s,:]*")
_GZIP = b"\x1f\x8b"
# Pipes that a shell has opened for `<(command)`.
_OF_SHELL = re.compile(r"/dev/(?:stdin|fd/\d+)|/proc/(?:self|\d+)/fd/\d+")
_SHOWN_HEADER = 200
"""Letters of a header that an error shows."""
_SPACED_HEADER = re.compile(r"\s*[^\r\n]*, ")
_SEPARATORS = (",", ";", "\t", "|")
# A first line of spreadsheets that names the separator.
_NAMED_SEPARATOR = re.compile(r"sep=([^\r\n])(?=[\r\n])", re.IGNORECASE)
# Columns of numbers, and those of them that are times, also written as on a clock.
_NUMBERS = ("start", "end", "duration", "length", "score", "relevance", "similarity")
_TIMES = _NUMBERS[:4]
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d{1,2}(?:[.,]\d+)?)")
# With a comma before the decimals, and perhaps full stops between thousands.
_COMMA = re.compile(r"([-+]?(?:\d+|\d{1,3}(?:\.\d{3})+)),(\d+)")
# With blanks or apostrophes between thousands.
_SPACED = r"([-+]?\d{1,3}(?:[ \u00a0\u2009\u202f'\u2019]\d{3})+)(?:[.,](\d+))?"
_MARKED = r"[,: \u00a0\u2009\u202f'\u2019]"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file with their places for messages: ``where(i)`` is for instance ``line 7``."""

    path: Path
    rows: Sequence[Any]
    where: Callable[[int], str]

    def fields(self, *names: str) -> list[list[Any]]:
        """One list per field.

        Raises:
            DataError: a row is no object or lacks a field.
        """
        try:
            return [[row[name] for row in self.rows] for name in names]
        except (KeyError, TypeError, IndexError):
            for i, row in enumerate(self.rows):
                if not isinstance(row, dict):
                    raise self.error(i, f"a row must be an object, not {type(row).__name__}") from None
                if lacking := [name for name in names if name not in row]:
                    raise self.error(i, f"the field {lacking[0]!r} is missing") from None
            raise

    def objects(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each row as a mapping, with its place: ``("queries.jsonl: line 7", {…})``.

        Raises:
            DataError: a row is no object.
        """
        for i, row in enumerate(self.rows):
            if not isinstance(row, dict):
                raise self.error(i, f"an object is expected, not {row!r:.60}")
            yield f"{self.path}: {self.where(i)}", row

    def error(self, row: int, complaint: str) -> DataError:
        """The error that names the file and the line of a row."""
        return DataError(f"{self.path}: {self.where(row)}: {complaint}")


@dataclass(frozen=True, eq=False)
class CsvRows(Rows):
    """Rows of a CSV file: lists of text, each as long as ``header``; made by :func:`csv_rows`."""

    header: tuple[str, ...]

    def fields(self, *names: str) -> list[list[Any]]:
        """One list of text per column; the columns are among those that :func:`csv_rows` required."""
        places = [self.header.index(name) for name in names]
        return [[row[place] for row in self.rows] for place in places]

    def objects(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each row as a mapping from column to text, with its place."""
        for i, row in enumerate(self.rows):
            yield f"{self.path}: {self.where(i)}", dict(zip(self.header, row, strict=True))


def read_text(path: str | Path) -> str:
    """The file as text, without a byte order mark; UTF-8, or UTF-16 with such a mark.

    Raises:
        NotFound: no such file.
        DataError: not UTF-8, compressed, unreadable, or a device, named pipe or socket, which may never end.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
        from_shell = stat.S_ISFIFO(mode) and _OF_SHELL.fullmatch(os.path.normpath(path))
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or from_shell):
            raise DataError(f"{path}: a device, pipe or socket; name a text file")
        raw = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(no_such(path)) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a text file") from error
    if raw.startswith(_GZIP):
        raise DataError(f"{path}: compressed with gzip; unpack it first (gunzip)")
    try:
        return raw.decode("utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}: line {line}: not UTF-8 text; save the file as UTF-8") from None


def lines_of(text: str) -> list[str]:
    """Lines as editors count them: Unicode's line separators, which captions may contain, end no line."""
    return re.split("\r\n|\r|\n", text)


def read_json(path: Path) -> Any:
    """The content of a JSON file; errors as in :func:`read_text` and :func:`parse_json`."""
    return parse_json(path, read_text(path))


def parse_json(path: Path, text: str, line: int | None = None) -> Any:
    """The text of a file, or of one of its lines, by its number from 1, as one JSON document.

    Raises:
        DataError: not JSON, or an object names a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        raise DataError(f"{path}: line {at}: not valid JSON ({error.msg}, column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        place = "" if line is None else f"line {line}: "
        raise DataError(f"{path}: {place}not usable JSON ({error})") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object from its pairs; ValueError: a key occurs twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return made


def line_of(text: str, path: Sequence[str | int]) -> int:
    """Line, from 1, on which the value at ``path`` (keys and positions) of a valid JSON document begins."""
    decode = json.JSONDecoder().raw_decode
    at = _skip(text, 0)
    for step in path:
        at = _skip(text, at + 1)
        for key in count():  # of a list the positions are the keys
            if isinstance(step, str):
                key, at = decode(text, at)
                at = _skip(text, at)
            if key == step:
                break
            at = _skip(text, decode(text, at)[1])
    return text.count("\n", 0, at) + 1


def _skip(text: str, at: int) -> int:
    return _GAP.match(text, at).end()  # type: ignore[union-attr]  # it matches the empty text, too


def read_json_lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Objects of a JSON-lines file, see :meth:`Rows.objects`; errors as in :func:`read_text`, too."""
    return json_rows(path, read_text(path)).objects()


def json_rows(path: Path, text: str) -> Rows:
    """One JSON value per line; empty lines are skipped.

    Raises:
        DataError: a line is not JSON.
    """
    lines = {n: line for n, line in enumerate(text.split("\n"), 1) if line and not line.isspace()}
    numbers, filled = list(lines), list(lines.values())

    def where(row: int) -> str:
        return f"line {numbers[row]}"

    # One parse of all lines is much faster than one per line; it counts if each line is one whole object.
    if all(line.startswith("{") and line.rstrip().endswith("}") for line in filled):
        try:
            rows = json.loads(f"[{','.join(filled)}]", object_pairs_hook=_once)
        except (ValueError, RecursionError):
            rows = []
        if len(rows) == len(filled):
            return Rows(path, rows, where)
    return Rows(path, [parse_json(path, line, n) for n, line in lines.items()], where)


def listed_rows(path: Path, text: str) -> Rows:
    """The entries of a JSON list, or one JSON value per line.

    Raises:
        DataError: not JSON.
    """
    if not text.lstrip().startswith("["):
        return json_rows(path, text)
    lines: list[int] = []

    def where(row: int) -> str:
        if not lines:  # needed for messages only, so computed on first use
            lines.extend(_entry_lines(text))
        return f"line {lines[row]}"

    return Rows(path, parse_json(path, text), where)


def _entry_lines(text: str) -> Iterator[int]:
    """The line, from 1, on which each entry of a JSON list begins; in one pass."""
    decode = json.JSONDecoder().raw_decode
    at, done, line = _skip(text, text.index("[") + 1), 0, 1
    while text[at] != "]":
        line += text.count("\n", done, at)
        yield line
        done = at
        at = _skip(text, decode(text, at)[1])


def read_csv(path: Path, required: Sequence[str] = ()) -> CsvRows:
    """Rows of a CSV file; errors as in :func:`read_text` and :func:`csv_rows`."""
    return csv_rows(path, read_text(path), required)


def csv_rows(path: Path, text: str, required: Sequence[str] = ()) -> CsvRows:
    """Rows of a CSV file's text, every row as long as the header; lines without any content are skipped.

    Fields are divided by commas, semicolons, tabs or bars, whichever gives the required columns. Of numbers
    in ``start, end, duration, length, score, relevance, similarity`` a decimal comma becomes a full stop, but
    not where it may divide thousands (``1,299`` between commas), and blanks between these are dropped; of
    times in the first four of these, a clock time (``1:05.5``, ``0:01:05,5``) becomes seconds. Capitals in
    the header count only where required columns are there without them.

    Blanks after commas are dropped in all rows if the header has them: " v1" would name no video.

    Raises:
        DataError: a required column is missing or given twice, or a row has more or fewer fields than the
            header.
    """
    named = _NAMED_SEPARATOR.match(text)
    text = text if named is None else text[named.end() :]  # its line stays, empty, and is counted
    separator = named[1] if named else _separator(text, required)
    spaced = _SPACED_HEADER.match(text) is not None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=spaced)
    table: list[list[str]] = []
    ends: list[int] = []
    try:
        for row in reader:
            if any(cell and not cell.isspace() for cell in row):
                table.append(row)
                ends.append(reader.line_num)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: not valid CSV ({error})") from None
    header = _header(table[0], required) if table else ()
    for name in required:
        if name not in header:
            line = ends[0] if ends else 1
            given = ",".join(header) or "empty"
            # Of a file that is no CSV, the header may be all of it.
            shown = given if len(given) <= _SHOWN_HEADER else f"{given[:_SHOWN_HEADER]}…"
            raise DataError(f"{path}: line {line}: the field {name!r} is missing; the header is {shown}")
        if header.count(name) > 1:
            raise DataError(f"{path}: line {ends[0]}: two columns are named {name!r}; rename or remove one")
    made = CsvRows(path, table[1:], lambda row: f"line {ends[row + 1]}", header)
    for i, row in enumerate(made.rows):
        if len(row) < len(header):
            raise made.error(i, f"the field {header[len(row)]} is missing")
        if len(row) > len(header):
            raise made.error(i, f"the field number {len(header) + 1} has no name in the header")
    for place, name in enumerate(header):
        if name in _NUMBERS:
            _make_plain(made.rows, place, name, between_commas=separator == ",")
    return made


def _header(names: Iterable[str], required: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, in small letters where the required ones are only there so."""
    header = tuple(name.strip() for name in names)
    small = tuple(map(str.lower, header))
    return small if not set(required) <= {*header} and set(required) <= {*small} else header


def _separator(text: str, required: Sequence[str]) -> str:
    """What divides the names of the header: what gives the required ones, else the most of them."""
    header = next((line for line in lines_of(text) if line and not line.isspace()), "")
    found = {separator: header.split(separator) for separator in _SEPARATORS}
    for separator, names in found.items():
        if set(required) <= {*_header((name.strip(' \t"') for name in names), required)}:
            return separator
    return max(found, key=lambda separator: len(found[separator]))


def _make_plain(rows: Sequence[list[str]], place: int, name: str, *, between_commas: bool) -> None:
    """Write the numbers of a column without commas and clock times."""
    for row in rows:
        if re.search(_MARKED, row[place]):
            row[place] = _plain_number(row[place].strip(), name, between_commas=between_commas)


def _plain_number(cell: str, name: str, *, between_commas: bool) -> str:
    """A number with a decimal comma or divided thousands, or a time of a clock, as a plain number; anything
    else as it is.
    """
    if name in _TIMES and (clock := _CLOCK.fullmatch(cell)):
        hours, minutes, rest = clock.groups()
        seconds = float(rest.replace(",", "."))
        if seconds < 60 and (hours is None or int(minutes) < 60):
            return repr(int(hours or 0) * 3600 + int(minutes) * 60 + seconds)
    elif (comma := _COMMA.fullmatch(cell)) and not (between_commas and len(comma[2]) == 3):
        return f"{comma[1].replace('.', '')}.{comma[2]}"
    elif spaced := re.fullmatch(_SPACED, cell):
        return f"{re.sub(r'[^-+0-9]', '', spaced[1])}.{spaced[2] or 0}"
    return cell


def blank_separated_rows(path: Path, text: str, names: Sequence[str]) -> Rows:
    """Rows of blank-separated fields, one for each of ``names``; empty lines are skipped.

    Raises:
        DataError: a row has more or fewer fields.
    """
    filled = [(n, row) for n, row in enumerate(map(str.split, text.split("\n")), start=1) if row]
    rows = [row for _, row in filled]
    made = Rows(path, rows, lambda row: f"line {filled[row][0]}")
    for i, row in enumerate(rows):
        if len(row) != len(names):
            lacking = f"the field {names[len(row)]!r} is missing" if len(row) < len(names) else ""
            raise made.error(i, f"{lacking or f'{len(row)} fields'}; a row reads: {' '.join(names)}")
    return made


def text(row: Mapping[str, Any], name: str, place: str) -> str:
    """A row's field as text that is not empty, or a number's digits; ``place`` is the file and the line, for
    the error.

    Raises:
        DataError: the field is missing or empty, or neither text nor number.
    """
    value = row.get(name)
    if value is None or str(value) == "":
        raise DataError(f"{place}: the field {name!r} is missing")
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (isinstance(value, str) or is_number):
        raise DataError(f"{place}: {name}: a text is expected, not {value!r:.60}")
    return str(value)


def number(value: Any, name: str, place: str, low: float = 0.0, high: float = math.inf) -> float:
    """A finite number from ``low`` to ``high``, given as number or text, of a time also as a clock shows it;
    ``name`` and ``place`` are for the error.

    Raises:
        DataError: anything else.
    """
    try:
        is_clock = isinstance(value, str) and ":" in value
        value_read = float(_plain_number(value.strip(), name, between_commas=True) if is_clock else value)
    except (TypeError, ValueError, OverflowError):
        value_read = math.nan
    if not (low <= value_read <= high and math.isfinite(value_read)):
        bounds = f" from {low:g} to {high:g}" if math.isfinite(high) else f" >= {low:g}"
        said = f"{value!r} is no number{bounds if math.isfinite(low) else ''}"
        clock = "; write seconds, or h:mm:ss.s" if name in _TIMES and ":" in str(value) else ""
        comma = "; write 1299, or 1.299" if "," in str(value) else ""
        raise DataError(f"{place}: {name}: {said}{clock or comma}")
    return value_read


def span(value: Any, name: str, place: str) -> tuple[float, float]:
    """``[start, end]``, two finite numbers >= 0; their order is not checked.

    Raises:
        DataError: anything else.
    """
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise DataError(f"{place}: {name}: [start, end] is expected, not {value!r:.60}")
    return number(value[0], name, place), number(value[1], name, place)
