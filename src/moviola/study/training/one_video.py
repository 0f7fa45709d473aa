"""Retrieval in one known video (SVMR): the video of each query is given, its moment is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from moviola.features import Integers
from moviola.study.measures import Measure, Qrels, Run, evaluate
from moviola.study.training.data import Split

__all__ = [
    "SEGMENTS_IN_VIDEO", "best_answers", "of_each_video", "qrels_in_one_video", "recall_in_one_video",
    "run_in_one_video",
]  # fmt: skip

SEGMENTS_IN_VIDEO = 5
"""Segments that a stage 1 retrieves in one video: 20 s of it."""


_MEASURES = tuple(Measure.parse(f"R@{k},IoU>{overlap}") for overlap in (0.5, 0.7) for k in (1, 5))


def _best_pairs(split: Split) -> NDArray[np.bool_]:
    """(P,) bool: pairs of the highest grade of their query; grade 0 does not answer."""
    pairs = split.pairs
    highest = np.zeros(len(pairs.query_ids))
    np.maximum.at(highest, pairs.query, pairs.relevance)
    return cast("NDArray[np.bool_]", (pairs.relevance > 0) & (pairs.relevance == highest[pairs.query]))


def best_answers(split: Split) -> Qrels:
    """The moments of the highest grade above 0 of each query, as the truth of moment retrieval."""
    keep = np.flatnonzero(_best_pairs(split))
    return split.pairs.select(keep, relevance=np.ones(len(keep))).qrels


def of_each_video(split: Split) -> Iterator[Split]:
    """Every video that holds the first best moment of some queries, with these queries alone."""
    pairs = split.pairs
    best = np.flatnonzero(_best_pairs(split))
    home = np.full(len(pairs.query_ids), -1)
    answered, first = np.unique(pairs.query[best], return_index=True)
    home[answered] = pairs.video[pairs.moment[best[first]]]
    held = np.flatnonzero(pairs.video[pairs.moment] == home[pairs.query])
    held = held[np.argsort(home[pairs.query[held]], kind="stable")]
    videos, begin = np.unique(home[pairs.query[held]], return_index=True)
    for video, rows in zip(videos.tolist(), np.split(held, begin)[1:], strict=True):
        yield _cut(split, video, rows)


def run_in_one_video(answer: Callable[[Split], Run], split: Split) -> Run:
    """Answers to each query in its own video; a query without an answer in any video has none.

    Args:
        answer: a model's answers to the queries of a split of one video.
    """
    rows: dict[str, Any] = {name: [] for name in split.queries.query_ids}
    for part in of_each_video(split):
        rows |= answer(part).rows()
    return Run.from_dict(rows, ranked=True)


def qrels_in_one_video(split: Split) -> Qrels:
    """:func:`best_answers` of each query in its video alone."""
    truth: dict[str, Any] = {}
    for part in of_each_video(split):
        truth |= best_answers(part).rows()
    return Qrels.from_dict(truth, zero_length=True)


def recall_in_one_video(run: Run, split: Split) -> dict[str, float]:
    """SVMR by name of the measure: recall of the best moments of each query in its video."""
    values = evaluate(run, qrels_in_one_video(split), _MEASURES).measures
    return {f"SVMR {name}": value for name, value in values.items()}


def _cut(split: Split, video: int, held: Integers) -> Split:
    """One video with some of its pairs and their queries; proposals and first stage are left out."""
    pairs, features = split.pairs, split.features.select([video])
    queries, query = np.unique(pairs.query[held], return_inverse=True)
    ids, texts, types = (
        tuple(of_queries[row] for row in queries if of_queries)
        for of_queries in (pairs.query_ids, pairs.texts, pairs.types)
    )
    beyond = pairs.beyond[np.isin(pairs.beyond["query"], queries) & (pairs.beyond["video"] == video)]
    beyond["query"], beyond["video"] = np.searchsorted(queries, beyond["query"]), 0
    own = pairs.select(
        held, query_ids=ids, texts=texts, types=types, videos=tuple(features.video_ids),
        video=np.zeros_like(pairs.video), query=query, beyond=beyond, unanswered=np.empty(0, np.int64),
    )  # fmt: skip
    return Split(features, split.queries.select(queries), own)
