"""Recall as in moment retrieval: in the corpus (VCMR), of videos (VR), and in the one right video (SVMR)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moviola.study.measures import Measure, Run, evaluate
from moviola.study.training.data import Split
from moviola.study.training.one_video import (
    best_answers,
    of_each_video,
    recall_in_one_video,
    run_in_one_video,
)

__all__ = ["best_answers", "in_corpus", "in_video", "of_each_video", "whole_videos"]

MOMENTS = tuple(Measure.parse(f"R@{k},IoU>{overlap}") for overlap in (0.5, 0.7) for k in (1, 10, 100))
VIDEOS = tuple(Measure.parse(f"R@{k},IoU>0.5") for k in (1, 5, 10, 100))


def in_corpus(run: Run, split: Split, videos: Run | None = None) -> dict[str, float]:
    """VCMR and VR: recall of any of the best judged moments, and of their videos.

    Args:
        run: moments.
        split: the queries.
        videos: a model's own ranking of videos; by default those of ``run`` in the order of their best
            moments, which are fewer than a model ranks.
    """
    best = best_answers(split)
    found = {f"VCMR {name}": value for name, value in evaluate(run, best, MOMENTS).measures.items()}
    ranked = whole_videos(run if videos is None else videos, split)
    values = evaluate(ranked, whole_videos(best, split), VIDEOS).measures
    return found | {f"VR R@{Measure.parse(name).k}": value for name, value in values.items()}


def in_video(answer: Callable[[Split], Run], split: Split) -> dict[str, float]:
    """SVMR: recall of the best moments in the video of the first of them, searched alone.

    Args:
        answer: a model's answers to the queries of a split of one video.
        split: the queries, their answers and all videos.
    """
    return recall_in_one_video(run_in_one_video(answer, split), split)


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
