"""What the types that learn from their vectors must do once they have learnt."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.errors import InvalidValue, SegmentIndexError
from moviola.index import BACKENDS, FlatIndex, Index, RerankedIndex, load_index, parts, save_index
from moviola.index import files as index_files

DIM, COUNT = 32, 3000
LEARNT = sorted(BACKENDS.keys() - {"flat"})
RECALL = {"ivf": 0.9, "ivfpq": 0.6, "reranked": 0.99}
"""Of the 50 nearest, and of fewer: ``ivfpq`` has codes alone."""
TOLERANCE = {"ivf": 1e-5, "ivfpq": 0.2, "reranked": 1e-3}
"""Of scores: whole vectors, codes, half precision."""


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def clustered(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors about a few middles, all on one side of the sphere, as pictures are."""
    generator = np.random.default_rng(seed)
    middles = np.random.default_rng(99).normal(size=(40, DIM))
    return unit(middles[generator.integers(0, 40, count)] + 0.5 * generator.normal(size=(count, DIM)) + 2.0)


def far_off(vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Queries that lie off all vectors, as texts do: most of them is one direction that separates nothing."""
    generator = np.random.default_rng(7)
    mean = vectors.mean(axis=0)
    off = generator.normal(size=DIM)
    off -= off @ mean * mean / (mean @ mean)
    towards = unit(vectors[:count] - mean) + 0.3 * unit(generator.normal(size=(count, DIM)))
    return unit(0.3 * towards + 0.9 * off / np.linalg.norm(off))


@pytest.fixture(scope="module")
def stored() -> NDArray[np.float32]:
    return clustered(COUNT)


@pytest.fixture(params=LEARNT)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ids_of(count: int) -> NDArray[np.int64]:
    """Ids with gaps, as packed ids of segments have."""
    return np.arange(count, dtype=np.int64) * 3 + 5


def built(name: str, vectors: NDArray[np.float32]) -> Index:
    index = BACKENDS[name](DIM)
    index.build(ids_of(len(vectors)), vectors)
    return index


def exact(
    vectors: NDArray[np.float32], ids: NDArray[np.int64], queries: NDArray[np.float32], k: int
) -> NDArray[np.int64]:
    flat = FlatIndex(DIM)
    flat.add(ids, vectors)
    return flat.search(queries, k)[1]


def recall(found: NDArray[np.int64], wanted: NDArray[np.int64]) -> float:
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, wanted, strict=True)]))


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_nearly_all_of_the_nearest_are_found(name: str, kind: str, stored: NDArray[np.float32]) -> None:
    queries = clustered(20, seed=3) if kind == "pictures" else far_off(stored, 20)
    index = built(name, stored)
    scores, ids = index.search(queries, 50)
    assert recall(ids, exact(stored, ids_of(COUNT), queries, 50)) >= RECALL[name]
    assert np.all(np.diff(scores, axis=1) <= 0)
    cosines = np.take_along_axis(queries @ stored.T, (ids - 5) // 3, axis=1)
    np.testing.assert_allclose(scores, cosines, atol=TOLERANCE[name])


def test_one_query_finds_what_it_finds_among_many(name: str, stored: NDArray[np.float32]) -> None:
    queries = clustered(40, seed=4)
    index = built(name, stored)
    together = index.search(queries, 10)[1]
    alone = np.concatenate([index.search(query[None], 10)[1] for query in queries])
    assert recall(alone, together) > 0.99


@pytest.fixture(scope="module")
def many_lists(stored: NDArray[np.float32]) -> Index:
    """Re-ranked codes in many short lists, some vectors equal, some gone and some that came later."""
    vectors = stored[:2900].copy()
    vectors[[10, 500, 1500, 2600]] = vectors[2000]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moviola.index.coded_lists._VECTORS_OF_LIST", 100)
        index = built("reranked", vectors)
    index.remove(ids_of(COUNT)[100:130])
    index.add(ids_of(COUNT)[2900:], stored[2900:])
    return index


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 60),
    depth=st.integers(1, 300),
    probes=st.sampled_from((1, 4, 32)),
    candidates=st.integers(1, 3),
    filtered=st.booleans(),
    cells=st.sampled_from((50, 1 << 20)),
)
def test_among_many_a_query_finds_the_same_to_the_bit(
    many_lists: Index,
    stored: NDArray[np.float32],
    seed: int,
    count: int,
    depth: int,
    probes: int,
    candidates: int,
    filtered: bool,
    cells: int,
) -> None:
    """However far each has to look, with however little memory at once."""
    generator = np.random.default_rng(seed)
    queries = np.concatenate([clustered(count, seed), far_off(stored, 3), stored[2000:2001]])
    allowed = generator.permutation(ids_of(COUNT))[:600] if filtered else None
    many_lists.parameters = {"probes": probes, "candidates": candidates}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moviola.index.reranked._COMPARED", 10)
        patch.setattr("moviola.index.reranked._LEAST_CANDIDATES", 1)
        alone = [many_lists.search(query[None], depth, allowed=allowed) for query in queries]
        patch.setattr("moviola.index.lookups._CELLS_AT_ONCE", cells)
        scores, ids = many_lists.search(queries, depth, allowed=allowed)
    np.testing.assert_array_equal(scores, np.concatenate([one[0] for one in alone]))
    np.testing.assert_array_equal(ids, np.concatenate([one[1] for one in alone]))


def test_equal_vectors_come_by_their_ids(stored: NDArray[np.float32]) -> None:
    vectors = stored.copy()
    vectors[[10, 500, 1500, 2900]] = vectors[2000]
    index = built("reranked", vectors)
    scores, ids = index.search(vectors[2000:2001], 5)
    np.testing.assert_array_equal(ids[0], ids_of(COUNT)[[10, 500, 1500, 2000, 2900]])
    assert len(np.unique(scores)) == 1


def test_depth_beyond_the_content_gives_all(name: str, stored: NDArray[np.float32]) -> None:
    index = built(name, stored)
    found = index.search(clustered(2, seed=5), COUNT + 10)[1]
    for row in found:
        np.testing.assert_array_equal(np.sort(row), ids_of(COUNT))


def test_filters_act_inside_the_search(
    name: str, stored: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that are allowed and wanted come back, however far from the query they lie."""
    monkeypatch.setattr("moviola.index.reranked._COMPARED", 10)
    index, queries = built(name, stored), far_off(stored, 5)
    nearest = exact(stored, ids_of(COUNT), queries[:1], COUNT)[0]
    for allowed in (nearest[-400:], ids_of(COUNT)[::2], nearest[-3:]):
        found = index.search(queries, 20, allowed=np.append(allowed, 1))[1]
        assert found.shape == (5, min(20, len(allowed)))
        assert np.isin(found, allowed).all()
        wanted = np.sort(allowed)
        truth = exact(stored[(wanted - 5) // 3], wanted, queries, 20)
        assert recall(found, truth) >= RECALL[name]


def test_each_of_a_few_that_are_allowed_has_its_score(name: str, stored: NDArray[np.float32]) -> None:
    """Of what was learnt and of what came since, as exactly as the type keeps vectors."""
    index, queries = built(name, stored), far_off(stored, 30)
    newer = clustered(4, seed=3)
    index.add(ids_of(COUNT + 4)[COUNT:], newer)
    everything = np.concatenate([stored, newer])
    chosen = np.r_[0:COUNT:400, COUNT : COUNT + 4]
    scores, found = index.search(queries, len(chosen), allowed=ids_of(COUNT + 4)[chosen])
    cosines = np.take_along_axis(scores, np.argsort(found, axis=1), axis=1)
    np.testing.assert_allclose(cosines, queries @ everything[chosen].T, atol=TOLERANCE[name])


def test_removals_and_additions_count_at_once(name: str, stored: NDArray[np.float32]) -> None:
    index = built(name, stored[:2500])
    best = index.search(stored[:1], 10)[1][0]
    assert index.remove(best[:6]) == 6
    assert not np.isin(index.search(stored[:1], 10)[1], best[:6]).any()
    index.add(best[:1], stored[:1])
    index.add(ids_of(COUNT)[2500:], stored[2500:])
    assert index.search(stored[:1], 1)[1][0, 0] == best[0]
    found = index.search(stored[2600:2605], 1)[1][:, 0]
    np.testing.assert_array_equal(found, ids_of(COUNT)[2600:2605])
    assert len(index) == COUNT - 5
    assert index.stats().removed == 6
    assert index.stats().added == 501
    np.testing.assert_array_equal(np.sort(index.ids()), index.sorted_ids())
    with pytest.raises(InvalidValue, match="present already"):
        index.add(ids_of(COUNT)[:1] + 3 * 400, stored[:1])


def test_written_and_read_it_answers_the_same(name: str, stored: NDArray[np.float32], tmp_path: Path) -> None:
    index, queries = built(name, stored), far_off(stored, 5)
    index.parameters = {key: values[0] for key, values in index.LADDERS.items()}
    save_index(index, tmp_path, "segments", backend=name, tag="")
    loaded = load_index(tmp_path, "segments", BACKENDS, thorough=True)
    assert loaded is not None
    assert loaded[0].parameters == index.parameters
    for mine, theirs in zip(index.search(queries, 20), loaded[0].search(queries, 20), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert loaded[0].stats() == index.stats()


def test_changes_are_sorted_in_when_the_whole_is_written(
    name: str, stored: NDArray[np.float32], tmp_path: Path
) -> None:
    save_index(built(name, stored[:2500]), tmp_path, "segments", backend=name, tag="")
    (index, _) = load_index(tmp_path, "segments", BACKENDS)  # type: ignore[misc]
    index.add(ids_of(COUNT)[2500:], stored[2500:])
    index.remove(ids_of(COUNT)[:100])
    save_index(index, tmp_path, "segments", backend=name, tag="")
    (again, _) = load_index(tmp_path, "segments", BACKENDS, thorough=True)  # type: ignore[misc]
    stats = again.stats()
    assert (stats.vectors, stats.added, stats.removed) == (COUNT - 100, 0, 0)
    queries = clustered(10, seed=6)
    wanted = exact(stored[100:], ids_of(COUNT)[100:], queries, 50)
    assert recall(again.search(queries, 50)[1], wanted) >= RECALL[name]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("kind", sorted(BACKENDS))
def test_of_a_large_index_only_changes_are_written(
    kind: str, stored: NDArray[np.float32], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that was killed before the manifest was renamed has changed nothing."""
    monkeypatch.setattr(index_files, "_WRITTEN_WHOLE_BYTES", 1)
    save_index(built(kind, stored[:2500]), tmp_path, "segments", backend=kind, tag="")
    (main,) = tmp_path.glob("*.faiss")
    before = main.stat().st_mtime_ns, (tmp_path / "segments.json").read_text()
    for step in range(2):  # each is a delta
        (index, _) = load_index(tmp_path, "segments", BACKENDS)  # type: ignore[misc]
        part = slice(2500 + 200 * step, 2700 + 200 * step)
        index.add(ids_of(COUNT)[part], stored[part])
        index.remove(ids_of(COUNT)[50 * step : 50 * step + 50])
        save_index(index, tmp_path, "segments", backend=kind, tag="")
    assert main.stat().st_mtime_ns == before[0]
    assert len(list(tmp_path.glob("*.delta"))) == 2
    (loaded, _) = load_index(tmp_path, "segments", BACKENDS)  # type: ignore[misc]
    for mine, theirs in zip(index.search(stored[:5], 20), loaded.search(stored[:5], 20), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(np.sort(loaded.ids()), ids_of(COUNT)[100:2900])
    (tmp_path / "segments.json").write_text(before[1])
    (old, _) = load_index(tmp_path, "segments", BACKENDS)  # type: ignore[misc]
    np.testing.assert_array_equal(np.sort(old.ids()), ids_of(2500))


def test_a_damaged_delta_is_noticed(
    stored: NDArray[np.float32], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_files, "_WRITTEN_WHOLE_BYTES", 1)
    index = built("flat", stored[:100])
    save_index(index, tmp_path, "segments", backend="flat", tag="")
    index.add(ids_of(COUNT)[100:110], stored[100:110])
    save_index(index, tmp_path, "segments", backend="flat", tag="")
    (delta,) = tmp_path.glob("*.delta")
    data = bytearray(delta.read_bytes())
    data[len(data) // 2] ^= 1
    delta.write_bytes(data)
    with pytest.raises(SegmentIndexError, match="rebuild"):
        load_index(tmp_path, "segments", BACKENDS)


@pytest.mark.parametrize("cut", [False, True])
def test_damage_of_a_mapped_file(
    name: str, cut: bool, stored: NDArray[np.float32], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a large file does not read it: a wrong length is noticed then, a wrong byte by ``thorough``."""
    monkeypatch.setattr(index_files, "_CHECKED_BYTES", 1)
    save_index(built(name, stored), tmp_path, "segments", backend=name, tag="")
    (path,) = tmp_path.glob("*.faiss")
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data[:-1] if cut else data)
    assert cut or load_index(tmp_path, "segments", BACKENDS) is not None
    with pytest.raises(SegmentIndexError, match="rebuild"):
        load_index(tmp_path, "segments", BACKENDS, thorough=not cut)


def test_a_header_that_names_no_array_is_noticed(stored: NDArray[np.float32], tmp_path: Path) -> None:
    save_index(built("reranked", stored), tmp_path, "segments", backend="reranked", tag="")
    (path,) = tmp_path.glob("*.faiss")
    path.write_bytes(path.read_bytes().replace(b'"list_of"', b'"list_if"', 1))
    with pytest.raises(SegmentIndexError, match="damaged index file"):
        RerankedIndex.read(path)


def test_a_manifest_of_an_earlier_version_opens(stored: NDArray[np.float32], tmp_path: Path) -> None:
    index = built("flat", stored[:50])
    save_index(index, tmp_path, "segments", backend="flat", tag="recipe")
    path = tmp_path / "segments.json"
    manifest = json.loads(path.read_text())
    old = {key: manifest[key] for key in ("backend", "dim", "tag")} | manifest["groups"][0][0]
    del old["size"]
    path.write_text(json.dumps(old))
    loaded = load_index(tmp_path, "segments", BACKENDS)
    assert loaded is not None
    assert loaded[1] == "recipe"
    np.testing.assert_array_equal(loaded[0].ids(), index.ids())


def test_a_mapped_flat_index_can_be_changed(
    stored: NDArray[np.float32], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviola.index.flat._MAPPED_FROM_BYTES", 1)
    index = built("flat", stored)
    save_index(index, tmp_path, "segments", backend="flat", tag="")
    (mapped, _) = load_index(tmp_path, "segments", BACKENDS)  # type: ignore[misc]
    for which in (index, mapped):
        which.remove(ids_of(COUNT)[:10])
        which.add(ids_of(COUNT)[:5], stored[:5])
    for mine, theirs in zip(index.search(stored[:5], 20), mapped.search(stored[:5], 20), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_an_index_that_cannot_be_written_stays_as_it_was_and_leaves_no_file(
    stored: NDArray[np.float32], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, arrays: object) -> None:
        path.write_bytes(b"a part")
        raise OSError(28, "No space left on device")

    index = RerankedIndex(DIM)
    index.build(ids_of(COUNT), stored)
    index.add(np.array([0]), clustered(1, seed=5))
    index.remove(ids_of(2))
    before = index.search(stored[:3], 20)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(parts, "write_arrays", full)
    with pytest.raises(OSError, match="No space left"):
        index.build(ids_of(COUNT), stored)
    with pytest.raises(InvalidValue, match="No space left"):
        save_index(index, tmp_path / "index", "segments", backend="reranked", tag="")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    for mine, theirs in zip(index.search(stored[:3], 20), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_few_vectors_are_compared_exactly(name: str, stored: NDArray[np.float32]) -> None:
    index = built(name, stored[:500])
    assert index.stats().lists == 0
    queries = far_off(stored, 5)
    np.testing.assert_array_equal(index.search(queries, 20)[1], exact(stored[:500], ids_of(500), queries, 20))


def test_vectors_that_are_not_of_length_one_are_not_learnt_from(
    name: str, stored: NDArray[np.float32]
) -> None:
    with pytest.raises(InvalidValue, match="normalise"):
        built(name, stored * 2)
    with pytest.raises(InvalidValue, match="id of its own"):
        BACKENDS[name](DIM).build(np.zeros(COUNT, np.int64), stored)


def test_any_dimension_can_be_coded(name: str) -> None:
    vectors = unit(np.random.default_rng(0).normal(size=(2000, 19)))
    index = BACKENDS[name](19)
    index.build(np.arange(2000, dtype=np.int64), vectors)
    assert index.search(vectors[:3], 5)[1].shape == (3, 5)
