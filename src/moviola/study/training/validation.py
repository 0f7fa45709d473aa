"""Evaluation of answers on val."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moviola.retrieval import Moments
from moviola.study.measures import Measure, Qrels, Run, evaluate
from moviola.study.training.data import Split, largest

__all__ = [
    "MEASURES", "NAMES", "OVER_TYPES", "SUM", "VIDEO_NAMES", "judge", "judge_videos", "run_of", "video_qrels",
]  # fmt: skip

MEASURES = tuple(
    Measure.parse(f"nDCG@{k},IoU>={overlap}") for overlap in (0.3, 0.5, 0.7) for k in (10, 20, 40)
)
SUM = "sum nDCG,IoU>=0.7"
"""NDCG@10, @20 and @40 at IoU >= 0.7 added up, by which SPR selects its refiners (appendix A)."""

OVER_TYPES = "types nDCG@20,IoU>=0.5"
"""The mean over types of queries (v, t, vt) of the mean of each, so that a rare type counts as much as
another; the mean of all where a split has no types, 0 where no query has an answer."""

NAMES = (*map(str, MEASURES), SUM, OVER_TYPES)
"""Names of the measures of :func:`judge`."""

_VIDEO_DEPTHS = (5, 10, 20, 40)

VIDEO_NAMES = tuple(f"video nDCG@{k}" for k in _VIDEO_DEPTHS)
"""Names of the measures of :func:`judge_videos`."""


def run_of(moments: Moments, split: Split, score: NDArray[np.float64] | None = None) -> Run:
    """Moments as a run for measures, in their order.

    Args:
        moments: answers to the queries of a split in its videos.
        score: (N,) scores of the run; :attr:`Moments.match` by default.
    """
    queries, videos = (
        np.array(names, dtype=object) for names in (split.queries.query_ids, split.features.video_ids)
    )
    return Run.from_columns(
        queries[moments.query],
        videos[moments.video],
        moments.start,
        moments.end,
        moments.match if score is None else score,
        queries=split.queries.query_ids,
        ranked=True,
    )


def judge(run: Run, split: Split) -> dict[str, float]:
    """NDCG of a run by name of the measure, their sum at IoU >= 0.7, and :data:`OVER_TYPES`."""
    results = evaluate(run, split.pairs.qrels, MEASURES)
    result = results.measures
    kind_of = dict(zip(split.pairs.query_ids, split.pairs.types, strict=False))
    kinds = np.array([kind_of.get(query, "") for query in results.query_ids])
    values = results.per_query[OVER_TYPES.removeprefix("types ")]
    by_type = [values[kinds == kind].mean() for kind in np.unique(kinds)]
    return result | {
        SUM: sum(value for name, value in result.items() if name.endswith("0.7")),
        OVER_TYPES: float(np.mean(by_type)) if by_type else 0.0,
    }


def video_qrels(split: Split) -> Qrels:
    """Whole videos as judgements; a video is as relevant as its most relevant moment."""
    pairs = split.pairs
    videos = len(pairs.videos)
    cells, relevance = largest(pairs.query * videos + pairs.video[pairs.moment], pairs.relevance)
    query, video = np.divmod(cells, videos)
    return Qrels.from_columns(
        np.array(pairs.query_ids, dtype=object)[query],
        np.array(pairs.videos, dtype=object)[video],
        np.zeros(len(cells)),
        split.features.durations[video],
        relevance,
        queries=pairs.query_ids,
    )


def judge_videos(run: Run, split: Split) -> dict[str, float]:
    """NDCG of whole videos, see :func:`video_qrels`."""
    measures = [Measure.parse(f"nDCG@{k},IoU>=0.5") for k in _VIDEO_DEPTHS]
    values = evaluate(run, video_qrels(split), measures).measures
    return {name: values[str(measure)] for name, measure in zip(VIDEO_NAMES, measures, strict=True)}
