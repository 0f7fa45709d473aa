"""Recall as in the TVR evaluator, for VCMR, SVMR and VR, with DiDeMo's rule for several time stamps.

Conventions of that evaluator, kept here because published numbers rest on them: the order of a list is its
ranking; the first 100 predictions count; times and IoU are float32; the union is the hull of both spans; an
answer is right at IoU >= θ; values are percentages with two decimals. Its annotations may carry four or more
time stamps (DiDeMo), then at least two of them must agree with the prediction.

Readers raise :class:`NotFound` where there is no file, and :class:`DataError` where one is malformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError
from moviola.files.rows import json_rows, parse_json, read_text
from moviola.study.measures.input_formats import read_run
from moviola.study.measures.presets import Preset
from moviola.study.measures.qrels_and_run import Flags, Run, query_name, query_number
from moviola.temporal import overlap
from moviola.types import require_known

__all__ = [
    "OVERLAPS", "TOPS", "read_tvr_files", "read_tvr_submission", "read_tvr_truth", "submission_of",
    "tvr_recall", "unmatched_queries",
]  # fmt: skip

TASKS = ("VCMR", "SVMR", "VR")
TYPES = ("v", "t", "vt")
OVERLAPS = (0.5, 0.7)
TOPS = (1, 5, 10, 100)
AGREEING = 2
"""Time stamps that a prediction must agree with where an annotation has several."""

Single = NDArray[np.float32]


def tvr_recall(
    submission: Mapping[str, Any],
    truth: Sequence[Mapping[str, Any]],
    *,
    overlaps: Sequence[float] = OVERLAPS,
    tops: Sequence[int] = TOPS,
) -> dict[str, dict[str, Any]]:
    """Recall in percent of a TVR submission.

    Args:
        submission: ``video2idx`` and one or more of ``VCMR``, ``SVMR``, ``VR``, each a list of ``{desc_id,
            predictions: [[video index, start, end, score], …]}``, in order of rank.
        truth: annotations with ``desc_id``, ``vid_name``, ``ts`` (``[start, end]``, or several of them) and
            maybe ``type``.
        overlaps: thresholds on the IoU.

    Returns:
        By task ``{"0.5-r1": 12.2, …}`` (VR: ``{"r1": …}``), and where all annotations have a type, under
        ``VCMR_by_type`` ``{"v-0.5-r1": …}`` relative to the queries of that type. A query without an
        entry counts as wrong.

    Raises:
        DataError: a field is missing or of the wrong form; with the annotation or the entry named.
    """
    if "video2idx" not in submission:
        raise DataError("submission: the field 'video2idx' is missing")
    _require_places(submission["video2idx"])
    tasks = [task for task in TASKS if task in submission]
    if not tasks:
        raise DataError(f"submission: holds none of {', '.join(TASKS)}")
    if not truth:
        raise DataError("ground truth: holds no annotation")
    kinds = np.array([str(row.get("type") or "") for row in truth])
    present = set(kinds.tolist()) if (kinds != "").all() else set()
    names = [name for name in TYPES if name in present] + sorted(present - set(TYPES))
    figures: dict[str, dict[str, Any]] = {}
    for task in tasks:
        hits = _hits(task, submission, truth, overlaps, max(tops))
        figures[task] = _percent(hits, tops, np.ones(len(truth), np.bool_))
        if names:
            split: dict[str, Any] = {
                f"{name}-{key}": value
                for name in names
                for key, value in _percent(hits, tops, kinds == name).items()
            }
            shares = (round(100 * float(np.mean(kinds == name)), 2) for name in names)
            split["desc_type_ratio"] = " ".join(
                f"{name} {part}" for name, part in zip(names, shares, strict=True)
            )
            figures[f"{task}_by_type"] = split
    return figures


def _hits(
    task: str,
    submission: Mapping[str, Any],
    truth: Sequence[Mapping[str, Any]],
    overlaps: Sequence[float],
    depth: int,
) -> dict[str, Flags]:
    """By threshold ("" for VR) an (annotations, depth) array: is the answer at that rank right?"""
    videos = submission["video2idx"]
    answers = _answers(task, submission[task])
    keys = [""] if task == "VR" else [f"{threshold}-" for threshold in overlaps]
    hits = {key: np.zeros((len(truth), depth), np.bool_) for key in keys}
    for i, annotation in enumerate(truth):
        wanted, stamps = _annotation(i, annotation, videos)
        rows = answers.get(query_name(annotation["desc_id"]), np.zeros((0, 3)))
        right = rows[:, 0] == wanted
        if task == "SVMR":
            rows, right = rows[right], right[right]
        rows, right = rows[:depth], right[:depth]
        if task == "VR":
            hits[""][i, : len(right)] = right
            continue
        spans = rows[:, 1:3].astype(np.float32)
        iou = overlap(spans[:, :1], spans[:, 1:], stamps[:, 0], stamps[:, 1])
        needed = 1 if len(stamps) == 1 else AGREEING
        for threshold in overlaps:
            enough = (iou >= np.float32(threshold)).sum(axis=1) >= needed
            hits[f"{threshold}-"][i, : len(right)] = enough & right
    return hits


def _require_places(videos: Any) -> None:
    """Raise :class:`DataError` unless each video has a whole number, which no other one has."""
    if not isinstance(videos, dict):
        raise DataError(f"submission: video2idx: an object of videos is expected, not {videos!r:.60}")
    video_of: dict[int, str] = {}
    for name, place in videos.items():
        if not isinstance(place, int) or isinstance(place, bool) or video_of.setdefault(place, name) != name:
            raise DataError(
                f"submission: video2idx: {name}: {place!r:.60}; give each video a whole number of its own, "
                "by which predictions name it"
            )


def _annotation(i: int, annotation: Mapping[str, Any], videos: Mapping[str, int]) -> tuple[int, Single]:
    where = f"annotation {i + 1}"
    for field in ("desc_id", "vid_name", "ts"):
        if field not in annotation:
            raise DataError(f"{where}: the field {field!r} is missing")
    if str(annotation["vid_name"]) not in videos:
        raise DataError(f"{where}: vid_name {annotation['vid_name']!r} is not in video2idx")
    try:
        stamps = np.asarray(annotation["ts"], np.float32).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        stamps = np.full((1, 2), np.nan, np.float32)
    if not len(stamps) or not np.isfinite(stamps).all():
        raise DataError(f"{where}: ts is {annotation['ts']!r}; it must be [start, end] or a list of those")
    if 1 < len(stamps) < 4:
        raise DataError(f"{where}: {len(stamps)} time stamps; the evaluator knows one, or four and more")
    return videos[str(annotation["vid_name"])], stamps


def _answers(task: str, entries: Any) -> dict[str, NDArray[np.float64]]:
    answers = {}
    if not isinstance(entries, list):
        raise DataError(f"{task}: must be a list of {{desc_id, predictions}}")
    for number, entry in enumerate(entries, start=1):
        try:
            name, rows = query_name(entry["desc_id"]), entry["predictions"]
            table = np.array([row[:3] for row in rows], np.float64).reshape(-1, 3)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise DataError(
                f"{task}, entry {number}: must be {{desc_id, predictions: "
                f"[[video, start, end, score]]}} ({error})"
            ) from None
        if not np.isfinite(table).all():
            raise DataError(f"{task}, entry {number}, desc_id {name}: a prediction holds NaN or infinity")
        if name in answers:
            raise DataError(f"{task}, entry {number}: desc_id {name} is given twice")
        answers[name] = table
    return answers


def _percent(hits: Mapping[str, Flags], tops: Sequence[int], chosen: Flags) -> dict[str, float]:
    return {
        f"{key}r{top}": round(100 * float(table[chosen, :top].any(axis=1).mean()), 2)
        for key, table in hits.items()
        for top in tops
    }


def read_tvr_truth(path: str | Path) -> list[dict[str, Any]]:
    """Annotations of a TVR jsonl file, several time stamps included."""
    rows = json_rows(Path(path), read_text(Path(path)))
    rows.fields("desc_id", "vid_name", "ts")
    return list(rows.rows)


def read_tvr_submission(path: str | Path) -> dict[str, Any]:
    """A TVR submission for :func:`tvr_recall`."""
    content = parse_json(Path(path), read_text(Path(path)))
    if not isinstance(content, dict):
        raise DataError(f"{path}: line 1: an object with video2idx and VCMR, SVMR or VR was expected")
    return content


def read_tvr_files(
    run: str | Path, truth: str | Path, task: str = "VCMR"
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Submission and annotations for :func:`tvr_recall`, of two files.

    Args:
        run: a TVR submission, or a run in any other form that :func:`moviola.study.measures.read_run` reads.
        truth: annotations in TVR's form; `moviola dataset convert` writes those of other sets so.
        task: VCMR, SVMR or VR, of a run that does not name it; another one is an :class:`InvalidValue`.
    """
    require_known("task", task, TASKS)
    rows = read_tvr_truth(truth)
    try:
        submission = read_tvr_submission(run)
    except DataError:
        submission = {}
    if "video2idx" not in submission:
        found = read_run(run, preset=Preset(zero_length=True))  # by TVR's rules such a moment is wrong
        submission = submission_of(found, task, (str(row["vid_name"]) for row in rows))
    return submission, rows


def unmatched_queries(
    submission: Mapping[str, Any], truth: Sequence[Mapping[str, Any]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids of annotated queries without an entry in some task, and of queries that are not annotated.

    The former count as wrong in :func:`tvr_recall`, the latter not at all.
    """
    judged = dict.fromkeys(query_name(row["desc_id"]) for row in truth)
    tasks = [submission[task] for task in TASKS if task in submission]
    answered = [dict.fromkeys(query_name(entry["desc_id"]) for entry in entries) for entries in tasks]
    missing = (name for name in judged if any(name not in names for names in answered))
    extra = dict.fromkeys(name for names in answered for name in names if name not in judged)
    return tuple(missing), tuple(extra)


def submission_of(run: Run, task: str, videos: Iterable[str] = ()) -> dict[str, Any]:
    """A run as a submission of one task; its ``video2idx`` has the run's videos, and these besides."""
    codes = {name: place for place, name in enumerate(dict.fromkeys([*run.video_ids, *videos]))}
    entries = []
    for query, rows in run.rows().items():
        predictions = [[codes[m["video_id"]], m["start"], m["end"], m["score"]] for m in rows]
        entries.append({"desc_id": query_number(query), "predictions": predictions})
    return {"video2idx": codes, task: entries}
