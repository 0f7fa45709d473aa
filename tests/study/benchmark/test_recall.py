"""Recall in the corpus and in one video against brute force; every architecture answers one video."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from comparison.recall import best_answers, in_corpus, in_video, of_each_video, whole_videos
from comparison.world import World
from moviola.retrieval import Proposals
from moviola.study.measures import Run
from moviola.study.models.pretrained import build
from moviola.study.training.data import Split
from moviola.study.training.recipes import recipe
from moviola.study.training.settings import read_settings
from moviola.types import Span

TINY: dict[str, list[str]] = {
    "spr-clip": ["layers=1"],
    "spr-relo": ["hidden_size=16", "heads=2"],
    "reel": ["hidden_size=16", "heads=2", "longest_span=8"],
    "xml": ["hidden_size=16"],
    "reloclnet": ["hidden_size=16", "heads=2"],
    "conquer": ["hidden_size=16", "heads=2", "feed_forward_size=32", "candidates=10", "top_videos=10"],
    "prem": ["hidden_size=16", "heads=2", "feed_forward_size=32"],
}

Rows = dict[str, list[dict[str, Any]]]


def grades(split: Split) -> dict[str, list[tuple[float, str, float, float]]]:
    """Grade, video, start and end of each query's answers, in order."""
    pairs = split.pairs
    found: dict[str, list[tuple[float, str, float, float]]] = {name: [] for name in pairs.query_ids}
    for query, moment, grade in zip(pairs.query, pairs.moment, pairs.relevance, strict=True):
        video = pairs.videos[pairs.video[moment]]
        row = (float(grade), video, float(pairs.start[moment]), float(pairs.end[moment]))
        found[pairs.query_ids[query]].append(row)
    return found


def best(answers: list[tuple[float, str, float, float]]) -> list[tuple[str, float, float]]:
    highest = max((grade for grade, *_ in answers), default=0.0)
    return [row[1:] for row in answers if row[0] == highest > 0]


def random_run(split: Split, seed: int = 0, count: int = 12) -> Run:
    """Spans of whole seconds anywhere, many of them answers by chance."""
    draw, features = np.random.default_rng(seed), split.features
    rows: Rows = {}
    for name in split.queries.query_ids:
        rows[name] = []
        for place in range(count):
            video = int(draw.integers(len(features)))
            span = draw.choice(np.arange(int(features.durations[video]) + 1), 2, replace=False)
            start, end = np.sort(span).tolist()
            rows[name].append(
                {"video_id": features.video_ids[video], "start": start, "end": end, "score": -place}
            )
    return Run.from_dict(rows)


def hit(row: dict[str, Any], truths: list[tuple[str, float, float]], overlap: float) -> bool:
    span = Span(row["start"], row["end"])
    return any(
        video == row["video_id"] and span.iou(Span(start, end)) > overlap for video, start, end in truths
    )


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


@pytest.fixture(scope="module")
def split(world: World) -> Split:
    return world.split("test")


def test_the_best_answers_are_those_of_the_highest_grade(split: Split) -> None:
    expected = {name: best(answers) for name, answers in grades(split).items()}
    found = {
        name: [(row["video_id"], row["start"], row["end"]) for row in rows]
        for name, rows in best_answers(split).rows().items()
    }
    assert found == expected
    assert any(len(rows) < len(grades(split)[name]) for name, rows in found.items())


def test_a_moment_judged_not_to_answer_is_no_best_answer(split: Split) -> None:
    first = split.pairs.query == 0
    none = replace(split, pairs=replace(split.pairs, relevance=np.where(first, 0.0, split.pairs.relevance)))
    rows = best_answers(none).rows()
    assert rows[none.queries.query_ids[0]] == []
    assert all(own for own in list(rows.values())[1:])
    left = {name for part in of_each_video(none) for name in part.queries.query_ids}
    assert left == set(none.queries.query_ids[1:])


@pytest.mark.parametrize("seed", [0, 1])
def test_recall_in_the_corpus(split: Split, seed: int) -> None:
    run = random_run(split, seed, count=30)
    found, rows, truths = in_corpus(run, split), run.rows(), grades(split)
    for overlap in (0.5, 0.7):
        for k in (1, 10, 100):
            hits = [
                any(hit(row, best(answers), overlap) for row in rows[name][:k])
                for name, answers in truths.items()
            ]
            assert found[f"VCMR R@{k},IoU>{overlap}"] == pytest.approx(share(hits))
    for k in (1, 5, 10, 100):
        hits = [
            bool(
                {video for video, *_ in best(answers)}
                & set(list(dict.fromkeys(row["video_id"] for row in rows[name]))[:k])
            )
            for name, answers in truths.items()
        ]
        assert found[f"VR R@{k}"] == pytest.approx(share(hits))
    assert 0 < found["VCMR R@100,IoU>0.5"] < 1
    assert 0 < found["VR R@1"] < 1


