"""Exact search: which sums it makes, which vectors it gives where many are as near, and its files."""

from __future__ import annotations

import struct
from pathlib import Path

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.index import FlatIndex
from moviola.index.contract import ROWS_AT_ONCE

DIM, COUNT = 37, ROWS_AT_ONCE + 300
"""A size that no register divides, and more vectors than a block has."""


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def stored() -> NDArray[np.float32]:
    return unit(np.random.default_rng(0).normal(size=(COUNT, DIM)))


def flat(ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> FlatIndex:
    index = FlatIndex(vectors.shape[1])
    index.add(ids, vectors)
    return index


def scores_of(index: FlatIndex, query: NDArray[np.float32], allowed: NDArray[np.int64]) -> dict[int, float]:
    scores, ids = index.search(query, len(index), allowed=allowed)
    return dict(zip(ids[0].tolist(), scores[0].tolist(), strict=True))


def test_a_vector_has_one_score_whatever_else_is_compared_and_where_it_lies(
    stored: NDArray[np.float32], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit: in memory and mapped, where vectors lie at odd places; among all, many and few that are
    allowed, and alone. Else a filter, or a larger library, would change scores and with them the order.
    """
    ids, query = np.arange(COUNT, dtype=np.int64), stored[7:8]
    index = flat(ids, stored)
    index.write(tmp_path / "index")
    monkeypatch.setattr("moviola.index.flat._MAPPED_FROM_BYTES", 0)
    mapped = FlatIndex.read(tmp_path / "index")
    every = scores_of(index, query, ids)
    assert len(every) == COUNT and every[7] == max(every.values())
    for which in (index, mapped):
        for allowed in (ids, ids[1:], ids[::2], ids[::9], ids[7:8], ids[-1:]):
            assert scores_of(which, query, allowed) == {one: every[one] for one in allowed.tolist()}
    np.testing.assert_allclose([every[one] for one in ids.tolist()], stored @ query[0], atol=1e-6)


def test_of_vectors_that_are_as_near_those_of_smaller_ids_are_given() -> None:
    """Whichever were added first: what a partition happens to choose depends on the CPU."""
    ids = np.random.default_rng(0).permutation(1000).astype(np.int64)
    rows = np.repeat(np.eye(3, dtype=np.float32)[1:2], 1000, axis=0)
    rows[ids == 999] = np.eye(3, dtype=np.float32)[0]
    index = flat(ids, rows)
    query = unit(np.array([[2.0, 1.0, 0.0]]))
    assert index.search(query, 5)[1].tolist() == [[999, 0, 1, 2, 3]]
    assert index.search(query, 3, allowed=np.arange(500, 600))[1].tolist() == [[500, 501, 502]]


def test_its_files_are_those_of_faiss_in_both_directions(stored: NDArray[np.float32], tmp_path: Path) -> None:
    """Libraries were written by faiss; byte by byte, so that no digest differs."""
    ids = np.arange(COUNT, dtype=np.int64)[::-1] * 3
    theirs = faiss.IndexIDMap2(faiss.IndexFlatIP(DIM))
    theirs.add_with_ids(stored, ids)  # type: ignore[call-arg]
    faiss.write_index(theirs, str(tmp_path / "theirs"))
    index = FlatIndex.read(tmp_path / "theirs")
    np.testing.assert_array_equal(index.ids(), ids)
    np.testing.assert_array_equal(index.vectors_of(ids), stored)
    index.write(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_adding_and_removing_in_any_order_keeps_vectors_with_their_ids(stored: NDArray[np.float32]) -> None:
    """Room for more is made ahead, and ids that come back are not in order."""
    index, left = FlatIndex(DIM), {}
    draw = np.random.default_rng(1)
    for _ in range(30):
        ids = draw.choice(COUNT, 40, replace=False).astype(np.int64)
        index.remove(ids[:20])
        fresh = ids[~index.has(ids)]
        index.add(fresh, stored[fresh])
        left = {one: one for one in {*left, *ids.tolist()} if one not in ids[:20] or one in fresh}
    there = np.array(sorted(left), np.int64)
    np.testing.assert_array_equal(index.sorted_ids(), there)
    np.testing.assert_array_equal(index.vectors_of(there), stored[there])
    assert index.search(stored[there], 1)[1][:, 0].tolist() == there.tolist()


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (0, b"IwFl", "not a flat index"),
        (4, struct.pack("<i", 0), "damaged"),
        (4, struct.pack("<i", -37), "damaged"),
        (8, struct.pack("<q", 1 << 40), "damaged"),
        (37, b"IxF2", "damaged"),
        (74, struct.pack("<Q", 1 << 60), "damaged"),
        (-8 * 5 - 8, struct.pack("<Q", 4), "damaged"),
    ],
)
def test_a_head_that_says_more_than_the_file_holds_is_noticed(
    tmp_path: Path, place: int, value: bytes, said: str
) -> None:
    """Before anything is read by it: a length of 2^60 would ask for that much memory."""
    path = tmp_path / "index"
    flat(np.arange(5, dtype=np.int64), np.eye(37, dtype=np.float32)[:5]).write(path)
    data = bytearray(path.read_bytes())
    place %= len(data)
    data[place : place + len(value)] = value
    path.write_bytes(data)
    with pytest.raises(SegmentIndexError, match=f"{said}.*rebuild"):
        FlatIndex.read(path)
    path.write_bytes(data[:30])
    with pytest.raises(SegmentIndexError, match="rebuild"):
        FlatIndex.read(path)
