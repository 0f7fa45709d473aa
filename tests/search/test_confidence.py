"""Whether an answer says that nothing matches."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moviola.features import QueryFeatures, VideoFeatures
from moviola.features.shards import halves
from moviola.library import read_unrelated
from moviola.retrieval import MeanPooling, Retrieval, Unrelated, level_of, segment_index, unrelated_queries
from moviola.retrieval.confidence import ENOUGH, NEAREST
from moviola.search import Library, LikeMoment, Text

Trained = Callable[..., Path]


class Rows:
    """Features of three videos in memory."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays, self.dim = arrays, arrays[0].shape[1]

    def read(self, video: int) -> np.ndarray:
        return halves(self.arrays[video], "video")

    def select(self, videos: list[int]) -> Rows:
        return Rows([self.arrays[video] for video in videos])


@pytest.fixture(scope="module")
def retrieval() -> Retrieval:
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=(count, 64)).astype(np.float32) for count in (24, 17, 9)]
    counts = np.array([len(rows) for rows in arrays])
    features = VideoFeatures(("a", "b", "c"), counts.astype(float), 1.0, counts, Rows(arrays))
    return Retrieval(features, segment_index(MeanPooling(), features, 4), MeanPooling(), None, 4)


def features_of(rows: np.ndarray) -> QueryFeatures:
    names = [str(n) for n in range(len(rows))]
    return QueryFeatures.of(names, names, list(rows))


def test_leads_against_their_definition(retrieval: Retrieval) -> None:
    vectors = MeanPooling().queries(features_of(np.random.default_rng(1).normal(size=(30, 64))))
    unrelated = Unrelated.of(retrieval, vectors)
    segments = np.concatenate(
        [MeanPooling().segments(retrieval.features.read(video), 4) for video in range(3)]
    )
    cosines = vectors @ segments.T
    ahead = (cosines - cosines.mean(axis=0)) / cosines.std(axis=0)
    nearest = np.argsort(-cosines, axis=1)[:, :NEAREST]
    expected = np.take_along_axis(ahead, nearest, axis=1).max(axis=1)
    np.testing.assert_allclose(unrelated.leads, expected, rtol=1e-2, atol=1e-2)


def test_what_is_there_leads_and_noise_does_not(retrieval: Retrieval) -> None:
    draw = np.random.default_rng(2)
    unrelated = Unrelated.of(retrieval, MeanPooling().queries(features_of(draw.normal(size=(200, 64)))))
    there = np.stack([retrieval.features.read(0, 4, 8).mean(0), retrieval.features.read(2, 0, 4).mean(0)])
    noise = draw.normal(size=(200, 64))
    for rows, share in ((there, 1.0), (noise, 0.2)):
        leads = unrelated.leads_of(retrieval, retrieval.hits(features_of(rows), segments=NEAREST))
        assert np.mean(unrelated.confident(leads, 0.8)) == pytest.approx(share, abs=0.1)


def test_no_more_is_asked_than_enough() -> None:
    everything = Unrelated(np.eye(4, dtype=np.float32), np.full(4, 9.0))
    assert everything.confident([ENOUGH, ENOUGH - 0.1], 0.8).tolist() == [True, False]


def test_a_query_without_a_hit_is_not_confident(retrieval: Retrieval) -> None:
    nothing = Retrieval.of_proposals(retrieval.features, None)  # type: ignore[arg-type]
    unrelated = Unrelated(np.eye(64, dtype=np.float32), np.zeros(64))
    leads = unrelated.leads_of(nothing, nothing.hits(features_of(np.eye(64)[:2])))
    assert leads.tolist() == [-np.inf, -np.inf]


def test_unrelated_queries_are_many_and_different() -> None:
    texts = unrelated_queries()
    assert len(texts) > 200 and len(set(texts)) == len(texts) and all(text.strip() for text in texts)
    assert 0 < level_of("an encoder that nobody measured") < level_of("demo") < 1


# ---- in a library ------------------------------------------------------------------------------------------


def test_it_is_made_when_indexing_and_with_each_stage1(library: Library, trained: Trained) -> None:
    first = read_unrelated(library.store)
    assert first is not None and len(first.leads) == len(unrelated_queries())
    library.use(stage1=trained("spr-stage1"))
    second = read_unrelated(library.store)
    assert second is not None and not np.array_equal(first.vectors, second.vectors)
    assert library.search("a red square").confident in (True, False)


def test_without_it_nothing_is_said(folder: Path) -> None:
    shutil.rmtree(folder / "cache")
    with Library(folder, read_only=True) as library:
        assert library.search("a red square", by="visual").confident is None
        assert library.search("the lighthouse keeper lost his umbrella").confident is True
    assert not (folder / "cache").exists()


@pytest.mark.parametrize("damage", [b"", b"no archive"])
def test_a_damaged_one_is_as_good_as_none(folder: Path, damage: bytes) -> None:
    (folder / "cache" / "unrelated.npz").write_bytes(damage)
    with Library(folder, read_only=True) as library:
        assert library.search("a red square", by="visual").confident is None


def test_what_is_said_is_confident_where_most_words_are_there(library: Library) -> None:
    assert library.search("lighthouse keeper umbrella", by="subtitles").confident is True
    assert library.search("a mountain goat", by="subtitles").confident is False


def test_every_text_of_a_query_must_have_an_answer(library: Library) -> None:
    said, not_said = Text("lighthouse keeper umbrella"), Text("a mountain goat")
    ask = {"by": "subtitles"}
    assert library.search(said.then(not_said), **ask).confident is False  # type: ignore[arg-type]
    assert library.search(said + not_said, **ask).confident is False  # type: ignore[arg-type]
    assert library.search(said.without(not_said), **ask).confident is True  # type: ignore[arg-type]
    assert library.search(LikeMoment("film0", 1.0)).confident is True


def test_hiding_nothing(library: Library) -> None:
    """Whatever it says, the moments are there."""
    found = library.search("a mountain goat", by="visual")
    assert found and isinstance(found, list)
