"""TVR-Ranking's pair files: queries with the moments that may answer them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from moviola.errors import DataError, InvalidValue
from moviola.files.rows import json_rows, number, parse_json, read_text, span, text
from moviola.files.writing import write_json
from moviola.study.datasets.annotations import Annotations, Collector
from moviola.study.datasets.readers.videos import known_durations

__all__ = [
    "asked_queries", "asked_rows", "ranked_queries", "read_tvr_ranking", "write_own_pairs",
]  # fmt: skip


def read_tvr_ranking(path: Path, durations: Path | None = None) -> Annotations:
    """Moments of a TVR-Ranking pair file (JSON list or JSON lines), each pair's moment once.

    A moment is the same if video, times and caption are; one that a search found has no caption.
    """
    collector = Collector("TVR-Ranking", known_durations(durations), captioned=False)
    seen: set[tuple[str, float, float, str]] = set()
    for where, _, moment in _pairs(path):
        if moment is None:
            continue
        video, caption = text(moment, "video_name", where), str(moment.get("caption") or "")
        start, end = span(moment.get("timestamp"), "timestamp", where)
        if (video, start, end, caption) not in seen:
            seen.add((video, start, end, caption))
            collector.add_video(video, number(moment.get("duration"), "duration", where))
            collector.add(video, start, end, caption, moment_id=str(moment.get("pair_id", "")))
    return collector.made()


def _pairs(path: Path) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any] | None]]:
    """Place of a pair, the entry with its query, and its moment; in the older form one row is both.

    An entry whose list is empty, which nothing answers, comes once, without a moment.
    """
    content = read_text(path)
    if not content.lstrip().startswith("["):
        yield from ((where, row, row) for where, row in json_rows(path, content).objects())
        return
    for place, entry in enumerate(parse_json(path, content), start=1):
        where = f"{path}: entry {place}"
        moments = entry.get("relevant_moment") if isinstance(entry, dict) else None
        if not isinstance(moments, list):
            raise DataError(f"{where}: relevant_moment: a list is expected, not {moments!r:.60}")
        if not moments:
            yield where, entry, None
        for count, moment in enumerate(moments, start=1):
            if not isinstance(moment, dict):
                raise DataError(f"{where}, moment {count}: an object is expected")
            yield f"{where}, moment {count}", entry, moment


def asked_rows(path: Path) -> Iterator[tuple[str, str, str, str, Mapping[str, Any] | None]]:
    """Pairs of a TVR-Ranking pair file: place, query id, query text, the query's type (v, t or vt; "" without
    one), and the moment's fields, None for a query whose list of moments is empty. Two texts under one id are
    an error.
    """
    texts: dict[str, str] = {}
    for where, entry, moment in _pairs(path):
        query_id, query = text(entry, "query_id", where), text(entry, "query", where)
        if texts.setdefault(query_id, query) != query:
            raise DataError(f"{where}: query_id {query_id} stands for two texts; give each an id of its own")
        yield where, query_id, query, str((moment or {}).get("type") or entry.get("type") or ""), moment


def asked_queries(path: Path) -> dict[str, str]:
    """Text of each query of a pair file by its id, those that nothing answers included; errors as in
    :func:`asked_rows`.
    """
    return {query_id: query for _, query_id, query, _, _ in asked_rows(path)}


def ranked_queries(path: Path) -> list[str]:
    """The texts of :func:`asked_queries`."""
    return list(asked_queries(path).values())


def write_own_pairs(moments: Annotations, path: Path) -> None:
    """A pair file of a data set's own queries, each answered by its own moments alone.

    Data sets of moment retrieval (VCMR, SVMR) are judged like this: one moment per query, or a few.

    Raises:
        InvalidValue: a video's duration is unknown, a moment has no caption, or the split hides its answers.
    """
    moments.require_durations()
    if np.isnan(moments.start).any():
        raise InvalidValue(f"{moments.name}: this split hides its answers; give one that has them")
    if "" in moments.captions:
        moment_id = moments.moment_ids[moments.captions.index("")]
        raise InvalidValue(
            f"{moments.name}: moment {moment_id} has no caption, which would be its query; add one, or "
            "remove the moment"
        )
    entries: dict[tuple[str, str], dict[str, Any]] = {
        (query_id, query): {"query_id": query_id, "query": query, "relevant_moment": []}
        for query_id, query in moments.queries
    }
    for place, query in enumerate(zip(moments.query_ids, moments.captions, strict=True)):
        pair = {**moments.pair(place), "similarity": 1.0, "relevance": 1}
        entries[query]["relevant_moment"].append(pair)
    write_json(path, list(entries.values()), indent=0)
