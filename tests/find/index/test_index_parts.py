"""An index in immutable parts: in any order of publications it answers as one that is built at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.files.parts import merges
from moviola.index import BACKENDS, Index, TrainedIndex, coded_lists, load_index, parts, reranked, save_index
from moviola.index import files as index_files

DIM, NAME = 16, "segments"


def vectors(count: int, seed: int, dim: int = DIM) -> NDArray[np.float32]:
    """Vectors of 12 dimensions in ``dim``, on one side of the sphere."""
    turned = np.random.default_rng(99).normal(size=(12, dim))
    rows = np.random.default_rng(seed).normal(size=(count, 12)) @ turned + 1
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        yield


def make_small(patch: pytest.MonkeyPatch, first: int = 40, largest: int = 500) -> None:
    """Have groups of some ten vectors, and files that are never written whole for being small."""
    patch.setattr(TrainedIndex, "LEAST", 40)
    for module in (parts, reranked):
        patch.setattr(module, "FIRST", first)
        patch.setattr(module, "LARGEST", largest)
    patch.setattr(index_files, "_WRITTEN_WHOLE_BYTES", 1)
    patch.setattr(index_files, "_DELTAS", 3)
    patch.setattr("moviola.index.contract._FEW_AT_LEAST", first)
    patch.setattr("moviola.index.flat._FEW_AT_LEAST", first)


def opened(folder: Path, thorough: bool = True) -> Index:
    loaded = load_index(folder, NAME, BACKENDS, thorough=thorough)
    assert loaded is not None
    return loaded[0]


def publish(index: Index, folder: Path, kind: str) -> None:
    save_index(index, folder, NAME, backend=kind, tag="")


Content = dict[int, NDArray[np.float32]]


def require_same(index: Index, content: Content, kind: str) -> None:
    """All is there, once, with the scores of an index that was built of it."""
    ids = np.array(sorted(content), np.int64)
    np.testing.assert_array_equal(np.sort(index.ids()), ids)
    np.testing.assert_array_equal(np.sort(np.concatenate(list(index.id_parts()))), ids)
    assert len(index) == len(ids)
    fresh, queries = BACKENDS[kind](DIM), vectors(3, 10**6)
    if not len(ids):
        return
    fresh.build(ids, np.stack([content[number] for number in ids.tolist()]))
    for allowed in (None, ids[::3]):
        depth = len(ids) if allowed is None else len(allowed)
        mine, theirs = (one.search(queries, depth, allowed=allowed) for one in (index, fresh))
        order = [np.argsort(found[1], axis=1) for found in (mine, theirs)]
        np.testing.assert_array_equal(
            *(
                np.take_along_axis(found[1], at, axis=1)
                for found, at in zip((mine, theirs), order, strict=True)
            )
        )
        scores = (
            np.take_along_axis(found[0], at, axis=1) for found, at in zip((mine, theirs), order, strict=True)
        )
        if kind == "flat":
            np.testing.assert_array_equal(*scores)
        else:  # later vectors in single precision until there is something to learn from
            np.testing.assert_allclose(*scores, atol=2e-3)


class _Killed(BaseException):
    """The end of a process."""


def killed(do: Callable[[], None], step: int) -> bool:
    """Do something that ends before one of its steps that change names of files; whether it got that far."""
    left = step

    def stopping(change: Any) -> Any:
        def changed(*inputs: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise _Killed
            return change(*inputs, **options)

        return changed

    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "unlink"):
            patch.setattr(Path, name, stopping(getattr(Path, name)))
        try:
            do()
        except _Killed:
            return True
    return False


CHANGES = st.tuples(
    st.sampled_from((1, 7, 30, 45, 130)),  # added
    st.sampled_from((0, 0, 3, 40)),  # removed
    st.integers(0, 4),  # of those, come again as others
    st.one_of(st.none(), st.integers(0, 9)),  # the step at which the process is killed
)


@settings(deadline=None, max_examples=8)
@given(changes=st.lists(CHANGES, min_size=4, max_size=14), seed=st.integers(0, 1000))
@pytest.mark.parametrize("kind", ["flat", "ivf", "reranked"])
@pytest.mark.usefixtures("_small")
def test_any_sequence_of_changes_and_kills_answers_as_a_new_index(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    changes: list[tuple[int, int, int, int | None]],
    seed: int,
) -> None:
    """Among others: a vector that was replaced is found as it was, one that was removed comes back by a
    merge, deltas are joined in a wrong order, a file is deleted that a manifest still names.
    """
    folder, generator = tmp_path_factory.mktemp("index"), np.random.default_rng(seed)
    content: Content = dict(enumerate(vectors(70, seed)))
    first = BACKENDS[kind](DIM)
    first.build(np.arange(70), np.stack(list(content.values())))
    publish(first, folder, kind)
    for number, (added, removed, again, step) in enumerate(changes):
        index, after = opened(folder, thorough=bool(number % 2)), dict(content)
        gone = generator.permutation(sorted(content))[:removed].astype(np.int64)
        index.remove(gone)
        back, new = gone[:again], 10_000 * (number + 1) + np.arange(added, dtype=np.int64)
        for one in gone.tolist():
            del after[one]
        for ids, put in ((back, index.add), (new, index.extend)):
            rows = vectors(len(ids), seed + number * 7 + len(ids))
            put(ids, rows)
            after |= dict(zip(ids.tolist(), rows, strict=True))
        require_same(index, after, kind)

        def write(index: Index = index) -> None:
            publish(index, folder, kind)

        if step is None:
            write()
            require_same(index, after, kind)
        elif killed(write, step) and set(opened(folder).ids().tolist()) != set(after):
            after = content
        content = after
        require_same(opened(folder), content, kind)


@pytest.mark.usefixtures("_small")
def test_a_publication_writes_less_than_twice_what_it_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of batches that each could be a group of their own; the whole was written again with each of them."""
    dim, batch = 128, 500
    make_small(monkeypatch, first=400, largest=1 << 20)
    grown, whole, written = tmp_path / "grown", tmp_path / "whole", 0
    for number in range(24):
        index: Index = opened(grown) if number else BACKENDS["reranked"](dim)
        there = {path.name for path in grown.iterdir()} if number else set()
        ids = np.arange(number * batch, (number + 1) * batch, dtype=np.int64)
        (index.extend if number else index.build)(ids, vectors(batch, number, dim))
        publish(index, grown, "reranked")
        written += sum(path.stat().st_size for path in grown.iterdir() if path.name not in there)
    index = BACKENDS["reranked"](dim)
    index.build(np.arange(24 * batch), np.concatenate([vectors(batch, number, dim) for number in range(24)]))
    publish(index, whole, "reranked")
    assert written < 2 * sum(path.stat().st_size for path in whole.iterdir())
    assert len(opened(grown)) == 24 * batch
    assert len(list(grown.glob("*.faiss"))) < 48


