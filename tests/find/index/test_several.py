"""Several indexes searched as one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.errors import InvalidValue, SegmentIndexError
from moviola.index import FlatIndex
from moviola.index.several import SeveralIndexes

FIRST = 1 << 40


def _vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((count, 8)).astype(np.float32)
    found: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return found


def _indexes(counts: list[int]) -> tuple[SeveralIndexes, FlatIndex]:
    """Several, and one that has all of their vectors under the ids that these have there."""
    whole, parts, begin = FlatIndex(8), [], 0
    vectors = _vectors(sum(counts))
    for place, count in enumerate(counts):
        part, own = FlatIndex(8), vectors[begin : begin + count]
        part.add(np.arange(count), own)
        whole.add(np.arange(count) + place * FIRST, own)
        parts.append(part)
        begin += count
    return SeveralIndexes(parts, [place * FIRST for place in range(len(counts))]), whole


@settings(max_examples=40)
@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=4), k=st.integers(1, 12), data=st.data())
def test_answers_are_those_of_one_index(counts: list[int], k: int, data: st.DataObject) -> None:
    """Ids, scores and order, over all and over chosen ids, some of them in no part or in parts that are
    empty.
    """
    several, whole = _indexes(counts)
    queries = _vectors(3, seed=1)
    allowed = None
    if data.draw(st.booleans()):
        ids = [*whole.ids().tolist(), 5 * FIRST, 77]
        allowed = np.array(data.draw(st.lists(st.sampled_from(ids), unique=True)), np.int64)
        allowed.flags.writeable = False
    for _ in range(2):  # what was divided once is kept
        for own, its in zip(
            several.search(queries, k, allowed=allowed),
            whole.search(queries, k, allowed=allowed),
            strict=True,
        ):
            np.testing.assert_array_equal(own, its)
    assert len(several) == len(whole) == several.stats().vectors
    np.testing.assert_array_equal(several.sorted_ids(), whole.sorted_ids())


def test_it_is_only_read() -> None:
    """What belongs to one index is refused."""
    several, _ = _indexes([2, 3])
    with pytest.raises(InvalidValue, match="searched as one"):
        several.add(np.array([9]), _vectors(1))
    with pytest.raises(InvalidValue, match="searched as one"):
        several.remove(np.array([1]))
    with pytest.raises(SegmentIndexError, match="a file each"):
        several.write("file")  # type: ignore[arg-type]
