"""Exports of a judging task: a graded test set, ratings, and training pairs, in common forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moviola.errors import AlreadyJudged, InvalidValue, NotFound, counted
from moviola.files.writing import write_json
from moviola.library import require_no_library
from moviola.study.datasets.building.annotation_files import (
    read_ratings,
    write_judgements,
    write_pairs,
    write_ratings,
)
from moviola.study.datasets.building.candidate_pairs import Pair, draw_queries
from moviola.study.datasets.building.consensus import LEVELS
from moviola.study.judging.task import JudgingTask, folded_name, shown_name
from moviola.study.measures import Qrels, write_qrels
from moviola.study.measures.output_formats import SUFFIXES
from moviola.types import require_known

__all__ = ["EXPORTS", "Export", "Imported", "export_splits", "export_task", "import_ratings"]


@dataclass(frozen=True, slots=True)
class Export:
    """An export form of a task; ``write`` returns the number of rows that it wrote."""

    title: str
    suffix: str
    write: Callable[[JudgingTask, Path], int]


def _qrels(task: JudgingTask, path: Path) -> int:
    agreed = task.outcome().agreed
    judged = [pair for pair in task.pairs if pair.pair_id in agreed]
    rows = ((pair.query_id, pair.video_name, pair.start, pair.end, agreed[pair.pair_id]) for pair in judged)
    write_qrels(Qrels.from_columns(*zip(*rows, strict=True)), path)
    return len(judged)


def _pairs(task: JudgingTask, path: Path) -> int:
    found = task.outcome()
    left = [pair for pair in task.due(found) if found.standing[pair.pair_id] == "open"]
    if not left:
        raise InvalidValue(f"{task.path}: no moment is left to rate; export the judgements or the ratings")
    return write_pairs(left, path)


EXPORTS: dict[str, Export] = {
    "tvr_ranking": Export(
        "Graded test set (TVR-Ranking)", ".json",
        lambda task, path: write_judgements(task.pairs, task.outcome().agreed, path),
    ),
    "qrels": Export("Judgements by query", ".json", _qrels),
    "ratings": Export(
        "Every rating", ".csv", lambda task, path: write_ratings(task.outcome().ratings, path)
    ),
    "pairs": Export("Moments to rate elsewhere", ".csv", _pairs),
}  # fmt: skip
"""The forms, by name."""


def export_task(task: JudgingTask, path: str | Path, form: str = "tvr_ranking") -> int:
    """Write a task in one of its forms; moments that were discarded are in none but the ratings.

    Returns the number of judged moments, of ratings, or of moments still to rate, that were written.

    Raises:
        InvalidValue: no such form, no agreement so far, no moment left to rate, or the file is that of the
            task, lies in a library, has the suffix of another form, or cannot be written.
    """
    require_known("form", form, EXPORTS)
    path = Path(path)
    require_no_library(path)
    if form != "qrels" and path.suffix in SUFFIXES and path.suffix != EXPORTS[form].suffix:
        raise InvalidValue(
            f"{path}: form {form!r} is written as {EXPORTS[form].suffix}; give a file that ends so"
        )
    if path.exists() and path.samefile(task.path):
        raise InvalidValue(f"{path}: is the task itself, whose ratings would be lost; name another file")
    if form in ("tvr_ranking", "qrels") and not task.outcome().agreed:
        raise InvalidValue(f"{task.path}: raters agree on no moment yet; judge some first")
    return EXPORTS[form].write(task, path)


@dataclass(frozen=True, slots=True)
class Imported:
    """Outcome of an import.

    Attributes:
        accepted, refusals: numbers of ratings that were taken in, and that were refused.
        refused: reasons by pair id: the pair is not in the task, or has all ratings it needs.
        replaced: number of ratings that a later one of the file, by the same rater, has replaced.
    """

    accepted: int
    refusals: int
    refused: dict[str, str]
    replaced: int = 0


def import_ratings(task: JudgingTask, path: str | Path) -> Imported:
    """Import ratings of a task's pairs that were made elsewhere; raters of whom one is accepted sign in.

    Raises:
        NotFound, DataError: see :func:`~moviola.study.datasets.building.annotation_files.read_ratings`.
        InvalidValue: an invalid rater's name.
    """
    ratings = read_ratings(Path(path))
    for rating in ratings:
        shown_name(rating.worker)  # all are good names before the first rating is saved
    refusals, refused = 0, {}
    kept: set[tuple[str, str]] = set()
    for rating in ratings:
        try:
            task.answer_as(rating.worker, rating.pair_id, rating.relevance)
        except (AlreadyJudged, NotFound) as error:
            refusals += 1
            refused[rating.pair_id] = str(error)
        else:
            kept.add((rating.pair_id, folded_name(rating.worker)))
    return Imported(len(kept), refusals, refused, len(ratings) - refusals - len(kept))


def training_entries(pairs: list[Pair], agreed: Mapping[str, int], level: int) -> list[dict[str, Any]]:
    """Judged relevant moments as TVR-Ranking's training pairs, which ``moviola train`` reads.

    In the paper, ``similarity`` stands for relevance without a judgement, and weighs the pair in the loss;
    here it is the judged level divided by the highest. The most relevant moments come first. ``agreed`` holds
    levels by pair id, ``level`` is the least one, 1 to 4.
    """
    relevant = [pair for pair in pairs if agreed.get(pair.pair_id, 0) >= level]
    queries: dict[str, dict[str, Any]] = {
        pair.query_id: {"query_id": pair.query_id, "query": pair.query, "relevant_moment": []}
        for pair in pairs
    }
    for pair in sorted(relevant, key=lambda pair: (-agreed[pair.pair_id], pair.rank)):
        moment = pair.moment() | {"similarity": agreed[pair.pair_id] / (LEVELS - 1)}
        queries[pair.query_id]["relevant_moment"].append(moment)
    return [entry for entry in queries.values() if entry["relevant_moment"]]


def export_splits(
    task: JudgingTask, folder: str | Path, *, val: int, test: int, level: int = 2, seed: int = 0
) -> dict[str, tuple[int, int]]:
    """Judged moments as ``train.json``, ``val.json`` and ``test.json``, with no query text in two of them.

    Val and test hold every judged moment with its level; train those from ``level`` on, see
    :func:`training_entries`.

    Args:
        val, test: number of query texts, drawn at random, kept for each, >= 0; the others are for training.
        level: minimum level of a training moment, 1 to 4.
        seed: of the draw.

    Returns:
        by split, its numbers of queries, by id, and moments.

    Raises:
        InvalidValue: a number out of range, no query with such a moment is left for training, or the folder
            lies in a library or has a file of a split that is not written now.
    """
    folder = Path(folder)
    require_no_library(folder)
    if not 1 <= level < LEVELS:
        raise InvalidValue(f"level {level}: give 1 to {LEVELS - 1}; moments of level 0 are no answers")
    agreed = task.outcome().agreed
    answered = [pair for pair in task.pairs if agreed.get(pair.pair_id, 0) >= level]
    captions = dict.fromkeys(pair.query for pair in answered)
    if val + test >= len(captions):
        have, are = "has" if len(captions) == 1 else "have", "is" if val + test == 1 else "are"
        raise InvalidValue(
            f"{task.path}: {counted(len(captions), 'query')} {have} a moment of level {level},"
            f" and {val + test} {are} kept for val and test; judge more queries or keep fewer"
        )
    drawn = draw_queries(captions, {"val": val, "test": test}, seed)
    texts = {name: set(queries.values()) for name, queries in drawn.items() if queries}
    held_out = set().union(*texts.values())
    learned = [pair for pair in task.pairs if pair.query not in held_out]
    entries = training_entries(learned, agreed, level)
    for name in drawn:
        # Queries of an old file may be among those to learn from now.
        if name not in texts and (old := folder / f"{name}.json").exists():
            raise InvalidValue(
                f"{old}: of an earlier split; give --{name} 1 or more, remove it, or name another folder"
            )
    write_json(folder / "train.json", entries, indent=0)
    counts = {"train": (len(entries), sum(len(entry["relevant_moment"]) for entry in entries))}
    for name, kept in texts.items():
        chosen = [pair for pair in task.pairs if pair.query in kept and pair.pair_id in agreed]
        queries = len({pair.query_id for pair in chosen})  # of several with one text, each
        counts[name] = queries, write_judgements(chosen, agreed, folder / f"{name}.json")
    return counts