def test_a_video_stands_where_its_best_moment_stood(split: Split) -> None:
    durations = dict(zip(split.features.video_ids, split.features.durations.tolist(), strict=True))
    for name, rows in whole_videos(random_run(split), split).rows().items():
        before = [row["video_id"] for row in random_run(split).rows()[name]]
        assert [row["video_id"] for row in rows] == list(dict.fromkeys(before))
        assert all((row["start"], row["end"]) == (0, durations[row["video_id"]]) for row in rows)


def test_each_query_is_asked_in_the_video_of_its_first_best_moment_alone(split: Split) -> None:
    truths, names = grades(split), []
    for part in of_each_video(split):
        (video,) = part.features.video_ids
        assert part.pairs.videos == (video,)
        assert part.features.durations.tolist() == [
            split.features.durations[split.features.video_ids.index(video)]
        ]
        assert part.features.counts.tolist() == [split.features.counts[split.features.video_ids.index(video)]]
        assert part.pairs.query_ids == part.queries.query_ids
        for name, answers in grades(part).items():
            assert video == best(truths[name])[0][0]
            assert answers == [row for row in truths[name] if row[1] == video]
            row = split.queries.query_ids.index(name)
            assert np.array_equal(
                part.queries.vectors[part.queries.query_ids.index(name)], split.queries.vectors[row]
            )
        names += part.queries.query_ids
    assert sorted(names) == sorted(name for name, answers in truths.items() if answers)


@pytest.mark.parametrize("seed", [0, 1])
def test_recall_in_one_video(split: Split, seed: int) -> None:
    runs: Rows = {}

    def answer(part: Split) -> Run:
        run = random_run(part, seed + 1000 * split.features.row_of[part.features.video_ids[0]])
        runs.update(run.rows())
        return run

    found, truths = in_video(answer, split), grades(split)
    for overlap in (0.5, 0.7):
        for k in (1, 5):
            hits = []
            for name, answers in truths.items():
                home = best(answers)[0][0]
                own = [row for row in best(answers) if row[0] == home]
                hits.append(any(hit(row, own, overlap) for row in runs[name][:k]))
            assert found[f"SVMR R@{k},IoU>{overlap}"] == pytest.approx(share(hits))
    assert found["SVMR R@5,IoU>0.5"] > 0


def test_the_truth_itself_has_every_recall(split: Split) -> None:
    def truth(part: Split) -> Run:
        return Run.from_dict(
            {
                name: [
                    {"video_id": video, "start": start, "end": end, "score": grade}
                    for grade, video, start, end in answers
                ]
                for name, answers in grades(part).items()
            }
        )

    found = in_corpus(truth(split), split) | in_video(truth, split)
    assert len(found) == 6 + 4 + 4
    assert set(found.values()) == {1.0}


@pytest.mark.parametrize("name", list(TINY))
def test_every_architecture_answers_one_video(split: Split, name: str) -> None:
    how = recipe(name)
    settings = read_settings(how, overrides=[f"model.{override}" for override in TINY[name]])
    torch.manual_seed(0)
    model = build(how.architecture, {**how.sized(split.sizes), **settings.model}).eval()
    durations = dict(zip(split.features.video_ids, split.features.durations.tolist(), strict=True))

    def answer(part: Split) -> Run:
        (video,) = part.features.video_ids
        queries = len(part.queries)
        zeros, ones = np.zeros(queries), np.ones(queries)
        whole = Proposals.of_columns(
            range(queries), zeros, zeros, zeros + durations[video], ones, queries=queries
        )
        ready = replace(part, proposals=whole, first_stage=np.ones((queries, 1), np.float32).__getitem__)
        with torch.inference_mode():
            run = how.run(model, ready)
        for rows in run.rows().values():
            assert rows
            assert {row["video_id"] for row in rows} == {video}
            assert all(0 <= row["start"] < row["end"] <= durations[video] for row in rows)
        assert tuple(run.query_ids) == part.queries.query_ids
        return run

    found = in_video(answer, split)
    assert all(0 <= value <= 1 for value in found.values())
    assert found["SVMR R@1,IoU>0.5"] <= found["SVMR R@5,IoU>0.5"]
