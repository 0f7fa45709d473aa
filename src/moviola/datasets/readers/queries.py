"""Files of queries: a list to search for, without judgements."""

from __future__ import annotations

import json
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
        DataError: not UTF-8, a row without ``query_id`` or ``query``, two texts under one id, no query, or
            one object, as a run.
    """
    content = read_text(path)
    texts: dict[str, str] = {}
    if content.lstrip()[:1] in ("[", "{"):
        _refuse_run(path, content)
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


def _refuse_run(path: Path, content: str) -> None:
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        return  # lines, or damaged
    if isinstance(whole, dict) and whole and all(isinstance(value, list) for value in whole.values()):
        raise DataError(
            f"{path}: a run or judgements, moments by query, which hold no text to search for; give queries: "
            "a JSON list or lines with query_id and query, or one text per line"
        )
