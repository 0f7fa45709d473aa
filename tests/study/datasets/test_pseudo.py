"""Nearest captions, candidates and pseudo training sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.study.datasets.annotations import Annotations, Collector
from moviola.study.datasets.building.candidate_pairs import needs_second_batch
from moviola.study.datasets.building.nearest import nearest
from moviola.study.datasets.building.pseudo import pseudo_training_set


def unit(count: int, seed: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@given(st.integers(0, 40), st.integers(0, 60), st.integers(1, 70), st.integers(1, 60), st.integers(0, 99))
def test_candidates_are_what_one_product_gives(
    queries: int, captions: int, top: int, distinct: int, seed: int
) -> None:
    q, c = unit(queries, seed), unit(distinct, seed + 1)[np.arange(captions) % distinct]
    positions, similarities = nearest(q, c, top)
    exact = q @ c.T
    depth = min(top, captions)
    assert positions.shape == similarities.shape == (queries, depth)
    assert all(len(set(row)) == depth for row in positions.tolist())
    np.testing.assert_allclose(similarities, -np.sort(-exact, axis=1)[:, :depth], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(exact, positions, axis=1), similarities, atol=1e-6)


def test_equal_captions_keep_their_order() -> None:
    q = unit(1, 0)
    assert nearest(q, np.repeat(q, 5, axis=0), 5)[0].tolist() == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("size", [8, 383, 384])
@pytest.mark.parametrize("captions", [5, 100, 3000])
def test_equal_captions_are_equally_similar_to_the_last_bit(size: int, captions: int) -> None:
    """A matrix product rounds the same row differently by where it stands in the matrix."""
    random = np.random.default_rng(captions)
    rows = random.normal(size=(3, size)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    kind = np.append([0, 1, 2], random.integers(0, 3, captions - 3))
    positions, similarities = nearest(rows, rows[kind], captions)
    for query, (row, values) in enumerate(zip(positions.tolist(), similarities, strict=True)):
        order = kind[row]
        assert len(set(values.tolist())) == 3
        assert np.count_nonzero(np.diff(order)) == 2 and order[0] == query
        for k in range(3):
            places = [place for place in row if kind[place] == k]
            assert places == sorted(places)


def test_shapes_are_checked() -> None:
    with pytest.raises(InvalidValue, match=r"give \(q, d\) and \(c, d\)"):
        nearest(unit(2, 0), unit(2, 0)[:, :3], 1)
    with pytest.raises(InvalidValue, match="at least 1"):
        nearest(unit(2, 0), unit(2, 0), 0)


@pytest.mark.parametrize(
    ("levels", "more"), [([4] * 15 + [2] * 5, True), ([4] * 15 + [2, 2, 2, 2, 1], False), ([0] * 20, False)]
)
def test_a_second_batch_where_the_first_ends_relevant(levels: list[int], more: bool) -> None:
    assert needs_second_batch(levels) is more


def test_a_batch_too_short_to_judge() -> None:
    with pytest.raises(InvalidValue, match="at least 5"):
        needs_second_batch([1, 2])


def annotations(captions: list[str]) -> Annotations:
    found = Collector("test")
    found.add_video("v", 100.0)
    for place, caption in enumerate(captions):
        found.add("v", place, place + 1, caption)
    return found.made()


def test_pseudo_training_set() -> None:
    captions = ["a man sits", "a man stands", "a man sits", "a dog barks"]
    embeddings = unit(4, 3)
    embeddings[2] = embeddings[0]
    entries = pseudo_training_set(annotations(captions), embeddings, 2, held_out=["a dog barks"])
    assert [entry["query"] for entry in entries] == ["a man sits", "a man stands"]
    first = entries[0]["relevant_moment"]
    assert [moment["caption"] for moment in first] == ["a man sits", "a man sits"]
    assert [moment["similarity"] for moment in first] == [1.0, 1.0]
    assert first[1]["timestamp"] == [2.0, 3.0] and first[1]["duration"] == 100.0
    with pytest.raises(InvalidValue, match="give one each"):
        pseudo_training_set(annotations(captions), embeddings[:2], 2)
    with pytest.raises(InvalidValue, match="held_out 'a dog barks': a single text; give a list"):
        pseudo_training_set(annotations(captions), embeddings, 2, held_out="a dog barks")


def test_blanks_around_a_held_out_text_do_not_matter() -> None:
    """Captions have lost theirs; in pair files of others, texts may have some."""
    entries = pseudo_training_set(
        annotations(["a man sits ", "a dog barks"]), unit(2, 3), 1, held_out=["a man sits "]
    )
    assert [entry["query"] for entry in entries] == ["a dog barks"]
    others = (["a dog barks ", "a cat"], unit(2, 4))
    entries = pseudo_training_set(annotations(["a"]), unit(1, 3), 1, queries=others, held_out=["a dog barks"])
    assert [entry["query"] for entry in entries] == ["a cat"]


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 12), st.integers(0, 99))
def test_queries_and_pool_may_differ(pool: int, count: int, top: int, seed: int) -> None:
    """Each different query with the best of the pool, whether a caption is held out or not."""
    captions = [f"c{place % 20}" for place in range(pool)]
    queries = [f"c{place % 25}" for place in range(count)]
    vectors = unit(25, seed)
    rows, asked_rows = (np.stack([vectors[int(text[1:])] for text in texts]) for texts in (captions, queries))
    entries = pseudo_training_set(
        annotations(captions), rows, top, queries=(queries, asked_rows), held_out=["c3", "c24"]
    )
    assert [entry["query"] for entry in entries] == [
        q for q in dict.fromkeys(queries) if q not in ("c3", "c24")
    ]
    for entry in entries:
        exact = np.sort(rows @ vectors[int(entry["query"][1:])])[::-1][:top]
        found = [moment["similarity"] for moment in entry["relevant_moment"]]
        np.testing.assert_allclose(found, exact, atol=2e-6)
    with pytest.raises(InvalidValue, match="queries: give one each"):
        pseudo_training_set(annotations(captions), rows, top, queries=(queries, asked_rows[1:]))
