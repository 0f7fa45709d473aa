"""An index is built of vectors that come block by block, and never has all of them in memory."""

from __future__ import annotations

import errno
import os
import tempfile
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import faiss  # noqa: F401 - else its import counts as memory of the first index that is measured
import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.files import file_rows
from moviola.index import BACKENDS, FileRows, Index, load_index, rows_in_file, save_index
from moviola.library.derived import indexes

DIM, COUNT, BLOCK = 128, 40_000, 500
WHOLE = 4 * DIM * COUNT
"""Bytes of all vectors in single precision."""


def vectors_of(first: int, count: int) -> NDArray[np.float32]:
    """Vectors (count, DIM) float32 of length 1, about thirty middles."""
    middles = np.random.default_rng(99).normal(size=(30, DIM))
    generator = np.random.default_rng(first)
    rows = middles[generator.integers(0, 30, count)] + 0.5 * generator.normal(size=(count, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def parts(count: int = COUNT) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    for first in range(0, count, BLOCK):
        yield np.arange(first, first + BLOCK, dtype=np.int64), vectors_of(first, BLOCK)


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moviola.files.array_file._ROWS_AT_ONCE", BLOCK)
    for module in ("contract", "coded_lists", "reranked"):
        monkeypatch.setattr(f"moviola.index.{module}.ROWS_AT_ONCE", BLOCK)
    monkeypatch.setattr("moviola.index.coded_lists._SAMPLE_OF_CODES", 1024)
    monkeypatch.setattr("moviola.index.coded_lists._SAMPLE_OF_LIST", 32)


def most_bytes(do: Callable[[], Any]) -> int:
    """How much more memory of Python and NumPy was in use at once while something was done."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("name", ["flat", "reranked"])
def test_building_has_a_sample_and_a_block_in_memory(name: str) -> None:
    index = BACKENDS[name](DIM)

    def build() -> None:
        with rows_in_file(parts(), DIM, np.float32) as (ids, rows):
            index.build(ids, rows)

    own = WHOLE if name == "flat" else 0  # all vectors, as they are
    assert own <= most_bytes(build) < own + WHOLE / 4
    assert len(index) == COUNT
    np.testing.assert_array_equal(index.search(vectors_of(0, BLOCK)[:3], 1)[1][:, 0], [0, 1, 2])


@pytest.mark.usefixtures("_small_blocks")
def test_sorting_changes_in_has_a_sample_and_a_block_in_memory(tmp_path: Path) -> None:
    index = BACKENDS["reranked"](DIM)
    with rows_in_file(parts(), DIM, np.float32) as (ids, rows):
        index.build(ids, rows)
    index.remove(np.arange(700, dtype=np.int64))
    index.add(np.arange(COUNT, COUNT + 300, dtype=np.int64), vectors_of(COUNT, 300))
    assert most_bytes(lambda: index.write(tmp_path / "index")) < WHOLE / 4
    again = BACKENDS["reranked"].read(tmp_path / "index")
    np.testing.assert_array_equal(again.sorted_ids(), np.arange(700, COUNT + 300))
    np.testing.assert_array_equal(again.search(vectors_of(COUNT, 300)[:2], 1)[1][:, 0], [COUNT, COUNT + 1])


@pytest.mark.usefixtures("_small_blocks")
def test_publishing_what_is_new_has_little_of_the_rest_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a large index was read, learnt from and written again."""
    monkeypatch.setattr("moviola.index.files._WRITTEN_WHOLE_BYTES", 1)
    index = BACKENDS["reranked"](DIM)
    with rows_in_file(parts(), DIM, np.float32) as (ids, rows):
        index.build(ids, rows)
    save_index(index, tmp_path, "segments", backend="reranked", tag="")
    before = sum(path.stat().st_size for path in tmp_path.iterdir())

    def publish(first: int, new: NDArray[np.float32]) -> None:
        (again, _) = load_index(tmp_path, "segments", BACKENDS)  # type: ignore[misc]
        again.remove(np.arange(first // 1000, dtype=np.int64))
        again.extend(np.arange(first, first + len(new)), new)
        save_index(again, tmp_path, "segments", backend="reranked", tag="")

    few, many = vectors_of(COUNT, 300), vectors_of(COUNT + 300, 5000)
    assert most_bytes(lambda: publish(COUNT, few)) < WHOLE / 10
    assert most_bytes(lambda: publish(COUNT + 300, many)) < WHOLE / 3
    written = sum(path.stat().st_size for path in tmp_path.iterdir()) - before
    assert written < before / 4


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_vectors_in_a_file_make_the_same_index_as_in_memory(name: str, tmp_path: Path) -> None:
    ids, vectors = (np.concatenate(column) for column in zip(*parts(3000), strict=True))
    of_array, of_file = BACKENDS[name](DIM), BACKENDS[name](DIM)
    of_array.build(ids[::-1], vectors[::-1])
    with rows_in_file(parts(3000), DIM, np.float32) as (filed, rows):
        of_file.build(filed[::-1], Backwards(rows))
    for index, file in ((of_array, "array"), (of_file, "file")):
        index.write(tmp_path / file)
    assert (tmp_path / "array").read_bytes() == (tmp_path / "file").read_bytes()


class Backwards:
    """Rows in a file from the last to the first: ids that fall."""

    def __init__(self, rows: FileRows) -> None:
        self._rows, self.shape = rows, rows.shape

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return self._rows[np.arange(len(self))[::-1][rows]]


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_what_cannot_be_built_changes_nothing(name: str) -> None:
    index = BACKENDS[name](DIM)
    ids, vectors = next(parts())
    index.build(ids, vectors)
    vectors = vectors.copy()
    vectors[-1] *= 2
    with pytest.raises(ValueError, match="normalise"):
        index.build(ids, vectors)
    assert len(index) == BLOCK


def test_a_library_makes_its_vectors_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all pieces that were made, no more than those of two parts are there at once."""
    living: list[weakref.ref[NDArray[np.float32]]] = []
    most = 0

    def piece(store: object, name: str, video: int) -> NDArray[np.float32]:
        nonlocal most
        vectors = vectors_of(video, 40)
        living.append(weakref.ref(vectors))
        most = max(most, sum(ref() is not None for ref in living))
        return vectors

    monkeypatch.setattr(indexes, "piece_vectors", piece)
    monkeypatch.setattr(indexes, "_PIECES_AT_ONCE", 100)
    videos: Any = {row: row for row in range(50)}
    store: Any = Mock()
    index: Index = indexes._built(store, "segments", videos, BACKENDS["reranked"](DIM))
    assert len(index) == 50 * 40
    assert most <= 4


@pytest.mark.parametrize("read", [file_rows.read_at, file_rows._read_after_seeking])
def test_rows_are_read_with_and_without_reading_at_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    monkeypatch.setattr(file_rows, "read_at", read)
    path, kept = tmp_path / "rows", np.arange(40, dtype=np.float32).reshape(10, 4)
    path.write_bytes(b"head" + kept.tobytes())
    rows = FileRows(os.open(path, os.O_RDONLY), "rows", 4, (10, 4), np.dtype(np.float32))
    np.testing.assert_array_equal(rows[2:9], kept[2:9])
    np.testing.assert_array_equal(rows[np.array([9, 0, 5])], kept[[9, 0, 5]])


def test_a_file_that_became_shorter_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(np.zeros((10, 4), np.float32).tobytes())
    rows = FileRows(os.open(path, os.O_RDONLY), "rows", 0, (10, 4), np.dtype(np.float32))
    assert rows[7:20].shape == (3, 4)
    assert rows[5:5].shape == (0, 4)
    os.truncate(path, 80)
    with pytest.raises(SegmentIndexError, match="shorter"):
        rows[2:8]


def test_no_room_for_temporary_vectors_names_their_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own folder was named, in which there may be room."""

    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with (
        pytest.raises(SegmentIndexError, match=rf"{tempfile.gettempdir()}: .*No space left.*TMPDIR"),
        rows_in_file(parts(), DIM, np.float32),
    ):
        pass
