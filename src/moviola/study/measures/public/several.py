"""Several true windows, or none, in a video that is named: QV-M2 and Soccer-GMR."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moviola.study.measures.no_answer import OVERLAPS, auroc, rejection_f1
from moviola.study.measures.public.answered import Answered, greedy, percent, share
from moviola.study.measures.qrels_and_run import Flags, Floats
from moviola.study.measures.qvhighlights import WINDOWS, average_precision

__all__ = ["qv_m2", "soccer_gmr"]

MULTI = tuple(round(0.3 + 0.05 * i, 2) for i in range(14))
"""Thresholds of QV-M2's mR@k."""
PAPER_OVERLAPS = OVERLAPS[:-1]
"""Thresholds of G-mAP as QV-M2's paper writes them: to .9."""
FORCED = -1.0
LEVELS = (0.4, 0.6)
"""Soccer-GMR: a query is refused when its sureness is at most this."""
REFUSED = 0.4
"""The level at which G-mIoU empties an answer."""


def qv_m2(answers: Sequence[Answered]) -> dict[str, float | None]:
    """G-mAP, mAP by number of true windows, mR@k and mIoU@k for k = 1, 2, 3.

    G-mAP is QVHighlights' mAP over IoU .5:.05:.95; ``mAP@3+tgt`` is the mean of the groups of 3, 4, 5, … true
    windows, each group counting alike. mR@k: of queries with at least k true windows, matches of the first k
    over k, all queries together, mean over IoU .3:.05:.95. mIoU@k: of the same queries, IoU of forced
    matches, mean over all pairs.

    (code) leaves out queries without a window, and of mR@k and mIoU@k those with fewer than k. (paper) counts
    them; its G-mAP ends at .9. A value is None where no query has as many true windows as it is about.
    """
    counts = {len(one.truths) for one in answers}
    own = [one for one in answers if len(one.windows)]
    whole = [_precision(one, OVERLAPS) for one in own]
    groups: dict[int, list[float]] = {}
    for one, value in zip(own, whole, strict=True):
        groups.setdefault(len(one.truths), []).append(value)
    by_count = {count: percent(values) for count, values in groups.items()}
    many = [value for count, value in by_count.items() if count >= 3]
    figures: dict[str, float | None] = {
        "G-mAP (code)": percent(whole),
        "G-mAP (paper)": percent([_precision(one, PAPER_OVERLAPS) for one in answers]),
        "mAP@1_tgt": by_count.get(1, 0.0) if 1 in counts else None,
        "mAP@2_tgt": by_count.get(2, 0.0) if 2 in counts else None,
        "mAP@3+tgt": share(many) if max(counts, default=0) >= 3 else None,
    }
    for k in (1, 2, 3):
        enough = [one.iou[:k] for one in answers if len(one.truths) >= k]
        if not enough:
            figures |= dict.fromkeys((f"mR@{k} (code)", f"mR@{k} (paper)", f"mIoU@{k}"))
            continue
        full = [iou for iou in enough if len(iou) == k]
        figures[f"mR@{k} (code)"] = _pooled_recall(full, k)
        figures[f"mR@{k} (paper)"] = _pooled_recall(enough, k)
        figures[f"mIoU@{k}"] = percent([value for iou in full for value in greedy(iou, FORCED)])
    return figures


def _precision(one: Answered, overlaps: Sequence[float]) -> float:
    """QVHighlights' AP of the first ten windows, mean over thresholds; 0 without windows."""
    if not len(one.windows) or not len(one.truths):
        return 0.0
    return float(average_precision(one.iou[:WINDOWS], one.windows[:WINDOWS, 2], overlaps).mean())


def _pooled_recall(tables: Sequence[Floats], k: int) -> float:
    if not tables:
        return 0.0
    shares = [sum(len(greedy(iou, theta)) for iou in tables) / (k * len(tables)) for theta in MULTI]
    return percent(shares)


def soccer_gmr(answers: Sequence[Answered]) -> dict[str, float]:
    """Rejection, localisation, and both in one (Generalized Moment Retrieval), as its evaluator does.

    A query is as sure as its ``sureness``, else its highest score, else 0; it is refused at a level τ when it
    is at most τ sure. True windows are cut at the duration, and equal ones count once. AUROC is 50 where all
    queries have an answer or none has. Of queries with an answer: mAP as QVHighlights', mR@k, mIoU@k with
    forced matches; of those with several, mR+@k and mIoU+@k, which leave out what one moment gives. G-mIoU@k,
    of all: windows of queries refused at .4, and those without extent, are taken away; both sides empty 1,
    one of them 0, else the matches' IoU over the number of all windows. (paper): matches share time. (code):
    forced ones.
    """
    answers = [_clipped(one) for one in answers]
    sureness = np.array([_sureness(one) for one in answers])
    absent = np.array([not len(one.truths) for one in answers], np.bool_)
    figures = {
        "AUROC": 100 * auroc(sureness[~absent], sureness[absent]) if 0 < absent.sum() < len(absent) else 50.0
    }
    for level in LEVELS:
        refused = sureness <= level
        figures[f"Rej-F1@{level}"] = 100 * rejection_f1(refused, absent) if absent.any() else 0.0
        figures[f"Acc@{level}"] = percent(refused == absent)
    present = [one for one in answers if len(one.truths)]
    several = [one for one in present if len(one.truths) > 1]
    figures["mAP"] = percent([_precision(one, OVERLAPS) for one in present])
    for k in (1, 3, 5):
        figures[f"mR@{k}"] = percent([_recall(one, k, 0) for one in present])
        figures[f"mR+@{k}"] = percent([_recall(one, k, 1) for one in several])
        figures[f"mIoU@{k}"] = percent([_matched(one, k, 0) for one in present])
        figures[f"mIoU+@{k}"] = percent([_matched(one, k, 1) for one in several])
        for name, threshold in (("paper", np.nextafter(0.0, 1.0)), ("code", FORCED)):
            values = [
                _generalized(one, sure <= REFUSED, k, float(threshold))
                for one, sure in zip(answers, sureness.tolist(), strict=True)
            ]
            figures[f"G-mIoU@{k} ({name})"] = percent(values)
    return figures


def _clipped(one: Answered) -> Answered:
    truths = np.unique(np.minimum(one.truths, one.duration), axis=0)
    kept: Flags = truths[:, 1] > truths[:, 0]
    return Answered(truths[kept], one.windows, one.duration, one.sureness)


def _sureness(one: Answered) -> float:
    if one.sureness is not None:
        return one.sureness
    return float(one.windows[:, 2].max()) if len(one.windows) else 0.0


def _recall(one: Answered, k: int, beyond: int) -> float:
    iou = one.iou[:k]
    whole = len(one.truths) - beyond
    return float(np.mean([max(0, len(greedy(iou, theta)) - beyond) / whole for theta in OVERLAPS]))


def _matched(one: Answered, k: int, beyond: int) -> float:
    """Mean IoU of forced matches, without the best ``beyond`` of them; 0 where none is left."""
    pairs = sorted(greedy(one.iou[:k], FORCED), reverse=True)[beyond:]
    return float(np.mean(pairs)) if pairs else 0.0


def _generalized(one: Answered, refused: bool, k: int, threshold: float) -> float:
    windows = one.windows[one.windows[:, 1] > one.windows[:, 0]][: 0 if refused else k]
    if not len(windows) or not len(one.truths):
        return float(not len(windows) and not len(one.truths))
    matches = greedy(Answered(one.truths, windows).iou, threshold)
    return sum(matches) / (len(windows) + len(one.truths) - len(matches))
