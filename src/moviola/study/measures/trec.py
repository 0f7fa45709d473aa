"""Moments as TREC documents.

A moment's document is ``VIDEO#START#END``, the video percent-encoded, times in seconds as Python prints them;
a moment that a query holds n times gets ``#n`` from the second on. Tools rank by score in single precision
and break ties their own way, so a score that does not fall strictly there is lowered by as little as that
takes.
"""

from __future__ import annotations

from collections import Counter
from urllib.parse import quote, unquote

import numpy as np

from moviola.errors import InvalidValue
from moviola.study.measures.qrels_and_run import Columns, Floats, Integers, Run

__all__ = ["documents", "moment_of", "strict_scores"]

_LARGEST = int(np.finfo(np.float32).max.view(np.int32))
"""The place of the largest float32 among all."""


def documents(moments: Columns) -> list[str]:
    """The document of each moment, in order; no two of a query are the same."""
    videos = [quote(name, safe="") for name in moments.video_ids]
    seen: Counter[tuple[int, str]] = Counter()
    made = []
    columns = (moments.query.tolist(), moments.video.tolist(), moments.start.tolist(), moments.end.tolist())
    for query, video, start, end in zip(*columns, strict=True):
        name = f"{videos[video]}#{start!r}#{end!r}"
        seen[query, name] += 1
        times = seen[query, name]
        made.append(name if times == 1 else f"{name}#{times}")
    return made


def moment_of(document: str) -> tuple[str, float, float]:
    """Video, start and end of a document ``VIDEO#START#END``; :class:`InvalidValue` for another form."""
    parts = document.split("#")
    try:
        video, start, end = parts[:3]
        return unquote(video, errors="strict") if "%" in video else video, float(start), float(end)
    except ValueError:
        raise InvalidValue(f"document {document!r}: must read VIDEO#START#END") from None


def strict_scores(run: Run) -> Floats:
    """(moments,) float64: the scores, falling strictly with the rank as float32.

    A score that does not fall becomes the next float32 below the one before it; others stay as they are, so
    that queries can still be compared by their scores.
    """
    place = _places(run.score)
    following = np.diff(run.offsets)[run.query] - run.rank
    room = np.maximum(place, following - _LARGEST)  # for those that follow, among the lowest
    apart = run.rank - run.query * 2**34  # every query lies below all places of the one before
    lowered = np.minimum.accumulate(room + apart) - apart
    size = np.abs(lowered).astype(np.int32).view(np.float32).astype(np.float64)
    return np.where(lowered == place, run.score, np.copysign(size, lowered))


def _places(score: Floats) -> Integers:
    """The place of each number among all finite float32 in order, 0 for 0.0."""
    with np.errstate(over="ignore"):
        bits = score.astype(np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits).clip(-_LARGEST, _LARGEST)
