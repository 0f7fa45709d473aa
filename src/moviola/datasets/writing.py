"""Annotations out: TVR's jsonl, pair files, and the drawing of val and test queries."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from moviola.datasets.annotations import Annotations
from moviola.datasets.consensus import LEVELS, Rating
from moviola.datasets.labelstudio import Pair
from moviola.errors import DataError, InvalidValue
from moviola.files.rows import number, read_text, text

__all__ = [
    "draw_queries", "read_agreed", "read_pairs",
    "write_judgements", "write_pairs", "write_ratings", "write_text",
    "write_tvr",
]  # fmt: skip


def write_text(path: Path, content: str) -> None:
    """Write a text file beside and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".tmp")
    draft.write_text(content, encoding="utf-8")
    draft.replace(path)


def write_tvr(moments: Annotations, path: Path) -> None:
    """TVR's jsonl, which :func:`~moviola.datasets.readers.read_tvr` reads: the common form of all data sets.

    Raises:
        InvalidValue: a video's duration is unknown.
    """
    unknown = np.isnan(moments.durations[moments.video])
    if unknown.any():
        video = moments.videos[int(moments.video[int(np.argmax(unknown))])]
        raise InvalidValue(f"{video}: its duration is unknown; give the file of durations (--durations)")
    rows = [
        {
            "vid_name": moments.videos[video], "duration": float(moments.durations[video]),
            "ts": [float(moments.start[place]), float(moments.end[place])], "desc": moments.captions[place],
            "type": moments.types[place], "desc_id": moments.moment_ids[place],
        }
        for place, video in enumerate(moments.video.tolist())
    ]  # fmt: skip
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def draw_queries(captions: Iterable[str], sizes: Mapping[str, int], seed: int) -> dict[str, dict[str, str]]:
    """Draw queries at random for splits such as val and test, without a text in two of them.

    Args:
        captions: of all moments; identical ones are one query.
        sizes: split to number of queries.
        seed: of the draw.

    Returns:
        split to query id to text; ids are numbers over all splits, from 1.

    Raises:
        InvalidValue: more queries are asked for than there are different captions.
    """
    texts = list(dict.fromkeys(captions))
    wanted = sum(sizes.values())
    if wanted > len(texts):
        raise InvalidValue(f"{wanted} queries of {len(texts)} different captions: ask for fewer")
    drawn = np.random.default_rng(seed).permutation(len(texts))[:wanted].tolist()
    splits: dict[str, dict[str, str]] = {}
    first = 0
    for name, size in sizes.items():
        splits[name] = {str(first + n + 1): texts[drawn[first + n]] for n in range(size)}
        first += size
    return splits


def write_pairs(pairs: Iterable[Pair], path: Path) -> None:
    """Candidate pairs as CSV."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(field.name for field in fields(Pair))
    writer.writerows(asdict(pair).values() for pair in pairs)
    write_text(path, file.getvalue())


def read_pairs(path: Path) -> list[Pair]:
    """Candidate pairs that :func:`write_pairs` wrote.

    Raises:
        DataError: a field is missing or no number; file, line and field are named.
    """
    rows = csv.DictReader(io.StringIO(read_text(path)))
    pairs = []
    for row in rows:
        where = f"{path}: line {rows.line_num}"
        pairs.append(
            Pair(
                pair_id=text(row, "pair_id", where),
                query_id=text(row, "query_id", where),
                query=text(row, "query", where),
                video_name=text(row, "video_name", where),
                start=number(row.get("start"), "start", where),
                end=number(row.get("end"), "end", where),
                duration=number(row.get("duration"), "duration", where),
                caption=text(row, "caption", where),
                similarity=_cosine(row.get("similarity"), where),
                rank=int(number(row.get("rank"), "rank", where)),
            )
        )
    return pairs


def _cosine(value: str | None, where: str) -> float:
    try:
        found = float(value or "")
    except ValueError:
        found = float("nan")
    if not -1.01 <= found <= 1.01:
        raise DataError(f"{where}: similarity: {value!r} is no number from -1 to 1")
    return found


def write_judgements(pairs: Iterable[Pair], agreed: Mapping[str, int], path: Path) -> int:
    """A TVR-Ranking pair file with the relevance of agreed pairs; returns how many there are."""
    entries: dict[str, dict[str, object]] = {}
    judged: dict[str, list[dict[str, object]]] = {}
    for pair in pairs:
        if pair.pair_id in agreed:
            entries.setdefault(pair.query_id, {"query_id": pair.query_id, "query": pair.query})
            judged.setdefault(pair.query_id, []).append({
                "pair_id": pair.pair_id, "video_name": pair.video_name, "timestamp": [pair.start, pair.end],
                "duration": pair.duration, "caption": pair.caption, "similarity": pair.similarity,
                "relevance": agreed[pair.pair_id],
            })  # fmt: skip
    content = [{**entry, "relevant_moment": judged[query]} for query, entry in entries.items()]
    write_text(path, json.dumps(content, ensure_ascii=False))
    return sum(map(len, judged.values()))


def write_ratings(ratings: Iterable[Rating], path: Path) -> None:
    """Ratings as CSV that :func:`~moviola.datasets.consensus.read_ratings` reads."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("pair_id", "worker", "relevance"))
    writer.writerows((rating.pair_id, rating.worker, rating.relevance) for rating in ratings)
    write_text(path, file.getvalue())


def read_agreed(path: Path) -> dict[str, int]:
    """Agreed levels that :func:`~moviola.datasets.consensus.write_agreed` wrote.

    Raises:
        DataError: a pair is missing, or a level is no whole number from 0 to 4.
    """
    rows = csv.DictReader(io.StringIO(read_text(path)))
    agreed: dict[str, int] = {}
    for row in rows:
        where = f"{path}: line {rows.line_num}"
        level = text(row, "relevance", where)
        if level not in {str(number) for number in range(LEVELS)}:
            raise DataError(f"{where}: relevance {level!r} is no level from 0 to {LEVELS - 1}")
        agreed[text(row, "pair_id", where)] = int(level)
    return agreed
