"""Batches of Reel against brute force; refining reads what training reads; it learns the toy world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from moviola.models.pretrained import build
from moviola.models.reel import Reel
from moviola.training.recipes import Split, judge, read_settings, train
from moviola.training.reels import REEL, ReelTask, encoded_clips, reel_run
from moviola.types import Proposal, Span

SMALL = [
    "model.hidden_size=16", "model.heads=2", "model.longest_span=8", "model.dropout=0.0",
    "loop.batch_size=4", "loop.optimizer.lr=1e-2",
]  # fmt: skip


def whole_videos(split: Split) -> Split:
    """The split with every video as one proposal of every query."""
    own = [
        Proposal(name, Span(0.0, float(duration)), 1.0, rank)
        for rank, (name, duration) in enumerate(
            zip(split.clips.videos, split.clips.durations, strict=True), start=1
        )
    ]
    return replace(split, proposals=[own] * len(split.queries))


def model_for(split: Split, seed: int = 0) -> Reel:
    torch.manual_seed(seed)
    settings = read_settings(REEL, overrides=SMALL)
    model = build("reel", {**REEL.sized(split.sizes), **settings.model})
    assert isinstance(model, Reel)
    return model.eval()


def task_for(split: Split, batch_size: int = 3) -> ReelTask:
    return ReelTask(model_for(split), split.clips, split.queries, split.pairs, dict, batch_size)


def test_an_epoch_asks_each_query_once(world: Any) -> None:
    split = world.train
    task = task_for(split, 4)
    batches = list(task.batches(0, np.random.default_rng(0)))
    assert len(batches) == task.batches_per_epoch()
    asked = [
        query[mask > 0]
        for batch in batches
        for query, mask in zip(batch.query, batch.query_mask, strict=True)
    ]
    every, mask = split.queries.tokens(np.arange(len(split.queries)))
    expected = sorted(tokens[there > 0].sum().item() for tokens, there in zip(every, mask, strict=True))
    assert sorted(tokens.sum().item() for tokens in asked) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_has_all_answers_in_its_videos_and_no_others(world: Any, seed: int) -> None:
    split = world.train
    pairs, clips = split.pairs, split.clips
    queries = np.array([4, 1, 2])
    batch = task_for(split).batch(queries, np.random.default_rng(seed))
    counts = batch.mask.sum(dim=1).long().tolist()
    videos = []
    for visual, count in zip(batch.visual, counts, strict=True):
        same = [v for v in range(len(clips.videos)) if np.array_equal(clips.read(v), visual[:count])]
        videos += same
    assert len(videos) == len(counts)
    assert len(set(videos)) == len(videos)
    expected = set()
    for row, query in enumerate(queries):
        own = [p for p in range(len(pairs)) if pairs.query[p] == query]
        held = [p for p in own if pairs.video[pairs.moment[p]] in videos]
        assert held, "a query without any answer in the batch"
        for p in held:
            m = pairs.moment[p]
            expected.add(
                (row, videos.index(pairs.video[m]), pairs.start[m], pairs.end[m], float(pairs.similarity[p]))
            )
    found = [
        (*answer, *span, similarity)
        for answer, span, similarity in zip(
            batch.answer.tolist(), batch.span.tolist(), batch.similarity.tolist(), strict=True
        )
    ]
    assert len(found) == len(expected)
    assert set(found) == expected


def test_videos_are_stored_as_training_encodes_them(heard_world: Any) -> None:
    split = heard_world.train
    model = model_for(split)
    stored = encoded_clips(model, split.clips, batch=3)
    rows = np.arange(len(split.clips.videos))
    with torch.inference_mode():
        context = model.encode_context(*split.clips.batch(rows))
    for row in rows:
        assert len(stored[row]) == split.clips.counts[row]
        torch.testing.assert_close(stored[row], context.clips[row, : len(stored[row])], rtol=1e-4, atol=1e-5)


def test_refining_whole_videos_finds_what_the_loss_scores_highest(world: Any) -> None:
    """Encode once and slice: the same spans as the training path, query by query and video by video."""
    split = whole_videos(world.val)
    model = model_for(split)
    run = reel_run(model, split, nms=None)
    rows = np.arange(len(split.clips.videos))
    visual, mask, _ = split.clips.batch(rows)
    with torch.inference_mode():
        context = model.encode_context(visual, mask)
        query = model.encode_query(*split.queries.tokens(np.arange(len(split.queries))))
        scores = model.span_scores(model.curves(query, context), mask)
    for place, name in enumerate(split.queries.query_ids):
        best, cell = scores[place].flatten(1).max(dim=1)
        expected = [
            (split.clips.videos[v], int(cell[v]) // 8, int(cell[v]) // 8 + int(cell[v]) % 8 + 1)
            for v in best.argsort(descending=True)
        ]
        found = run.rows()[name]
        assert [(row["video_id"], row["start"], row["end"]) for row in found] == expected
        assert [row["score"] for row in found] == pytest.approx(
            best.sort(descending=True).values.tolist(), rel=1e-4, abs=1e-5
        )


def test_windows_do_not_depend_on_each_other(world: Any) -> None:
    """A short window first must not hide the end of a long one."""
    split = world.val
    video, duration = split.clips.videos[0], float(split.clips.durations[0])
    short = Proposal(video, Span(0.0, 1.0), 1.0, 1)
    others = [Proposal(name, Span(0.0, 30.0), 0.5, 2) for name in split.clips.videos[1:]]
    model = model_for(split)

    def answers(own: list[Proposal]) -> dict[tuple[str, float], float]:
        count = len(split.queries)
        run = reel_run(model, replace(split, proposals=[own] * count), context=0.0, nms=None)
        rows = run.rows()[split.queries.query_ids[0]]
        return {(row["video_id"], row["start"]): row["score"] for row in rows if row["video_id"] != video}

    assert duration > 2
    alone, beside = answers(others), answers([short, *others])
    assert list(alone) == list(beside)
    assert list(alone.values()) == pytest.approx(list(beside.values()), rel=1e-4)


def test_overlapping_answers_of_one_video_are_thinned(world: Any) -> None:
    split = world.val
    video = split.clips.videos[0]
    own = [Proposal(video, Span(0.0, 9.0), 1.0, 1), Proposal(video, Span(0.5, 9.5), 0.9, 2)]
    twice = replace(split, proposals=[own] * len(split.queries))
    model = model_for(split)
    assert {len(rows) for rows in reel_run(model, twice, nms=None).rows().values()} == {2}
    assert {len(rows) for rows in reel_run(model, twice, nms=0.5).rows().values()} == {1}


def test_training_beats_not_training(world: Any) -> None:
    learned, val = whole_videos(world.train), whole_videos(world.val)
    settings = read_settings(REEL, overrides=[*SMALL, "loop.steps=60", "loop.evaluate_every=20"])
    trained = train(REEL, learned, val, settings)
    fitted = trained.fitted[0]
    before = judge(REEL.run(model_for(val), val), val)["nDCG@20,IoU>=0.5"]
    after = judge(REEL.run(trained.model, val), val)["nDCG@20,IoU>=0.5"]
    assert after == fitted.best
    assert after > before + 0.1
    assert fitted.history[-1]["loss/list"] < fitted.history[0]["loss/list"]
