"""Formats of what people keep: of ``kept.sqlite`` (``user_version`` is the number) and of exported lines.

1  a saved search is ``{"text", "then", "gap", "without", "filter", "by"}``; lines have no number
2  it is the JSON of any question (:mod:`moviola.search.asked`), with pictures beside it

A line is ``{"format", "kind", "name", "version", "changed", "value"}``, and ``"pictures"``: bytes by name, in
Base64.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from moviola.errors import DataError, InvalidValue
from moviola.library.userdata.pictures import picture_name
from moviola.library.userdata.values import Entry, SavedSearch

__all__ = ["FORMAT", "entry_of_line", "line_of", "of_today"]

FORMAT = 2
_LONGEST_GAP = 1e7  # seconds; in format 1 it stood for any, since JSON has no infinity


def line_of(entry: Entry, picture: Callable[[str], bytes]) -> str:
    """An entry as a line of JSON; ``picture`` gives the bytes of its pictures."""
    row: dict[str, Any] = {"format": FORMAT, **entry.model_dump()}
    if isinstance(entry.value, SavedSearch) and (names := sorted(entry.value.pictures)):
        row["pictures"] = {name: b64encode(picture(name)).decode() for name in names}
    return json.dumps(row)


def of_today(kind: str, value: Any, format: int) -> Any:
    """The value of an entry of some format as one of the present one.

    Raises:
        TypeError, AttributeError: it is none of that format.
    """
    return _search_of_format_1(**value) if kind == "search" and format == 1 else value


def _search_of_format_1(
    *,
    text: str,
    then: Sequence[str] = (),
    gap: float = 60.0,
    without: Sequence[str] = (),
    filter: Mapping[str, str] | None = None,
    by: str = "all",
) -> dict[str, Any]:
    query: Any = text
    if then or without:
        steps = [{"terms": [{"text": one}], "gap": None if gap >= _LONGEST_GAP else gap} for one in then]
        query = {"terms": [{"text": text}], "then": steps, "without": [*without]}
    rest = {**({"filter": dict(filter)} if filter else {}), **({"by": by} if by != "all" else {})}
    return {"query": query, **rest}


def entry_of_line(line: str) -> tuple[Entry, dict[str, bytes]]:
    """The entry of a line of JSON, and its pictures.

    Raises:
        DataError: the line is damaged, or of a later format.
        ValidationError, InvalidValue: the entry is none that can be kept.
    """
    try:
        row = json.loads(line)
        format = row.pop("format", 1)
        if format not in range(1, FORMAT + 1):
            raise DataError(f"format {format!r:.20}, but this moviola reads 1 to {FORMAT}; update moviola")
        try:
            row["value"] = of_today(row.get("kind", ""), row.get("value"), format)
        except TypeError as error:
            raise DataError(f'no search of format 1 ({error}); lines of today have "format": 2') from error
        contents = row.pop("pictures", {}).items()
        pictures = {name: b64decode(text, validate=True) for name, text in contents}
    except DataError:  # it is a ValueError, too
        raise
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"no entry of JSON ({error!s:.100}); give lines of `moviola kept export`") from error
    if wrong := [name for name, content in pictures.items() if picture_name(content) != name]:
        raise DataError(f"picture {min(wrong):.40}: its bytes are others; export it again")
    entry = Entry.model_validate(row)
    return entry.model_copy(update={"changed": _in_utc(entry.changed)}), pictures


def _in_utc(changed: str) -> str:
    """A time of change as entries have it, which are compared by its text; empty for one never stored."""
    if not changed:
        return ""
    try:
        time = datetime.fromisoformat(changed)
        return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError) as error:
        example = "2024-05-01T18:30:00+00:00"
        raise InvalidValue(
            f"changed {changed!r:.100}: write a time in ISO 8601, such as {example}"
        ) from error
