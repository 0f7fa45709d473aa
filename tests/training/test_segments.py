"""Segments: their shares in answers and recall against brute force; training makes retrieval better."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from moviola.errors import InvalidValue
from moviola.measures import Run
from moviola.models.spr import SegmentRetriever, SegmentRetrieverConfig
from moviola.training.data import Clips, Pairs
from moviola.training.recipes import read_settings, train
from moviola.training.segments import (
    SPR_STAGE1,
    SegmentGrid,
    SegmentTask,
    candidate_proposals,
    candidate_scores,
    coarse_run,
    embed_segments,
    mean_pooled,
    proposals_of,
    propose_for,
    recall,
    video_scores,
)


class Lengths:
    """Features of which only the number of rows is asked."""

    def __init__(self, counts: list[int]) -> None:
        self.counts = {f"v{row}": count for row, count in enumerate(counts)}

    def shape(self, key: str) -> tuple[int, int]:
        return self.counts[key], 1


def grid_of(counts: list[int], length: int, clip_seconds: float) -> SegmentGrid:
    names = tuple(f"v{row}" for row in range(len(counts)))
    features: Any = Lengths(counts)
    return SegmentGrid.of(Clips(names, np.array(counts) * clip_seconds, clip_seconds, features, None), length)


def pairs_of(rows: list[tuple[int, int, float, float]], queries: int, videos: int) -> Pairs:
    """One moment a row: query, video, start, end."""
    query, video, start, end = (np.array(column) for column in zip(*rows, strict=True))
    names = tuple(f"q{row}" for row in range(queries))
    return Pairs(
        query_ids=names, texts=names, videos=tuple(f"v{row}" for row in range(videos)),
        video=video, start=start, end=end, captions=("c",) * len(rows),
        query=query, moment=np.arange(len(rows)),
        similarity=np.ones(len(rows), np.float32), relevance=np.ones(len(rows)),
    )  # fmt: skip


seconds = st.integers(0, 60).map(lambda tenths: tenths / 4)


@settings(max_examples=150, deadline=None)
@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    length=st.integers(1, 4),
    clip_seconds=st.sampled_from([0.5, 1.0, 1.5]),
    data=st.data(),
)
def test_shares_are_the_largest_overlap_of_any_answer(
    counts: list[int], length: int, clip_seconds: float, data: st.DataObject
) -> None:
    """Moments may overlap, touch, have no length, and reach beyond the video's end."""
    row = st.tuples(st.integers(0, 2), st.integers(0, len(counts) - 1), seconds, seconds)
    rows = [(q, v, min(a, b), max(a, b)) for q, v, a, b in data.draw(st.lists(row, min_size=1, max_size=6))]
    grid = grid_of(counts, length, clip_seconds)
    expected = np.zeros((3, len(grid)))
    for segment, (video, position) in enumerate(zip(grid.video, grid.position, strict=True)):
        left = position * length * clip_seconds
        right = left + length * clip_seconds
        for query, answered, start, end in rows:
            if answered == video:
                share = max(0.0, min(end, right) - max(start, left)) / (right - left)
                expected[query, segment] = max(expected[query, segment], share)
    found = grid.shares(pairs_of(rows, 3, len(counts)))
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)
    assert (found.data > 0).all()


