"""Label Studio tasks for candidates, and ratings from its exports (TVR-Ranking, section 3.2, B).

A task is one query-moment pair; captions of candidates are not shown. ``data.pair_id`` is in every annotation
of the export and identifies the pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moviola.datasets.annotations import Annotations
from moviola.datasets.building.consensus import LEVELS, Rating
from moviola.datasets.building.pseudo import BATCH, Candidates, needs_second_batch
from moviola.errors import DataError
from moviola.files.rows import read_json

__all__ = [
    "GUIDELINE",
    "LABEL_CONFIG",
    "Pair",
    "annotated_tasks",
    "candidate_pairs",
    "next_pairs",
    "ratings_of",
    "tasks",
]

GUIDELINE: Mapping[int, str] = {
    4: "Perfect: exactly what the query says happens, well in view, and the moment is no longer than it.",
    3: "Good: it happens, but a detail differs or something else is in the moment too.",
    2: "Partly: only a part of the query happens, or much of it is out of view or cut off.",
    1: "Little: some things or people of the query are there, but the main action is another.",
    0: "Unrelated. A person who does nothing of what the query says counts as unrelated.",
}
"""Meaning of the levels, for raters."""

_CHOICES = "\n".join(
    f'    <Choice value="{level}" hint="{GUIDELINE[level]}"/>' for level in sorted(GUIDELINE, reverse=True)
)
LABEL_CONFIG = f"""<View>
  <Header value="$query"/>
  <Video name="moment" value="$video"/>
  <Choices name="relevance" toName="moment" choice="single" required="true">
{_CHOICES}
  </Choices>
</View>
"""
"""The labelling interface to paste into a Label Studio project."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a moment that may answer it; ``rank`` from 1 by falling similarity; times in seconds."""

    pair_id: str
    query_id: str
    query: str
    video_name: str
    start: float
    end: float
    duration: float
    caption: str
    similarity: float
    rank: int

    @property
    def batch(self) -> int:
        """Batch of the pair's annotation, 1 or 2."""
        return (self.rank - 1) // BATCH + 1


def candidate_pairs(queries: Mapping[str, str], moments: Annotations, found: Candidates) -> list[Pair]:
    """Pairs of each query (id to text) with its candidates, in order; a pair is named ``QUERY:MOMENT``."""
    pairs = []
    for (query_id, query), places, values in zip(
        queries.items(), found.moment, found.similarity, strict=True
    ):
        for rank, (place, value) in enumerate(zip(places.tolist(), values.tolist(), strict=True), start=1):
            video = int(moments.video[place])
            pairs.append(Pair(
                f"{query_id}:{moments.moment_ids[place]}", query_id, query, moments.videos[video],
                float(moments.start[place]), float(moments.end[place]), float(moments.durations[video]),
                moments.captions[place], round(value, 6), rank,
            ))  # fmt: skip
    return pairs


def next_pairs(
    pairs: Iterable[Pair], agreed: Mapping[str, int], *, last: int = 5, threshold: float = 2.0
) -> list[Pair]:
    """Second batches of the queries whose first batch still ends with relevant moments.

    Args:
        pairs: both batches of candidates.
        agreed: levels by pair id; pairs without agreement are left out of the judgement.
        last, threshold: see :func:`~moviola.datasets.building.pseudo.needs_second_batch`.
    """
    by_query: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_query.setdefault(pair.query_id, []).append(pair)
    wanted: list[Pair] = []
    for mine in by_query.values():
        levels = [
            agreed[p.pair_id]
            for p in sorted(mine, key=lambda p: p.rank)
            if p.batch == 1 and p.pair_id in agreed
        ]
        if len(levels) >= last and needs_second_batch(levels, last=last, threshold=threshold):
            wanted.extend(pair for pair in mine if pair.batch == 2)
    return wanted


def tasks(
    pairs: Iterable[Pair], video: str = "{video_name}.mp4#t={start:.2f},{end:.2f}"
) -> list[dict[str, Any]]:
    """Task list for Label Studio.

    Args:
        pairs: the pairs to rate.
        video: address of a moment's video; ``{video_name}``, ``{start}`` and ``{end}`` are filled in.
    """
    return [
        {
            "data": {
                "pair_id": pair.pair_id,
                "query_id": pair.query_id,
                "query": pair.query,
                "video": video.format(video_name=pair.video_name, start=pair.start, end=pair.end),
                "rank": pair.rank,
            }
        }
        for pair in pairs
    ]


def annotated_tasks(pairs: Iterable[Pair], ratings: Iterable[Rating]) -> list[dict[str, Any]]:
    """Task list for Label Studio with ratings, in :func:`ratings_of`'s form."""
    by_pair: dict[str, list[Rating]] = {}
    for rating in ratings:
        by_pair.setdefault(rating.pair_id, []).append(rating)
    return [
        task | {"annotations": [_annotation(rating) for rating in by_pair.get(task["data"]["pair_id"], ())]}
        for task in tasks(pairs)
    ]


def _annotation(rating: Rating) -> dict[str, Any]:
    chosen = {"choices": [str(rating.relevance)]}
    result = {"from_name": "relevance", "to_name": "moment", "type": "choices", "value": chosen}
    return {"completed_by": {"email": rating.worker}, "was_cancelled": False, "result": [result]}


def ratings_of(path: Path) -> list[Rating]:
    """Ratings in a Label Studio JSON export; cancelled annotations are ignored.

    Raises:
        NotFound: no such file.
        DataError: not such an export, or a rating is no level; the message names task and field.
    """
    exported = read_json(path)
    if not isinstance(exported, list):
        raise DataError(f"{path}: a list of tasks is expected (export as JSON, not JSON-MIN)")
    ratings: list[Rating] = []
    for place, task in enumerate(exported, start=1):
        where = f"{path}: task {place}"
        data = task.get("data") if isinstance(task, dict) else None
        if not isinstance(data, dict) or not data.get("pair_id"):
            raise DataError(f"{where}: data.pair_id is missing")
        kept = [given for given in task.get("annotations") or [] if not given.get("was_cancelled")]
        ratings.extend(Rating(str(data["pair_id"]), _worker(g, where), _level(g, where)) for g in kept)
    return ratings


def _worker(given: Mapping[str, Any], where: str) -> str:
    by = given.get("completed_by")
    name = (by.get("email") or by.get("id")) if isinstance(by, dict) else by
    if name is None or name == "":
        raise DataError(f"{where}: completed_by is missing")
    return str(name)


def _level(given: Mapping[str, Any], where: str) -> int:
    results: Sequence[Mapping[str, Any]] = given.get("result") or []
    chosen = [r.get("value", {}).get("choices") for r in results if r.get("from_name") == "relevance"]
    valid = {str(level): level for level in range(LEVELS)}
    if (
        len(chosen) != 1
        or not isinstance(chosen[0], list)
        or len(chosen[0]) != 1
        or str(chosen[0][0]) not in valid
    ):
        raise DataError(
            f"{where}: relevance: one level from 0 to {LEVELS - 1} is expected, not {chosen!r:.60}"
        )
    return valid[str(chosen[0][0])]
