"""A file of queries, as `moviola search --queries` takes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moviola.errors import DataError, NotFound
from moviola.types import Query

__all__ = ["read_queries"]


def read_queries(path: Path) -> list[Query]:
    """Queries of a file: TVR-Ranking's JSON list or JSON lines, or plain text with one query a line.

    Rows of one query (one a pair, in the older form) give it once. Plain lines get the ids "1", "2", …

    Raises:
        NotFound: no such file.
        DataError: a row without ``query_id`` or ``query``, two texts under one id, or no query at all.
    """
    if not path.is_file():
        raise NotFound(f"{path}: no such file")
    text = path.read_text(encoding="utf-8-sig")
    if text.lstrip()[:1] in ("[", "{"):
        queries = _from_rows(path, _rows(path, text))
    else:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        queries = [Query(str(number), line) for number, line in enumerate(lines, start=1)]
    if not queries:
        raise DataError(f"{path}: holds no query")
    return queries


def _rows(path: Path, text: str) -> list[tuple[str, Any]]:
    """Rows with where they stand in the file, for messages."""
    try:
        if text.lstrip().startswith("["):
            return [(f"entry {n}", row) for n, row in enumerate(json.loads(text), start=1)]
        lines = enumerate(text.splitlines(), start=1)
        return [(f"line {n}", json.loads(line)) for n, line in lines if line.strip()]
    except ValueError as error:
        raise DataError(f"{path}: not valid JSON ({error})") from error


def _from_rows(path: Path, rows: list[tuple[str, Any]]) -> list[Query]:
    texts: dict[str, str] = {}
    for where, row in rows:
        missing = [key for key in ("query_id", "query") if not isinstance(row, dict) or key not in row]
        if missing:
            raise DataError(f"{path}: {where}: the field {missing[0]!r} is missing")
        query_id, text = str(row["query_id"]), str(row["query"])
        if texts.setdefault(query_id, text) != text:
            raise DataError(f"{path}: {where}: query_id {query_id} stands for two texts")
    return [Query(query_id, text) for query_id, text in texts.items()]