@given(counts=st.lists(st.integers(1, 9), min_size=1, max_size=4), length=st.integers(1, 4))
def test_the_grid_counts_all_segments(counts: list[int], length: int) -> None:
    grid = grid_of(counts, length, 1.0)
    expected = [(video, at) for video, count in enumerate(counts) for at in range(-(-count // length))]
    assert list(zip(grid.video.tolist(), grid.position.tolist(), strict=True)) == expected


def test_frames_are_the_clips_and_the_last_one_fills_up(world: Any) -> None:
    clips = world.train.clips
    grid = SegmentGrid.of(clips, 4)
    for row, (video, position) in enumerate(zip(grid.video, grid.position, strict=True)):
        rows = np.minimum(np.arange(4) + position * 4, clips.counts[video] - 1)
        np.testing.assert_array_equal(grid.frames[row], clips.read(video)[rows])


@settings(deadline=None)
@given(
    scores=arrays(np.float32, (3, 7), elements=st.integers(0, 10_000).map(float), unique=True),
    shares=arrays(np.float32, (3, 7), elements=st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0])),
    k=st.integers(1, 9),
)
def test_recall_is_the_share_found(scores: np.ndarray, shares: np.ndarray, k: int) -> None:
    shares[0, 0] = 1
    expected = []
    for query in range(3):
        if shares[query].sum() > 0:
            best = sorted(range(7), key=lambda s: -scores[query, s])[:k]
            expected.append(sum(shares[query, s] for s in best) / shares[query].sum())
    assert recall(scores, sparse.csr_array(shares), k) == pytest.approx(np.mean(expected), rel=1e-6)


def test_every_batch_marks_all_that_goes_together(world: Any) -> None:
    split = world.train
    grid = SegmentGrid.of(split.clips, 2)
    model = SegmentRetriever(SegmentRetrieverConfig(hidden_size=16, layers=1, heads=2))
    task = SegmentTask(model, grid, split.queries, split.pairs, grid, split.queries, split.pairs, 8)
    shares = grid.shares(split.pairs).toarray()
    batches = list(task.batches(0, np.random.default_rng(0)))
    assert len(batches) == task.batches_per_epoch() == int((shares >= 0.3).sum()) // 8
    where = {frames.numpy().tobytes(): row for row, frames in enumerate(grid.frames)}
    texts = {vector.numpy().tobytes(): row for row, vector in enumerate(split.queries.vectors)}
    drawn = set()
    for batch in batches:
        query = [texts[vector.numpy().tobytes()] for vector in batch.queries]
        segment = [where[frames.numpy().tobytes()] for frames in batch.frames]
        np.testing.assert_array_equal(batch.relevance, shares[np.ix_(query, segment)] >= 0.3)
        assert (batch.relevance.diagonal() == 1).all()
        drawn |= set(zip(query, segment, strict=True))
    assert len(drawn) == 8 * len(batches)


def test_training_finds_more_than_not_training(world: Any) -> None:
    train_split, val = world.train, world.val
    settings = read_settings(
        SPR_STAGE1,
        overrides=["model.layers=1", "model.heads=2", "loop.steps=60", "loop.batch_size=32",
                   "loop.optimizer.lr=3e-3", "loop.select=recall@10", "loop.evaluate_every=20"],
    )  # fmt: skip
    trained = train(SPR_STAGE1, train_split, val, settings)
    fitted = trained.fitted[0]
    torch.manual_seed(0)
    untrained: Any = SegmentRetriever(trained.model.config)
    grid = SegmentGrid.of(val.clips, 4)
    task = SegmentTask(untrained, grid, val.queries, val.pairs, grid, val.queries, val.pairs)
    assert fitted.best == max(row["recall@10"] for row in fitted.history)
    with torch.inference_mode():
        before = task.evaluate()["recall@10"]
    assert fitted.best > before + 0.1
    assert fitted.history[-1]["loss/query_to_segment"] < fitted.history[0]["loss/query_to_segment"]


@pytest.fixture(scope="module")
def retriever() -> SegmentRetriever:
    torch.manual_seed(0)
    sizes = SegmentRetrieverConfig(hidden_size=16, layers=1, heads=2, identity_start=True)
    return SegmentRetriever(sizes).eval()


def test_embeddings_do_not_depend_on_the_batch(world: Any, retriever: SegmentRetriever) -> None:
    grid = SegmentGrid.of(world.val.clips, 4)
    torch.testing.assert_close(
        embed_segments(retriever, grid, batch=3), embed_segments(retriever, grid), rtol=1e-5, atol=1e-6
    )
    # A retriever that starts as no change at all is the mean of the frames.
    torch.testing.assert_close(embed_segments(retriever, grid), mean_pooled(grid), rtol=1e-4, atol=1e-5)


def test_proposals_cover_the_best_segments_and_no_more(world: Any, retriever: SegmentRetriever) -> None:
    val = world.val
    grid = SegmentGrid.of(val.clips, 4)
    proposals = propose_for(retriever, val, count=5)
    segments = mean_pooled(grid)
    queries = torch.nn.functional.normalize(val.queries.vectors, dim=-1)
    assert proposals == proposals_of(queries, embed_segments(retriever, grid), grid, count=5)
    for row, own in enumerate(proposals):
        best = (segments @ queries[row]).topk(5).indices.numpy()
        inside = set()
        for place in best:
            video, start = val.clips.videos[grid.video[place]], grid.position[place] * 4.0
            holding = [p for p in own if p.video_id == video and p.span.start <= start < p.span.end]
            assert len(holding) == 1
            inside.add(holding[0])
        assert inside == set(own)
        assert [p.rank for p in own] == sorted(p.rank for p in own)
        assert all(p.span.end <= val.clips.durations[val.clips.row_of[p.video_id]] for p in own)
    run = coarse_run(proposals, val.queries.query_ids)
    assert run.query_ids == val.queries.query_ids
    assert [row["video_id"] for row in run.rows()[run.query_ids[0]]] == [p.video_id for p in proposals[0]]


@pytest.mark.parametrize("length", [2, 4])
def test_video_scores_are_the_best_segments(world: Any, retriever: SegmentRetriever, length: int) -> None:
    val = world.val
    grid = SegmentGrid.of(val.clips, length)
    queries = torch.nn.functional.normalize(val.queries.vectors, dim=-1)
    cosines = (queries @ mean_pooled(grid).T).numpy()
    expected = np.stack([cosines[:, grid.video == v].max(axis=1) for v in range(len(val.clips.videos))], 1)
    found = video_scores(retriever, val, segment_clips=length)
    np.testing.assert_allclose(found, np.exp(expected), rtol=1e-4)


def test_a_retriever_answers_with_its_proposals(world: Any, retriever: SegmentRetriever) -> None:
    split = replace(world.val)
    run = SPR_STAGE1.run(retriever, split)
    assert run.rows() == coarse_run(propose_for(retriever, split), split.queries.query_ids).rows()


# ---- another system's run --------------------------------------------------------------------------------


def other_run(world: Any, rows: list[tuple[str, str, float, float, float]]) -> Run:
    query, video, start, end, score = zip(*rows, strict=True)
    return Run.from_columns(query, video, start, end, score)


def test_candidates_are_spread_between_the_best_and_the_last(world: Any) -> None:
    """Best 1, last 0, absent -1, as exp: whatever the scale, and above 0."""
    split, names = world.val, world.val_videos
    rows = [(q, names[0], 0.0, 1.0, -7.0) for q in split.queries.query_ids]
    rows += [
        ("0", names[1], 0.0, 1.0, -4.0),
        ("0", names[1], 1.0, 2.0, -1.0),
        ("0", names[2], 0.0, 1.0, -4.0),
    ]
    rows += [("unasked", names[0], 0.0, 1.0, 9.0), ("0", "elsewhere", 0.0, 1.0, 9.0)]
    for scale in (1.0, 100.0):
        scaled = [(*row[:4], row[4] * scale) for row in rows]
        scores = candidate_scores(other_run(world, scaled), split)
        assert scores.dtype == np.float32
        np.testing.assert_allclose(np.log(scores[0]), [0, 1, 0.5, -1], atol=1e-6)
        np.testing.assert_allclose(np.log(scores[1:]), [[1, -1, -1, -1]] * (len(scores) - 1), atol=1e-6)


def test_candidates_become_proposals_in_their_order(world: Any) -> None:
    split, names = world.val, world.val_videos
    duration = float(split.clips.durations[1])
    rows = [(q, names[0], 0.0, 1.0, 3.0) for q in split.queries.query_ids]
    rows += [("0", names[1], 1.0, duration + 5, 2.0), ("0", names[1], duration + 1, duration + 2, 1.5)]
    rows += [("0", "elsewhere", 0.0, 1.0, 1.2), ("0", names[0], 2.0, 3.0, 1.0)]
    found = candidate_proposals(other_run(world, rows), split)
    assert [len(own) for own in found] == [3] + [1] * (len(split.queries) - 1)
    assert [(p.video_id, p.span.start, p.span.end, p.rank) for p in found[0]] == [
        (names[0], 0.0, 1.0, 1), (names[1], 1.0, duration, 2), (names[0], 2.0, 3.0, 3),
    ]  # fmt: skip
    with pytest.raises(
        InvalidValue, match="none for 5 of 6 queries among the 4 videos, the first is query '1'"
    ):
        candidate_proposals(other_run(world, rows[:1]), split)
