"""Files between the steps of annotation: candidate pairs, ratings, agreed levels, judgements.

Readers raise :class:`NotFound` where there is no file, and :class:`DataError` with the file, the line and the
field where one is missing or wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from moviola.errors import DataError, InvalidValue
from moviola.files.rows import number, read_csv, text
from moviola.files.writing import write_csv, write_json
from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.datasets.building.consensus import LEVELS, Rating

__all__ = [
    "read_agreed", "read_pairs", "read_ratings", "write_agreed", "write_judgements", "write_pairs",
    "write_ratings",
]  # fmt: skip


def write_pairs(pairs: Sequence[Pair], path: Path) -> int:
    """Candidate pairs as CSV, one row per pair; returns how many there are."""
    write_csv(path, [field.name for field in fields(Pair)], map(astuple, pairs))
    return len(pairs)


def read_pairs(path: Path) -> list[Pair]:
    """Candidate pairs written by :func:`write_pairs`; an id given twice is a :class:`DataError`."""
    pairs: dict[str, Pair] = {}
    for place, row in read_csv(path, required=[field.name for field in fields(Pair)]).objects():
        pair = Pair(
            pair_id=text(row, "pair_id", place),
            query_id=text(row, "query_id", place),
            query=text(row, "query", place),
            video_name=text(row, "video_name", place),
            start=number(row["start"], "start", place),
            end=number(row["end"], "end", place),
            duration=number(row["duration"], "duration", place),
            caption=row["caption"],  # empty where a search found the moment
            # A cosine; rounding may carry it a little past 1.
            similarity=number(row["similarity"], "similarity", place, -1.01, 1.01),
            rank=_rank(row, place),
        )
        if pair.pair_id in pairs:
            raise DataError(f"{place}: pair_id {pair.pair_id} is given twice; give each an id of its own")
        pairs[pair.pair_id] = pair
    return list(pairs.values())


def write_judgements(pairs: Iterable[Pair], agreed: Mapping[str, int], path: Path) -> int:
    """A TVR-Ranking pair file with the relevance of agreed pairs; returns how many there are.

    Raises:
        InvalidValue: no pair has an agreed level.
    """
    judged = [pair for pair in pairs if pair.pair_id in agreed]
    if not judged:
        raise InvalidValue(
            f"{path}: none of the candidates has an agreed level; give the levels of these pairs"
        )
    entries: dict[str, dict[str, Any]] = {}
    for pair in judged:
        entry = {"query_id": pair.query_id, "query": pair.query, "relevant_moment": []}
        entries.setdefault(pair.query_id, entry)["relevant_moment"].append(
            pair.moment() | {"similarity": pair.similarity, "relevance": agreed[pair.pair_id]}
        )
    write_json(path, list(entries.values()))
    return len(judged)


def write_ratings(ratings: Sequence[Rating], path: Path) -> int:
    """Ratings as CSV that :func:`read_ratings` reads; returns how many there are."""
    write_csv(path, [field.name for field in fields(Rating)], map(astuple, ratings))
    return len(ratings)


def read_ratings(path: Path) -> list[Rating]:
    """A CSV with the columns ``pair_id, worker, relevance`` (TVR-Ranking's raw_annotation.csv)."""
    return [
        Rating(text(row, "pair_id", place), text(row, "worker", place), _level(row, place))
        for place, row in read_csv(path, required=("pair_id", "worker", "relevance")).objects()
    ]


def write_agreed(agreed: Mapping[str, int], path: Path) -> None:
    """Agreed levels as CSV that :func:`read_agreed` reads, by pair."""
    pairs = sorted(agreed, key=lambda pair: (len(pair), pair))
    write_csv(path, ("pair_id", "relevance"), ((pair, agreed[pair]) for pair in pairs))


def read_agreed(path: Path) -> dict[str, int]:
    """Agreed levels by pair, written by :func:`write_agreed`."""
    rows = read_csv(path, required=("pair_id", "relevance")).objects()
    return {text(row, "pair_id", place): _level(row, place) for place, row in rows}


def _rank(row: Mapping[str, str], place: str) -> int:
    rank = number(row["rank"], "rank", place, low=1)
    if not rank.is_integer():
        raise DataError(f"{place}: rank: {row['rank']!r} is no whole number")
    return int(rank)


def _level(row: Mapping[str, str], place: str) -> int:
    level = text(row, "relevance", place)
    if level not in {str(number) for number in range(LEVELS)}:
        raise DataError(f"{place}: relevance {level!r} is no level from 0 to {LEVELS - 1}")
    return int(level)
