"""Segments: their shares in answers and recall against brute force; training makes retrieval better."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from moviola.errors import InvalidValue
from moviola.features import VideoFeatures
from moviola.retrieval import Hits, MeanPooling, Proposals, TrainedStage1
from moviola.retrieval.segments import mean_pooled, normalised
from moviola.retrieval.stage1 import EmbeddedSegments, video_scores
from moviola.study.measures import Run
from moviola.study.models.running import TorchRunner
from moviola.study.models.spr import SegmentRetriever, SegmentRetrieverConfig
from moviola.study.training.data import Pairs, Split
from moviola.study.training.first_stage import Candidates, TrainedFirstStage
from moviola.study.training.recipe import AnswerSettings, train
from moviola.study.training.recipes.spr import SPR_STAGE1
from moviola.study.training.settings import read_settings
from moviola.study.training.tasks.segments import (
    SegmentGrid,
    SegmentSampling,
    SegmentTask,
    recall,
    segment_recall,
)


def grid_of(counts: list[int], length: int, clip_seconds: float) -> SegmentGrid:
    """Segments of videos of which only the lengths are asked."""
    names, nothing = tuple(f"v{row}" for row in range(len(counts))), cast("Any", None)
    durations = np.array(counts) * clip_seconds
    return SegmentGrid(
        VideoFeatures(names, durations, clip_seconds, np.array(counts, dtype=np.int64), nothing), length
    )


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


def test_clips_are_those_of_the_video_and_the_last_one_fills_up(world: Any) -> None:
    features = world.train.features
    grid = SegmentGrid(features, 4)
    every = grid.clips(np.arange(len(grid)))
    for row, (video, position) in enumerate(zip(grid.video, grid.position, strict=True)):
        rows = np.minimum(np.arange(4) + position * 4, features.counts[video] - 1)
        np.testing.assert_array_equal(every[row], features.read(video)[rows])


def test_hits_are_the_segments_that_they_name(world: Any) -> None:
    grid = SegmentGrid(world.train.features, 4)
    rows = np.random.default_rng(0).permutation(len(grid)).reshape(1, -1)
    hits = Hits(grid.video[rows], grid.position[rows], np.zeros(rows.shape, np.float32), len(grid))
    np.testing.assert_array_equal(grid.rows_of(hits), rows)


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
    best = np.argsort(-scores, axis=1, kind="stable")
    assert recall(best, sparse.csr_array(shares), k) == pytest.approx(np.mean(expected), rel=1e-6)


def test_every_batch_marks_all_that_goes_together(world: Any) -> None:
    split = world.train
    model = SegmentRetriever(SegmentRetrieverConfig(hidden_size=16, layers=1, heads=2))
    task = SegmentTask(model, split, split, SegmentSampling(segment_clips=2), 8)
    shares = task.grid.shares(split.pairs).toarray()
    batches = list(task.batches(0, np.random.default_rng(0)))
    assert len(batches) == task.batches_per_epoch() == int((shares >= 0.3).sum()) // 8
    every = task.grid.clips(np.arange(len(task.grid)))
    place = {clips.tobytes(): row for row, clips in enumerate(every)}
    texts = {vector.tobytes(): row for row, vector in enumerate(split.queries.vectors)}
    drawn = set()
    for batch in batches:
        query = [texts[vector.numpy().tobytes()] for vector in batch.queries]
        segment = [place[clips.numpy().tobytes()] for clips in batch.clips]
        np.testing.assert_array_equal(batch.relevance, shares[np.ix_(query, segment)] >= 0.3)
        assert (batch.relevance.diagonal() == 1).all()
        drawn |= set(zip(query, segment, strict=True))
    assert len(drawn) == 8 * len(batches)


@pytest.mark.parametrize(("inside", "pairs"), [(1.2, 1), (1.19, 0)])
def test_the_least_share_of_a_segment_is_enough(world: Any, inside: float, pairs: int) -> None:
    """Of a segment of 4 s exactly .3 lies in the answer, then a little less: "at least", not "more than"."""
    split = world.train
    own = pairs_of([(0, 0, 0.0, inside)], 1, len(split.pairs.videos))
    model = SegmentRetriever(SegmentRetrieverConfig(hidden_size=16, layers=1, heads=2))
    task = SegmentTask(model, replace(split, pairs=own), split, SegmentSampling(segment_clips=4), 1)
    assert task._relevant.nnz == pairs


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
    untrained: Any = SegmentRetriever(trained.model.config).eval()  # type: ignore[arg-type]
    assert fitted.best == max(row["recall@10"] for row in fitted.history)
    with torch.inference_mode():
        before = SegmentTask(untrained, val, val).evaluate()["recall@10"]
    assert fitted.best > before + 0.1
    assert fitted.history[-1]["loss/query_to_segment"] < fitted.history[0]["loss/query_to_segment"]


@pytest.fixture(scope="module")
def stage1() -> TrainedStage1:
    torch.manual_seed(0)
    sizes = SegmentRetrieverConfig(hidden_size=16, layers=1, heads=2, identity_start=True)
    return TrainedStage1(TorchRunner(SegmentRetriever(sizes).eval()), "toy")


def pooled(split: Split, length: int = 4) -> np.ndarray:
    features = split.features
    return np.concatenate([mean_pooled(features.read(row), length) for row in range(len(features))])


def test_embeddings_of_an_untouched_retriever_are_the_mean(world: Any, stage1: TrainedStage1) -> None:
    """A retriever that starts as no change at all is the mean of the clips, a short segment's filled up."""
    split = world.val
    grid = SegmentGrid(split.features, 4)
    found = EmbeddedSegments(stage1, split.features, 4).vectors
    expected = normalised(grid.clips(np.arange(len(grid))).mean(axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_embeddings_do_not_depend_on_the_batch(
    world: Any, stage1: TrainedStage1, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = EmbeddedSegments(stage1, world.val.features, 2).vectors
    monkeypatch.setattr("moviola.retrieval.stage1._BATCH", 3)
    np.testing.assert_allclose(
        EmbeddedSegments(stage1, world.val.features, 2).vectors, whole, rtol=1e-5, atol=1e-6
    )


def test_proposals_cover_the_best_segments_and_no_more(world: Any, stage1: TrainedStage1) -> None:
    val = world.val
    grid = SegmentGrid(val.features, 4)
    proposals = TrainedFirstStage(stage1, 4, segments=5).proposals(val)
    segments = EmbeddedSegments(stage1, val.features, 4).vectors
    queries = stage1.queries(val.queries)
    for query in range(len(val.queries)):
        own = proposals.of(query)
        best = np.argsort(-(segments @ queries[query]), kind="stable")[:5]
        inside = set()
        for place in best:
            start = grid.position[place] * 4.0
            holding = np.flatnonzero(
                (own.video == grid.video[place]) & (own.start <= start) & (start < own.end)
            )
            assert len(holding) == 1
            inside.add(int(holding[0]))
        assert inside == set(range(len(own.video)))
        assert own.rank.tolist() == sorted(own.rank.tolist())
        assert (own.end <= val.features.durations[own.video]).all()
    run = SPR_STAGE1.run(stage1.model.network, val, AnswerSettings(segments=5))
    assert run.query_ids == val.queries.query_ids
    videos = [val.features.video_ids[video] for video in proposals.of(0).video]
    assert [row["video_id"] for row in run.rows()[run.query_ids[0]]] == videos


@pytest.mark.parametrize("length", [2, 4])
def test_video_scores_are_the_best_segments(world: Any, length: int) -> None:
    val = world.val
    grid = SegmentGrid(val.features, length)
    cosines = MeanPooling().queries(val.queries) @ pooled(val, length).T
    expected = np.stack([cosines[:, grid.video == v].max(axis=1) for v in range(len(val.features))], 1)
    found = video_scores(MeanPooling(), val.features, val.queries, length)(slice(0, len(val.queries)))
    np.testing.assert_allclose(found, np.exp(expected), rtol=1e-4)


def test_a_retriever_answers_with_its_proposals(world: Any, stage1: TrainedStage1) -> None:
    split = world.val
    proposals = TrainedFirstStage(stage1, 4).proposals(split)
    found = SPR_STAGE1.moments(stage1.model.network, split, AnswerSettings())
    for name, other in (("offsets", "offsets"), ("video", "video"), ("start", "start"), ("match", "score")):
        np.testing.assert_array_equal(getattr(found, name), getattr(proposals, other))


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
    rows += [("other", names[0], 0.0, 1.0, 9.0), ("0", "elsewhere", 0.0, 1.0, 9.0)]
    for scale in (1.0, 100.0):
        scaled = [(*row[:4], row[4] * scale) for row in rows]
        scores = Candidates(other_run(world, scaled)).first_stage(split)(slice(0, len(split.queries)))
        assert scores.dtype == np.float32
        np.testing.assert_allclose(np.log(scores[0]), [0, 1, 0.5, -1], atol=1e-6)
        np.testing.assert_allclose(np.log(scores[1:]), [[1, -1, -1, -1]] * (len(scores) - 1), atol=1e-6)


def test_candidates_become_proposals_in_their_order(world: Any) -> None:
    split, names = world.val, world.val_videos
    duration = float(split.features.durations[1])
    rows = [(q, names[0], 0.0, 1.0, 3.0) for q in split.queries.query_ids]
    rows += [("0", names[1], 1.0, duration + 5, 2.0), ("0", names[1], duration + 1, duration + 2, 1.5)]
    rows += [("0", "elsewhere", 0.0, 1.0, 1.2), ("0", names[0], 2.0, 3.0, 1.0)]
    found = Candidates(other_run(world, rows)).proposals(split)
    assert isinstance(found, Proposals)
    assert np.diff(found.offsets).tolist() == [3] + [1] * (len(split.queries) - 1)
    own = found.of(0)
    videos = [split.features.video_ids[video] for video in own.video]
    columns = (videos, own.start.tolist(), own.end.tolist(), own.rank.tolist())
    assert list(zip(*columns, strict=True)) == [
        (names[0], 0.0, 1.0, 1), (names[1], 1.0, duration, 2), (names[0], 2.0, 3.0, 3),
    ]  # fmt: skip
    with pytest.raises(
        InvalidValue, match="none for 5 of 6 queries among the 4 videos, the first is query '1'"
    ):
        Candidates(other_run(world, rows[:1])).proposals(split)


def test_a_moment_of_level_0_is_no_answer() -> None:
    grid = grid_of([8], 2, 1.0)
    pairs = pairs_of([(0, 0, 0.0, 2.0), (0, 0, 4.0, 6.0)], 1, 1)
    shares = grid.shares(replace(pairs, relevance=np.array([0.0, 3.0])))
    assert shares.toarray().tolist() == [[0, 0, 1, 0]]
    assert math.isnan(recall(np.array([[0]]), grid.shares(replace(pairs, relevance=np.zeros(2))), 1))


@pytest.mark.parametrize("end, count", [(3.0, 1), (2.75, 0), (13.0, 2), (12.75, 1)])
def test_a_segment_of_which_the_least_share_answers_is_a_pair(end: float, count: int) -> None:
    """The paper's .3 is enough by itself: 3 of 10 seconds."""
    grid = grid_of([20], 10, 1.0)
    pairs = pairs_of([(0, 0, 0.0, end)], 1, 1)
    split = Split(grid.features, cast("Any", None), pairs)
    task = SegmentTask(cast("Any", None), split, split, SegmentSampling(segment_clips=10))
    assert task._relevant.nnz == count


def test_pairs_without_a_segment_to_learn_from_are_refused(world: Any) -> None:
    split = world.train
    split = replace(split, pairs=replace(split.pairs, end=split.pairs.start))
    model = SegmentRetriever(SegmentRetrieverConfig(hidden_size=16, layers=1, heads=2))
    with pytest.raises(InvalidValue, match="lower sampling"):
        SegmentTask(model, split, split).batches_per_epoch()


def test_at_a_depth_of_all_segments_recall_is_whole(world: Any, stage1: TrainedStage1) -> None:
    assert 10 < len(SegmentGrid(world.val.features, 2)) <= 200
    found = segment_recall(stage1, world.val, 2)
    assert found["recall@10"] < found["recall@200"] == pytest.approx(1)
    assert list(found.values()) == sorted(found.values())
