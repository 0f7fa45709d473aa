"""Scores of videos, made block by block, against one table of all queries and videos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.features import FeatureRows, QueryFeatures, VideoFeatures
from moviola.retrieval.stage1 import EmbeddedSegments, score_blocks, video_scores
from moviola.study.training.corpus import best_videos
from moviola.study.training.data import Pairs
from moviola.study.training.tasks.candidates import hardest_videos

DIM = 3


@dataclass
class Watched:
    """A stage 1 of small whole numbers, whose sums are the same in any order; notes how much it is asked."""

    most_queries: int = 0
    recipe: str = "numbers"
    trained: bool = False

    def segments(self, clips: NDArray[np.float32], segment_clips: int) -> NDArray[np.float32]:
        return clips[::segment_clips]

    def queries(self, queries: QueryFeatures) -> NDArray[np.float32]:
        self.most_queries = max(self.most_queries, len(queries))
        return queries.vectors


def features_of(counts: list[int], draw: np.random.Generator) -> VideoFeatures:
    rows = [draw.integers(-3, 4, (count, DIM)).astype(np.float16) for count in counts]
    names = tuple(f"v{place}" for place in range(len(counts)))
    visual = FeatureRows(DIM, tuple(range(len(counts))), rows.__getitem__)
    return VideoFeatures(names, np.array(counts, float), 1.0, np.array(counts), visual, unit=False)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 9), st.integers(1, 4),
    st.integers(1, 40), st.integers(0, 2**31),
)  # fmt: skip
def test_blocks_find_what_one_table_finds(
    counts: list[int], asked: int, length: int, cells: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    features = features_of(counts, draw)
    names = tuple(f"q{place}" for place in range(asked))
    queries = QueryFeatures.of(
        names, names, list(draw.integers(-3, 4, (asked, DIM)).astype(float)), unit=False
    )
    rows = [features.read(video)[::length] for video in range(len(counts))]
    dense = np.stack([(queries.vectors @ own.T).max(axis=1) for own in rows], axis=1)
    stage1 = Watched()
    segments = EmbeddedSegments(stage1, features, length)
    np.testing.assert_array_equal(segments.best(queries), dense)

    stage1.most_queries = 0
    scores = video_scores(stage1, features, queries, length)
    blocks = list(score_blocks(scores, asked, len(counts), most=4, cells=cells))
    np.testing.assert_array_equal(np.concatenate([table for _, table in blocks]), np.exp(dense))
    assert stage1.most_queries == max(1, min(asked, 4, cells // len(counts)))

    found = best_videos(scores, features, asked, keep=3)
    keep = min(3, len(counts))
    order = [sorted(range(len(counts)), key=lambda v, row=row: -row[v]) for row in dense.tolist()]
    assert found.video.reshape(asked, keep).tolist() == [row[:keep] for row in order]
    np.testing.assert_array_equal(
        found.match.reshape(asked, keep), np.exp(-np.sort(-dense, axis=1)[:, :keep])
    )

    pairs = pairs_of(draw.integers(0, asked, 6), draw.integers(0, len(counts), 6), asked, features.video_ids)
    hardest = hardest_videos(scores, pairs, 5)
    for query, row in enumerate(order):
        own = set(pairs.video[pairs.query == query].tolist())
        free = [video for video in row if video not in own][:5]
        assert [video for video in hardest[query].tolist() if video >= 0] == free


def test_equal_scores_keep_the_order_of_the_videos() -> None:
    """More than an unstable sort leaves in order by chance: it inserts up to sixteen."""
    score = (np.arange(200) % 2).astype(np.float32)
    features = features_of([1] * 200, np.random.default_rng(0))
    order = [*range(1, 200, 2), *range(0, 200, 2)]

    def scores(some: slice) -> NDArray[np.float32]:
        return score[None]

    assert best_videos(scores, features, 1, keep=200).video.tolist() == order
    pairs = pairs_of(np.array([0]), np.array([5]), 1, features.video_ids)
    hardest = hardest_videos(scores, pairs, 200)[0]
    assert hardest[hardest >= 0].tolist() == [video for video in order if video != 5]


def pairs_of(
    query: NDArray[np.int64], video: NDArray[np.int64], queries: int, videos: tuple[str, ...]
) -> Pairs:
    names, count = tuple(f"q{row}" for row in range(queries)), len(query)
    return Pairs(
        query_ids=names, texts=names, videos=videos, video=video, start=np.zeros(count), end=np.ones(count),
        captions=("c",) * count, query=query, moment=np.arange(count),
        similarity=np.ones(count, np.float32), relevance=np.ones(count),
    )  # fmt: skip


@pytest.mark.parametrize("videos", [1, 1000, 10**7])
def test_a_block_holds_few_scores(videos: int) -> None:
    blocks = score_blocks(lambda some: np.empty((0, 0), np.float32), 600, videos)
    sizes = [some.stop - some.start for some, _ in blocks]
    assert sum(sizes) == 600
    assert max(sizes) <= 256
    assert max(sizes) * videos <= 1 << 22 or max(sizes) == 1


def test_a_query_scores_videos_the_same_alone_and_among_others() -> None:
    """To the bit: each is multiplied by itself."""
    draw = np.random.default_rng(0)
    features = features_of([9, 4, 30, 1, 17], draw)
    names = tuple(f"q{place}" for place in range(7))
    queries = QueryFeatures.of(names, names, list(draw.normal(size=(7, DIM))), unit=False)
    segments = EmbeddedSegments(Watched(), features, 2)
    together = segments.best(queries)
    for place in range(7):
        np.testing.assert_array_equal(segments.best(queries.select([place]))[0], together[place])
