"""QVHighlights: moment retrieval (mAP, R1) and highlight detection (mAP, HIT@1) as in its evaluator.

Conventions of that evaluator: the first 10 windows of a query are read; R1 takes the first window as it
stands in the list and is right at IoU >= θ; average precision is interpolated, windows in order of falling
score, each judged window found at most once. By length of the judged window: short (0, 10], middle (10, 30],
long (30, 150] seconds; a query counts in a class when it has a window there. Highlights are clips of 2 s,
three raters judge each from 0 (Very Bad) to 4 (Very Good). Values are percentages with two decimals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from moviola.errors import DataError
from moviola.files.rows import json_rows, read_text
from moviola.measures.no_answer import OVERLAPS
from moviola.measures.qrels_and_run import Flags, Floats, query_name
from moviola.temporal import overlap

__all__ = ["average_precision", "highlight_precision", "qvhighlights", "read_qvhighlights"]

LENGTHS: dict[str, tuple[float, float]] = {
    "short": (0, 10),
    "middle": (10, 30),
    "long": (30, 150),
    "full": (0, np.inf),
}
GRADES = {"Fair": 2, "Good": 3, "VeryGood": 4}
WINDOWS = 10
CLIP_SECONDS = 2.0


def qvhighlights(
    predictions: Sequence[Mapping[str, Any]], truth: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """All values of the evaluator, under its names.

    Args:
        predictions: rows with ``qid``, ``pred_relevant_windows`` ([start, end, score] each) and maybe
            ``pred_saliency_scores`` (one per clip of 2 s).
        truth: rows with ``qid``, ``relevant_windows`` ([start, end] each), and for highlights ``duration``,
            ``relevant_clip_ids`` and ``saliency_scores`` (three raters per clip).

    Returns:
        ``{"brief": {"MR-full-mAP": 32.2, …}, "full": {"MR-mAP": …, "MR-R1": …}, …, "HL-min-Fair": …}``;
        highlight values only where every prediction has saliency scores. A query without prediction scores 0.

    Raises:
        DataError: a field is missing, or a query is given twice; with the row named.
    """
    answers = _by_query("prediction", predictions, "pred_relevant_windows")
    judged = _by_query("annotation", truth, "relevant_windows")
    figures: dict[str, Any] = {}
    for name, (low, high) in LENGTHS.items():
        windows = {
            query: [w for w in row["relevant_windows"] if low < w[1] - w[0] <= high]
            for query, row in judged.items()
        }
        figures[name] = _moments(answers, {query: kept for query, kept in windows.items() if kept})
    if answers and all("pred_saliency_scores" in row for row in answers.values()):
        for name, grade in GRADES.items():
            figures[f"HL-min-{name}"] = _highlights(answers, judged, grade)
    figures["brief"] = _brief(figures)
    return figures


def _by_query(what: str, rows: Sequence[Mapping[str, Any]], field: str) -> dict[str, Mapping[str, Any]]:
    named: dict[str, Mapping[str, Any]] = {}
    for number, row in enumerate(rows, start=1):
        missing = [name for name in ("qid", field) if name not in row]
        if missing:
            raise DataError(f"{what} {number}: the field {missing[0]!r} is missing")
        name = query_name(row["qid"])
        if name in named:
            raise DataError(f"{what} {number}: qid {name} is given twice")
        named[name] = row
    return named


def _percent(value: float) -> float:
    return round(100 * value, 2)


def _moments(
    answers: Mapping[str, Mapping[str, Any]], windows: Mapping[str, list[list[float]]]
) -> dict[str, Any]:
    """MR-mAP and MR-R1 over the queries of ``windows``."""
    precision = np.zeros((len(windows), len(OVERLAPS)))
    first = np.zeros(len(windows))
    for i, (query, judged) in enumerate(windows.items()):
        answer = answers.get(query, {"pred_relevant_windows": []})["pred_relevant_windows"][:WINDOWS]
        if not answer:
            continue
        try:
            table = np.array([window[:3] for window in answer], np.float64).reshape(-1, 3)
            truth = np.array(judged, np.float64).reshape(-1, 2)
        except (TypeError, ValueError):
            raise DataError(f"qid {query}: a window is no list of numbers") from None
        iou = overlap(table[:, :1], table[:, 1:2], truth[None, :, 0], truth[None, :, 1])
        first[i] = iou[0].max()
        precision[i] = average_precision(iou, table[:, 2])
    means = precision.mean(axis=0) if len(windows) else np.zeros(len(OVERLAPS))
    average = {str(threshold): _percent(value) for threshold, value in zip(OVERLAPS, means, strict=True)}
    average["average"] = _percent(float(means.mean()))
    hits = {str(t): _percent(float((first >= t).mean()) if len(first) else 0.0) for t in OVERLAPS}
    return {"MR-mAP": average, "MR-R1": hits}


def average_precision(iou: Floats, score: Floats, overlaps: Sequence[float] = OVERLAPS) -> Floats:
    """Interpolated average precision of one query at several thresholds.

    Args:
        iou: (predictions, truths) IoU.
        score: (predictions,), higher is better; equal scores in the order given.
        overlaps: thresholds.

    Returns:
        (thresholds,) float64 in [0, 1].
    """
    iou = iou[np.argsort(-score, kind="stable")]
    count, truths = iou.shape
    hit = np.zeros((len(overlaps), count))
    free = np.ones((len(overlaps), truths), np.bool_)
    limits = np.asarray(overlaps)
    for k in range(count):
        # Among the free windows that reach the threshold the one with the highest IoU is taken.
        reachable = np.where(free & (iou[k] >= limits[:, None]), iou[k], -1.0)
        best = reachable.argmax(axis=1)
        took = np.flatnonzero(reachable[np.arange(len(limits)), best] >= 0)
        hit[took, k] = 1
        free[took, best[took]] = False
    precision = np.cumsum(hit, axis=1) / np.arange(1, count + 1)
    interpolated = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    values: Floats = (interpolated * hit).sum(axis=1) / truths
    return values


def highlight_precision(relevant: Flags, score: Floats) -> float:
    """Interpolated average precision of clips in order of falling score, equal scores together.

    Args:
        relevant: (clips,) bool.
        score: (clips,).

    Returns:
        Mean of the interpolated precision over the steps of recall; 0 when no clip is relevant.
    """
    if not relevant.any():
        return 0.0
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(relevant[order])
    last = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))
    precision = hits[last] / (last + 1)
    interpolated = np.maximum.accumulate(precision[::-1])[::-1]
    step = np.diff(hits[last], prepend=0) > 0
    return float(interpolated[step].mean())


def _highlights(
    answers: Mapping[str, Mapping[str, Any]], judged: Mapping[str, Mapping[str, Any]], grade: int
) -> dict[str, float]:
    """HL-mAP over queries and raters, HL-Hit1 over queries (any rater)."""
    precision, hits = [], []
    for query, row in judged.items():
        missing = [name for name in ("duration", "relevant_clip_ids", "saliency_scores") if name not in row]
        if missing:
            raise DataError(f"annotation of qid {query}: the field {missing[0]!r} is missing")
        clips = int(row["duration"] / CLIP_SECONDS)
        ratings = np.zeros((clips, 3))
        ratings[np.array(row["relevant_clip_ids"], np.int64)] = np.array(row["saliency_scores"], np.float64)
        if query not in answers:
            precision.append(0.0)
            hits.append(0.0)
            continue
        score = np.array(answers[query]["pred_saliency_scores"], np.float64)[:clips]
        relevant = ratings[: len(score)] >= grade
        hits.append(float(relevant[int(score.argmax())].any()) if len(score) else 0.0)
        precision.append(float(np.mean([highlight_precision(column, score) for column in relevant.T])))
    return {"HL-mAP": _percent(float(np.mean(precision))), "HL-Hit1": _percent(float(np.mean(hits)))}


def _brief(found: Mapping[str, Any]) -> dict[str, float]:
    full = found["full"]
    brief = {f"MR-full-R1@{t}": full["MR-R1"][t] for t in ("0.5", "0.7")}
    brief["MR-full-mAP"] = full["MR-mAP"]["average"]
    brief.update({f"MR-full-mAP@{t}": full["MR-mAP"][t] for t in ("0.5", "0.75")})
    brief.update({f"MR-{name}-mAP": found[name]["MR-mAP"]["average"] for name in ("long", "middle", "short")})
    for name in GRADES:
        for key, value in found.get(f"HL-min-{name}", {}).items():
            brief[f"HL-min-{name}-{key.removeprefix('HL-')}"] = value
    return brief


def read_qvhighlights(path: str | Path) -> list[dict[str, Any]]:
    """Rows of a QVHighlights jsonl file, annotations or predictions.

    Raises:
        NotFound: no such file.
        DataError: a line is not JSON or has no ``qid``.
    """
    rows = json_rows(Path(path), read_text(Path(path)))
    rows.fields("qid")
    return list(rows.rows)
