"""QVHighlights: moment retrieval (mAP, R1) and highlight detection (mAP, HIT@1) as in its evaluator.

Conventions of that evaluator: the first 10 windows of a query are read; R1 takes the first window as it
stands in the list and is right at IoU >= θ; average precision is interpolated, windows in order of falling
score, each judged window found at most once. By length of the judged window: short (0, 10], middle (10, 30],
long (30, 150] seconds; a query counts in a class when it has a window there. Highlights are clips of 2 s,
three raters judge each from 0 (Very Bad) to 4 (Very Good); a clip without a predicted score has 0. Values are
percentages with two decimals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from moviola.errors import DataError
from moviola.files.rows import json_rows, number, read_text
from moviola.study.measures.no_answer import OVERLAPS
from moviola.study.measures.qrels_and_run import Flags, Floats, query_name
from moviola.temporal import overlap

__all__ = ["average_precision", "highlight_precision", "qvhighlights", "read_qvhighlights"]

LENGTHS = {"short": (0, 10), "middle": (10, 30), "long": (30, 150), "full": (0, np.inf)}
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
        DataError: a field is missing or malformed, or a query is given twice; with the row or query named.
    """
    answers = _by_query("prediction", predictions, "pred_relevant_windows")
    judged = _by_query("annotation", truth, "relevant_windows")
    found = {query: _array(query, row, "pred_relevant_windows", 3) for query, row in answers.items()}
    windows = {query: _array(query, row, "relevant_windows", 2) for query, row in judged.items()}
    figures: dict[str, Any] = {}
    for name, (low, high) in LENGTHS.items():
        kept: dict[str, Floats] = {}
        for query, table in windows.items():
            length = table[:, 1] - table[:, 0]
            if (inside := (low < length) & (length <= high)).any():
                kept[query] = table[inside]
        figures[name] = _moments(found, kept)
    if answers and all("pred_saliency_scores" in row for row in answers.values()):
        for name, grade in GRADES.items():
            figures[f"HL-min-{name}"] = _highlights(answers, judged, grade)
    figures["brief"] = _brief(figures)
    return figures


def _by_query(what: str, rows: Sequence[Mapping[str, Any]], field: str) -> dict[str, Mapping[str, Any]]:
    named: dict[str, Mapping[str, Any]] = {}
    for place, row in enumerate(rows, start=1):
        missing = [name for name in ("qid", field) if name not in row]
        if missing:
            raise DataError(f"{what} {place}: the field {missing[0]!r} is missing")
        name = query_name(row["qid"])
        if name in named:
            raise DataError(f"{what} {place}: qid {name} is given twice")
        named[name] = row
    return named


def _array(query: str, row: Mapping[str, Any], field: str, *width: int) -> Floats:
    """A field of a query's row: (n, *width) float64, finite."""
    values = row.get(field)
    try:
        array = np.array(values, np.float64).reshape(len(values), *width)  # type: ignore[arg-type]
        if np.isfinite(array).all():
            return array
    except (TypeError, ValueError, OverflowError):
        pass
    form = f"{width[0]} numbers each" if width else "numbers"
    raise DataError(f"qid {query}: {field}: a list of {form} is expected, not {values!r:.60}")


def _percent(values: Sequence[float] | Floats | Flags) -> float:
    """Mean in percent; 0 of nothing."""
    return round(100 * float(np.mean(values)), 2) if len(values) else 0.0


def _moments(answers: Mapping[str, Floats], windows: Mapping[str, Floats]) -> dict[str, Any]:
    """MR-mAP and MR-R1 over the queries of ``windows``."""
    precision = np.zeros((len(windows), len(OVERLAPS)))
    first = np.zeros(len(windows))
    for i, (query, truth) in enumerate(windows.items()):
        table = answers.get(query, np.zeros((0, 3)))[:WINDOWS]
        if len(table):
            iou = overlap(table[:, :1], table[:, 1:2], truth[None, :, 0], truth[None, :, 1])
            first[i] = iou[0].max()
            precision[i] = average_precision(iou, table[:, 2])
    means = precision.mean(axis=0) if len(windows) else np.zeros(len(OVERLAPS))
    average = {str(t): _percent([mean]) for t, mean in zip(OVERLAPS, means, strict=True)}
    average["average"] = _percent(means)
    return {"MR-mAP": average, "MR-R1": {str(t): _percent(first >= t) for t in OVERLAPS}}


def average_precision(iou: Floats, score: Floats, overlaps: Sequence[float] = OVERLAPS) -> Floats:
    """Interpolated average precision of one query, (thresholds,) float64 in [0, 1].

    Args:
        iou: (predictions, truths) IoU.
        score: (predictions,), higher is better; equal scores in the order given.
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
        clips = int(number(row.get("duration"), "duration", f"annotation of qid {query}") / CLIP_SECONDS)
        places = _array(query, row, "relevant_clip_ids").astype(np.int64)
        if len(beyond := places[(places < 0) | (places >= clips)]):
            raise DataError(f"qid {query}: relevant_clip_ids: {beyond[0]} is no clip of {clips}")
        ratings = np.zeros((clips, 3))
        rated = _array(query, row, "saliency_scores", 3)
        if len(rated) != len(places):
            raise DataError(f"qid {query}: {len(rated)} saliency_scores of {len(places)} relevant_clip_ids")
        ratings[places] = rated
        if query not in answers:
            precision.append(0.0)
            hits.append(0.0)
            continue
        relevant, score = ratings >= grade, np.zeros(clips)
        given = _array(query, answers[query], "pred_saliency_scores")[:clips]
        score[: len(given)] = given
        hits.append(float(relevant[int(given.argmax())].any()) if len(given) else 0.0)
        precision.append(float(np.mean([highlight_precision(column, score) for column in relevant.T])))
    return {"HL-mAP": _percent(precision), "HL-Hit1": _percent(hits)}


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
        NotFound, DataError: no such file, or a line is not JSON or has no ``qid``.
    """
    rows = json_rows(Path(path), read_text(Path(path)))
    rows.fields("qid")
    return list(rows.rows)
