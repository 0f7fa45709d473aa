"""Keys by which published features name the queries of annotation files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from moviola.datasets.readers.tvr_ranking import ranked_rows
from moviola.errors import DataError
from moviola.files.rows import read_json_lines, text
from moviola.types import require_known

__all__ = ["QUERY_KEYS", "read_query_keys"]


QUERY_KEYS: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
    "query_id": lambda path: ((query_id, query) for _, query_id, query, _ in ranked_rows(path)),
    # Captions without blanks around them, as `read_tvr` has them, and the pair files that are made of these.
    "desc_id": lambda path: (
        (text(row, "desc_id", place), text(row, "desc", place).strip())
        for place, row in read_json_lines(path)
    ),
    "text": lambda path: ((query, query) for _, _, query, _ in ranked_rows(path)),
}
"""Readers of keys and texts of an annotation file, by the kind of key.

``query_id`` and ``text`` are of TVR-Ranking pair files, ``desc_id`` of TVR's JSON lines.
"""


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
