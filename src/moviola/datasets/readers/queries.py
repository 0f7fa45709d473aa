"""Files of queries: a list to search for, without judgements."""

from __future__ import annotations

from pathlib import Path

from moviola.errors import DataError
from moviola.files.rows import lines_of, listed_rows, read_text, text
from moviola.types import Query

__all__ = ["read_queries"]


def read_queries(path: Path) -> list[Query]:
    """Queries of a file: TVR-Ranking's JSON list or JSON lines, or plain text with one query per line.

    Rows of one query (one per pair, in the older form) give it once. Plain lines get the ids "1", "2", …

    Raises:
        NotFound: no such file.
        DataError: not UTF-8, a row without ``query_id`` or ``query``, two texts under one id, or no query.
    """
    content = read_text(path)
    texts: dict[str, str] = {}
    if content.lstrip()[:1] in ("[", "{"):
        for place, row in listed_rows(path, content).objects():
            query_id, query = text(row, "query_id", place), text(row, "query", place)
            if texts.setdefault(query_id, query) != query:
                raise DataError(f"{place}: query_id {query_id} stands for two texts")
    else:
        lines = (line.strip() for line in lines_of(content) if line.strip())
        texts = {str(number): line for number, line in enumerate(lines, start=1)}
    if not texts:
        raise DataError(f"{path}: holds no query")
    return [Query(query_id, query) for query_id, query in texts.items()]
