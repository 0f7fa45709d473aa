"""Files of queries, without judgements; and keys by which published features name those of annotations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from moviola.errors import DataError
from moviola.files.rows import lines_of, listed_rows, read_json_lines, read_text, text
from moviola.study.datasets.readers.tvr_ranking import asked_queries
from moviola.types import Query, require_known

__all__ = ["QUERY_KEYS", "kind_of_keys", "read_queries", "read_query_keys"]


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


QUERY_KEYS: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
    "query_id": lambda path: iter(asked_queries(path).items()),
    # Captions without blanks around them, as `read_tvr` has them, and the pair files that are made of these.
    "desc_id": lambda path: (
        (text(row, "desc_id", place), text(row, "desc", place).strip())
        for place, row in read_json_lines(path)
    ),
    "text": lambda path: ((query, query) for query in asked_queries(path).values()),
}
"""Readers of keys and texts of an annotation file, by the kind of key.

``query_id`` and ``text`` are of TVR-Ranking pair files, ``desc_id`` of TVR's JSON lines.
"""


def kind_of_keys(annotations: Path, held: Collection[str]) -> str:
    """The kind of :data:`QUERY_KEYS` by which features have the queries of an annotation file: that of TVR's
    JSON lines, of a pair file ``text`` where ``held`` has a text, else ``query_id``.
    """
    with suppress(DataError):
        if next(QUERY_KEYS["desc_id"](annotations), None):
            return "desc_id"
    return "text" if any(query in held for query, _ in QUERY_KEYS["text"](annotations)) else "query_id"


def read_query_keys(annotations: Sequence[Path], key: str) -> dict[str, str]:
    """Key of each query of annotation files by its text; of queries with the same text, the first one's.

    Raises:
        InvalidValue: ``key`` is not in :data:`QUERY_KEYS`.
        DataError: one key stands for two texts, or there is no query.
    """
    require_known("key", key, QUERY_KEYS)
    texts: dict[str, str] = {}
    keys: dict[str, str] = {}
    for path in annotations:
        for name, query in QUERY_KEYS[key](path):
            if texts.setdefault(name, query) != query:
                raise DataError(
                    f"{path}: {key} {name} is {query!r}, but was {texts[name]!r} before; give annotation "
                    "files that belong to one file of features"
                )
            keys.setdefault(query, name)
    if not keys:
        raise DataError(f"{', '.join(map(str, annotations))}: no queries; give annotation files")
    return keys
