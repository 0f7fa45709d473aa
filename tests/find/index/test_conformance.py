"""What every index backend must do: those in ``BACKENDS``, and one that a plug-in adds.

Milvus keeps what is new in memory until it is written; here all is written before every search, so that it is
the server that answers. Making a collection takes seconds: where others take any content, it takes a few.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from milvus_server import RunningMilvus, written_through
from moviola.errors import InvalidValue, SegmentIndexError
from moviola.files.parts import Groups
from moviola.index import Index, backends_of, load_index, save_index

DIM = 16
ALL = backends_of("example-plain")
MILVUS = pytest.param("milvus", marks=pytest.mark.long(3))


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    return unit(np.random.default_rng(seed).normal(size=(count, DIM)))


@pytest.fixture(params=[*sorted(ALL), MILVUS])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def backends(backend: str, request: pytest.FixtureRequest) -> dict[str, type[Index]]:
    if backend != "milvus":
        return ALL
    return {**ALL, "milvus": written_through(request.getfixturevalue("milvus"))}


@pytest.fixture
def index(backend: str, backends: dict[str, type[Index]]) -> Index:
    return backends[backend](DIM)


def test_an_empty_index_answers_with_nothing(index: Index) -> None:
    scores, ids = index.search(vectors(2), 5)
    assert scores.shape == ids.shape == (2, 0)
    assert len(index) == 0


def test_answers_are_the_nearest_in_falling_order(index: Index) -> None:
    stored, queries = vectors(300), vectors(7, seed=1)
    ids = np.random.default_rng(2).permutation(10_000)[:300].astype(np.int64)
    index.add(ids, stored)
    scores, found = index.search(queries, 20)
    exact = queries @ stored.T
    assert np.all(np.diff(scores, axis=1) <= 0)
    np.testing.assert_allclose(scores, -np.sort(-exact, axis=1)[:, :20], atol=1e-5)
    np.testing.assert_array_equal(found[:, 0], ids[exact.argmax(axis=1)])


@pytest.mark.parametrize("count", [300, 1500], ids=["compared", "learnt"])
def test_a_query_finds_the_same_alone_and_among_others(index: Index, backend: str, count: int) -> None:
    """To the bit. For as many queries at once as here, faiss multiplies by the BLAS, whose sums depend on
    their number.
    """
    index.build(np.arange(count, dtype=np.int64), vectors(count))
    queries = vectors(50 if backend == "milvus" else 9000, seed=1)
    scores, ids = index.search(queries, 20)
    for place in range(0, len(queries), len(queries) // 10):
        own_scores, own_ids = index.search(queries[place : place + 1], 20)
        np.testing.assert_array_equal(own_scores[0], scores[place])
        np.testing.assert_array_equal(own_ids[0], ids[place])


def test_a_vector_finds_itself(index: Index) -> None:
    stored = vectors(50)
    index.add(np.arange(50, dtype=np.int64), stored)
    scores, found = index.search(stored, 1)
    np.testing.assert_array_equal(found[:, 0], np.arange(50))
    np.testing.assert_allclose(scores, 1, atol=1e-5)


def test_depth_beyond_the_content_gives_what_is_there(index: Index) -> None:
    index.add(np.array([3, 1], np.int64), vectors(2))
    assert index.search(vectors(1), 10)[1].shape == (1, 2)


def test_removed_vectors_are_not_found_and_may_come_back(index: Index) -> None:
    stored = vectors(20)
    index.add(np.arange(20, dtype=np.int64), stored)
    assert index.remove(np.array([4, 5, 99], np.int64)) == 2
    assert len(index) == 18
    assert not np.isin([4, 5], index.search(stored[4:6], 20)[1]).any()
    index.add(np.array([4], np.int64), stored[4:5])
    assert index.search(stored[4:5], 1)[1][0, 0] == 4


def test_only_allowed_ids_are_searched(index: Index) -> None:
    stored = vectors(40)
    index.add(np.arange(40, dtype=np.int64), stored)
    allowed = np.array([2, 17, 30, 777], np.int64)
    scores, found = index.search(stored[:3], 10, allowed=allowed)
    assert found.shape == (3, 3)
    assert set(found.ravel().tolist()) == {2, 17, 30}
    assert found[2, 0] == 2
    assert scores[2, 0] == pytest.approx(1, abs=1e-5)


def test_asked_for_as_many_as_are_allowed_it_gives_the_cosine_of_each(index: Index) -> None:
    stored, queries = vectors(120), vectors(70, seed=1)
    index.add(np.arange(120, dtype=np.int64), stored)
    allowed = np.arange(3, 120, 7, dtype=np.int64)
    scores, found = index.search(queries, len(allowed), allowed=allowed)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.tile(allowed, (70, 1)))
    cosines = np.take_along_axis(scores, np.argsort(found, axis=1), axis=1)
    np.testing.assert_allclose(cosines, queries @ stored[allowed].T, atol=1e-5)


def test_kept_selections_of_allowed_ids_are_of_the_present_vectors(index: Index) -> None:
    """An array that nobody writes to is known again; what came or went since must not be overlooked."""
    stored, allowed = vectors(60), np.arange(0, 60, 3)
    allowed.flags.writeable = False
    index.build(np.arange(50), stored[:50])
    for present in (50, 60):
        found = [index.search(stored[:2], 100, allowed=allowed)[1] for _ in range(2)]
        expected = np.arange(0, present, 3)
        for ids in found:
            np.testing.assert_array_equal(np.sort(ids, axis=1), np.tile(expected, (2, 1)))
        index.add(np.arange(present, 60), stored[present:])
    index.remove(np.array([0, 57]))
    np.testing.assert_array_equal(
        np.sort(index.search(stored[:1], 100, allowed=allowed)[1][0]), np.arange(3, 57, 3)
    )


def test_nothing_allowed_finds_nothing(index: Index) -> None:
    index.add(np.arange(4, dtype=np.int64), vectors(4))
    assert index.search(vectors(1), 3, allowed=np.empty(0, np.int64))[1].shape == (1, 0)


@pytest.mark.parametrize(
    ("ids", "rows", "message"),
    [
        (np.array([0, 1]), vectors(3), "one id a vector"),
        (np.array([-1]), vectors(1), "negative"),
        (np.array([7]), vectors(1), "present already"),
        (np.array([8, 8]), vectors(2), "given twice"),
        (np.array([9]), vectors(1)[:, :5], "this index holds"),
        (np.array([9]), vectors(1) * 2, "normalise"),
        (np.array([9]), np.full((1, DIM), np.nan, np.float32), "normalise"),
    ],
)
def test_bad_vectors_are_refused_and_nothing_is_added(
    index: Index, ids: NDArray[np.int64], rows: NDArray[np.float32], message: str
) -> None:
    index.add(np.array([7], np.int64), vectors(1, seed=5))
    with pytest.raises(InvalidValue, match=message):
        index.add(ids, rows)
    assert len(index) == 1


def test_depth_below_one_is_refused(index: Index) -> None:
    with pytest.raises(InvalidValue, match="at least one"):
        index.search(vectors(1), 0)


def test_saved_and_loaded_it_answers_the_same(
    index: Index, backend: str, backends: dict[str, type[Index]], tmp_path: Path
) -> None:
    index.add(np.arange(60, dtype=np.int64), vectors(60))
    save_index(index, tmp_path, "segments", backend=backend, tag="recipe")
    loaded = load_index(tmp_path, "segments", backends)
    assert loaded is not None
    again, tag = loaded
    assert tag == "recipe"
    for mine, theirs in zip(index.search(vectors(5, 1), 9), again.search(vectors(5, 1), 9), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    again.add(np.array([100], np.int64), vectors(1, 3))
    assert again.remove(np.array([0], np.int64)) == 1


def test_saving_again_leaves_one_vector_file(index: Index, backend: str, tmp_path: Path) -> None:
    index.add(np.arange(5, dtype=np.int64), vectors(5))
    save_index(index, tmp_path, "segments", backend=backend, tag="")
    index.remove(np.array([0], np.int64))
    save_index(index, tmp_path, "segments", backend=backend, tag="")
    assert len(list(tmp_path.iterdir())) == 2


def test_an_index_published_while_another_is_opened_is_read(
    index: Index, backend: str, backends: dict[str, type[Index]], tmp_path: Path
) -> None:
    index.add(np.arange(5, dtype=np.int64), vectors(5))
    save_index(index, tmp_path, "segments", backend=backend, tag="old")
    index.remove(np.array([0], np.int64))
    own = backends[backend]

    def read(groups: Groups) -> Index:
        if groups[0][0].path.name in names:
            save_index(index, tmp_path, "segments", backend=backend, tag="new")
        return own.read_groups(groups)

    names = {path.name for path in tmp_path.iterdir()}
    overtaken = type("Overtaken", (own,), {"read_groups": staticmethod(read)})
    loaded = load_index(tmp_path, "segments", {backend: overtaken})
    assert loaded is not None and (len(loaded[0]), loaded[1]) == (4, "new")


def test_no_index_yet(tmp_path: Path) -> None:
    assert load_index(tmp_path, "segments", ALL) is None


def require_damage_noticed(
    backends: dict[str, type[Index]], name: str, folder: Path, place: float, flip: int, cut: bool
) -> None:
    index = backends[name](DIM)
    index.add(np.arange(10, dtype=np.int64), vectors(10))
    save_index(index, folder, "segments", backend=name, tag="")
    (path,) = folder.glob("*.faiss")
    data = bytearray(path.read_bytes())
    at = int(place * len(data))
    data[at] ^= flip
    path.write_bytes(data[:at] if cut else data)
    with pytest.raises(SegmentIndexError, match="rebuild"):
        load_index(folder, "segments", backends)


@settings(deadline=None, max_examples=60)
@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255), cut=st.booleans())
@pytest.mark.parametrize("name", sorted(ALL))
def test_any_damage_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, name: str, place: float, flip: int, cut: bool
) -> None:
    require_damage_noticed(ALL, name, tmp_path_factory.mktemp("damaged"), place, flip, cut)


@pytest.mark.long(3)
@pytest.mark.parametrize("cut", [False, True])
def test_damage_of_what_is_known_of_a_server_is_noticed(
    milvus: RunningMilvus, tmp_path: Path, cut: bool
) -> None:
    require_damage_noticed({"milvus": written_through(milvus)}, "milvus", tmp_path, 0.7, 0x20, cut)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "[" * 100_000, '{"backend": "nosuch", "file": "x", "sha256": "", "tag": ""}',
     '{"backend": ["flat"], "file": "x", "sha256": "", "tag": ""}', '{"backend": "flat"}'],
    ids=range(7),
)  # fmt: skip
def test_a_damaged_manifest_is_noticed(tmp_path: Path, text: str) -> None:
    (tmp_path / "segments.json").write_text(text)
    with pytest.raises(SegmentIndexError, match="rebuild"):
        load_index(tmp_path, "segments", ALL)


@pytest.mark.parametrize(
    "file",
    ["..", ".", "", "/etc/hostname", "../segments-0.faiss", "segments-0/../x.faiss", "segments-\0.faiss",
     "cues-0.faiss", 7, None],
)  # fmt: skip
def test_a_manifest_leads_to_no_other_file(
    index: Index, backend: str, backends: dict[str, type[Index]], tmp_path: Path, file: object
) -> None:
    """Not even to one that has the digest it names."""
    save_index(index, tmp_path / "index", "segments", backend=backend, tag="")
    (vectors_file,) = (tmp_path / "index").glob("*.faiss")
    (tmp_path / "segments-0.faiss").write_bytes(vectors_file.read_bytes())
    path = tmp_path / "index" / "segments.json"
    manifest = json.loads(path.read_text())
    foreign = {**manifest["groups"][0][0], "file": file}
    parts = [{"groups": [[foreign]]}, {"deltas": [foreign]}, {"groups": [[{**foreign, "gone": foreign}]]}]
    for part in parts:
        path.write_text(json.dumps(sealed({**manifest, **part})))
        with pytest.raises(SegmentIndexError, match=r"segments\.json: names the file .*rebuild"):
            load_index(tmp_path / "index", "segments", backends)
    first = {key: manifest[key] for key in ("backend", "dim", "tag")} | foreign
    path.write_text(json.dumps(first))  # as one of before digests
    with pytest.raises(SegmentIndexError, match=r"segments\.json: names the file .*rebuild"):
        load_index(tmp_path / "index", "segments", backends)


def sealed(manifest: dict[str, object]) -> dict[str, object]:
    """A manifest with the digest of what it says now."""
    manifest = {key: value for key, value in manifest.items() if key != "digest"}
    text = json.dumps(manifest, sort_keys=True)
    return {**manifest, "digest": hashlib.sha256(text.encode()).hexdigest()}


def test_a_folder_in_place_of_the_vectors_is_noticed(
    index: Index, backend: str, backends: dict[str, type[Index]], tmp_path: Path
) -> None:
    save_index(index, tmp_path, "segments", backend=backend, tag="")
    (path,) = tmp_path.glob("*.faiss")
    path.unlink()
    path.mkdir()
    with pytest.raises(SegmentIndexError, match="cannot be read"):
        load_index(tmp_path, "segments", backends)


def require_what_is_left(index: Index, stored: NDArray[np.float32], gone: set[int], k: int) -> None:
    index.add(np.arange(12, dtype=np.int64), stored)
    index.remove(np.array(sorted(gone), np.int64))
    left = [i for i in range(12) if i not in gone]
    scores, ids = index.search(stored[:1], k)
    assert ids.shape == (1, min(k, len(left)))
    expected = np.sort((stored[:1] @ stored[left].T)[0])[::-1][:k] if left else np.empty(0)
    np.testing.assert_allclose(scores[0], expected, atol=1e-5)
    assert set(ids[0].tolist()) <= set(left)


@settings(deadline=None, max_examples=40)
@given(
    rows=arrays(np.float64, (12, DIM), elements=st.floats(-1, 1)).filter(
        lambda a: bool((np.linalg.norm(a, axis=1) > 1e-2).all())
    ),
    gone=st.sets(st.integers(0, 11)),
    k=st.integers(1, 15),
)
@pytest.mark.parametrize("name", sorted(ALL))
def test_any_content_after_any_removal(name: str, rows: NDArray[np.float64], gone: set[int], k: int) -> None:
    require_what_is_left(ALL[name](DIM), unit(rows), gone, k)


@pytest.mark.long(3)
@pytest.mark.parametrize(("gone", "k"), [({0}, 15), ({1, 2, 5, 11}, 3), (set(range(12)), 1)])
def test_content_of_a_server_after_removals(milvus: RunningMilvus, gone: set[int], k: int) -> None:
    require_what_is_left(written_through(milvus)(DIM), vectors(12, seed=4), gone, k)
