"""Files of queries: a list to search for, without judgements."""

from __future__ import annotations

import json
import re
from pathlib import Path

from moviola.errors import DataError
from moviola.files.rows import lines_of, listed_rows, read_text, text
from moviola.types import Query

__all__ = ["read_queries"]

# Query, Q0 or 0, and a moment as a document.
_TREC = re.compile(r"\S+\s+Q?0\s+\S+#\S+#\S+\s")


def read_queries(path: str | Path) -> list[Query]:
    """Queries of a file: TVR-Ranking's JSON list or JSON lines, or plain text with one query per line.

    Rows of one query (one per pair, in the older form) give it once. Plain lines get the ids "1", "2", …

    Raises:
        NotFound: no such file.
        DataError: not UTF-8, a row without ``query_id`` or ``query``, two texts under one id, no query, or a
            run or judgements, in JSON, CSV or TREC's form.
    """
    path = Path(path)
    content = read_text(path)
    if _is_run(content):
        raise DataError(
            f"{path}: a run or judgements, moments by query, which hold no text to search for; give queries: "
            "a JSON list or lines with query_id and query, or one text per line"
        )
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


def _is_run(content: str) -> bool:
    first = content.lstrip().partition("\n")[0]
    columns = {name.strip(' "\r') for name in first.split(",")}
    if {"query_id", "video_id"} <= columns or _TREC.match(first):
        return True
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        return False  # lines, or damaged
    return isinstance(whole, dict) and bool(whole) and all(isinstance(one, list) for one in whole.values())