@pytest.mark.usefixtures("_small")
def test_a_reader_keeps_the_parts_that_it_has_opened(tmp_path: Path) -> None:
    """Merges delete files under it; and of a published file nothing changes."""
    index = BACKENDS["reranked"](DIM)
    index.build(np.arange(100), vectors(100, 0))
    publish(index, tmp_path, "reranked")
    reader, queries = opened(tmp_path), vectors(3, 5)
    before, files = reader.search(queries, 20), {path: path.read_bytes() for path in tmp_path.glob("*.faiss")}
    for number in range(1, 12):
        writer = opened(tmp_path)
        writer.extend(np.arange(number * 100, number * 100 + 60), vectors(60, number))
        writer.remove(np.arange(9 * number, 9 * number + 9))
        publish(writer, tmp_path, "reranked")
        assert all(path.read_bytes() == data for path, data in files.items() if path.exists())
    assert not any(path.exists() for path in files)
    for mine, theirs in zip(reader.search(queries, 20), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("suffix", ["faiss", "gone", "delta"])
@pytest.mark.parametrize("how", ["flipped", "cut", "missing"])
@pytest.mark.usefixtures("_small")
def test_damage_of_any_file_is_noticed(tmp_path: Path, suffix: str, how: str) -> None:
    index = BACKENDS["reranked"](DIM)
    index.build(np.arange(100), vectors(100, 0))
    publish(index, tmp_path, "reranked")
    for number in (1, 2):
        index.remove(np.arange(number))
        index.extend(np.arange(number * 100, number * 100 + 60), vectors(60, number))
        publish(index, tmp_path, "reranked")
    index.remove(np.array([50]))
    publish(index, tmp_path, "reranked")
    path = sorted(tmp_path.glob(f"*.{suffix}"))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink() if how == "missing" else path.write_bytes(data if how == "flipped" else data[:-1])
    with pytest.raises(SegmentIndexError, match="rebuild"):
        opened(tmp_path)


@settings(deadline=None, max_examples=200)
@given(sizes=st.lists(st.integers(1, parts.LARGEST), max_size=60))
def test_merges_leave_few_groups_of_a_size(sizes: list[int]) -> None:
    """Each once; of each class fewer than the fan-out; none that is full grows, none beyond all bounds."""
    bundles = merges(sizes, parts.FIRST, parts.FAN_OUT, parts.LARGEST)
    assert sorted(place for bundle in bundles for place in bundle) == list(range(len(sizes)))
    merged = [sum(sizes[place] for place in bundle) for bundle in bundles]
    for bundle, size in zip(bundles, merged, strict=True):
        assert len(bundle) == 1 or size < 1.5 * parts.LARGEST
        assert len(bundle) == 1 or all(sizes[place] < parts.LARGEST / 2 for place in bundle)
    least, most = 1, parts.FIRST * parts.FAN_OUT
    while least < parts.LARGEST // 2:
        assert sum(least <= size < min(most, parts.LARGEST // 2) for size in merged) < parts.FAN_OUT
        least, most = most, most * parts.FAN_OUT


@pytest.mark.usefixtures("_small")
def test_an_index_of_format_1_goes_on(tmp_path: Path) -> None:
    """Its codes do not score as those of other groups: the first group that comes rewrites it."""
    index = BACKENDS["reranked"](DIM)
    index.build(np.arange(100), vectors(100, 0))
    old = tmp_path / "old"
    publish(index, old, "reranked")
    (path,) = old.glob("*.faiss")
    path.write_bytes(path.read_bytes().replace(b'"mean"', b'"were"'))
    written = opened_as_first(path)
    written.extend(np.arange(200, 260), vectors(60, 2))
    publish(written, tmp_path, "reranked")
    shutil.rmtree(old)
    again = opened(tmp_path)
    assert len(again) == 160 and len(list(tmp_path.glob("*.faiss"))) == 1


def opened_as_first(path: Path) -> Index:
    index = BACKENDS["reranked"].read(path)
    assert not index._main.groups[0].comparable  # type: ignore[attr-defined]
    return index


@pytest.mark.parametrize("at_once", [1, 7, 4096, 1 << 20])
def test_codes_are_written_slice_by_slice(at_once: int) -> None:
    """A second copy of the codes of a million vectors was half of the memory that a merge took; a slice that
    begins or ends inside a list, or in the room behind it, must have the same bytes.
    """
    rows = vectors(300, 3)
    index = coded_lists._index(np.ascontiguousarray(rows[:4]))
    index.pq.train(rows)
    index.add(rows)
    packed = coded_lists._PackedLists(index)
    assert not isinstance(packed, np.ndarray) and int(packed.table[:, 0].sum()) == len(rows)
    whole = packed[: len(packed)]
    parts_read = [packed[begin : begin + at_once] for begin in range(0, len(packed), at_once)]
    assert max(map(len, parts_read)) <= at_once and np.concatenate(parts_read).tobytes() == whole.tobytes()
    numbers = []
    for size, room, begin in packed.table.tolist():
        at = begin + room * index.code_size
        numbers += whole[at : at + 8 * size].view(np.int64).tolist()
    assert sorted(numbers) == list(range(len(rows)))
