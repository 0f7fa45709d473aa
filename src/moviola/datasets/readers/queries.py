"""Files of queries: a list to search for, without judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from moviola.errors import DataError
from moviola.files.rows import lines_of, listed_rows, read_text, text
from moviola.types import Query

__all__ = ["read_queries"]


def read_queries(path: Path) -> list[Query]:
    """Queries of a file: TVR-Ranking's JSON list or JSON lines, or plain text with one query per line.

    Rows of one query (one per pair, in the older form) give it once. Plain lines get the ids "1", "2", …

    Raises:
        NotFound: no such file.
        DataError: not UTF-8, a row without ``query_id`` or ``query``, two texts under one id, or no query
            at all.
    """
    content = read_text(path)
    if content.lstrip()[:1] in ("[", "{"):
        queries = _from_rows(listed_rows(path, content).objects())
    else:
        lines = [line.strip() for line in lines_of(content) if line.strip()]
        queries = [Query(str(number), line) for number, line in enumerate(lines, start=1)]
    if not queries:
        raise DataError(f"{path}: holds no query")
    return queries


def _from_rows(rows: Iterator[tuple[str, Mapping[str, Any]]]) -> list[Query]:
    texts: dict[str, str] = {}
    for place, row in rows:
        query_id, query = text(row, "query_id", place), text(row, "query", place)
        if texts.setdefault(query_id, query) != query:
            raise DataError(f"{place}: query_id {query_id} stands for two texts")
    return [Query(query_id, query) for query_id, query in texts.items()]
