"""Recall as in moment retrieval: in the corpus (VCMR), of videos (VR), and in the one right video (SVMR)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from moviola.features import Integers
from moviola.measures import Measure, Qrels, Run, evaluate
from moviola.training.data import Split

__all__ = ["in_corpus", "in_video", "of_each_video"]

MOMENTS = tuple(Measure.parse(f"R@{k},IoU>{overlap}") for overlap in (0.5, 0.7) for k in (1, 10, 100))
IN_VIDEO = tuple(Measure.parse(f"R@{k},IoU>{overlap}") for overlap in (0.5, 0.7) for k in (1, 5))
VIDEOS = tuple(Measure.parse(f"R@{k},IoU>0.5") for k in (1, 5, 10, 100))


def in_corpus(run: Run, split: Split) -> dict[str, float]:
    """VCMR and, from the same answers, VR: recall of any of the best judged moments, and of their videos."""
    best = best_answers(split)
    found = {f"VCMR {name}": value for name, value in evaluate(run, best, MOMENTS).measures.items()}
    videos = evaluate(whole_videos(run, split), whole_videos(best, split), VIDEOS).measures
    return found | {f"VR R@{Measure.parse(name).k}": value for name, value in videos.items()}


def in_video(answer: Callable[[Split], Run], split: Split) -> dict[str, float]:
    """SVMR: recall of the best moments in the video of the first of them, searched alone.

    Args:
        answer: a model's answers to the queries of a split of one video.
        split: the queries, their answers and all videos.
    """
    found: dict[str, Any] = {}
    truth: dict[str, Any] = {}
    for part in of_each_video(split):
        found |= answer(part).rows()
        truth |= best_answers(part).rows()
    qrels = Qrels.from_dict(truth, zero_length=True)
    measures = evaluate(Run.from_dict(found, ranked=True), qrels, IN_VIDEO).measures
    return {f"SVMR {name}": value for name, value in measures.items()}


def best_answers(split: Split) -> Qrels:
    """Of each query the moments of its highest grade above 0, as the truth of moment retrieval."""
    keep = np.flatnonzero(_best(split))
    return _only(split, keep, relevance=np.ones(len(keep))).pairs.qrels


def _best(split: Split) -> Any:
    """(P,) bool: pairs of the highest grade of their query; one of grade 0 is judged not to answer."""
    pairs = split.pairs
    highest = np.zeros(len(pairs.query_ids))
    np.maximum.at(highest, pairs.query, pairs.relevance)
    return (pairs.relevance > 0) & (pairs.relevance == highest[pairs.query])


def _only(split: Split, keep: Integers, **changes: Any) -> Split:
    pairs = split.pairs
    taken = {name: getattr(pairs, name)[keep] for name in ("query", "moment", "similarity", "relevance")}
    return replace(split, pairs=replace(pairs, **(taken | changes)))


def of_each_video(split: Split) -> Iterator[Split]:
    """Every video that holds the first best moment of some queries, with these queries alone."""
    pairs = split.pairs
    best = np.flatnonzero(_best(split))
    asked, first = np.unique(pairs.query[best], return_index=True)
    home = pairs.video[pairs.moment[best[first]]]
    for video in np.unique(home).tolist():
        queries = asked[home == video]
        held = np.isin(pairs.query, queries) & (pairs.video[pairs.moment] == video)
        yield _cut(split, video, queries, np.flatnonzero(held))


def _cut(split: Split, video: int, queries: Integers, held: Integers) -> Split:
    """One video and some queries, with the pairs of both; proposals and first stage are left out."""
    kept = _only(split, held).pairs
    ids, texts = (tuple(names[row] for row in queries) for names in (kept.query_ids, kept.texts))
    features = split.features.select([video])
    return Split(
        features,
        split.queries.select(queries),
        replace(
            kept,
            query_ids=ids,
            texts=texts,
            videos=features.video_ids,
            query=np.searchsorted(queries, kept.query),
            video=np.zeros_like(kept.video),
        ),
    )


def whole_videos(moments: Any, split: Split) -> Any:
    """Each moment's video instead of it, once a query, in order of rank."""
    durations = dict(zip(split.features.video_ids, split.features.durations.tolist(), strict=True))
    rows = {
        query: list(
            {m["video_id"]: {**m, "start": 0.0, "end": durations[m["video_id"]]} for m in own}.values()
        )
        for query, own in moments.rows().items()
    }
    return type(moments).from_dict(rows, ranked=True)
