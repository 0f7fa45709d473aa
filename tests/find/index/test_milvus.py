"""Vectors on a Milvus server: the order of the contract, and nothing lost, whichever process is killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from milvus_server import RunningMilvus
from moviola.addons.milvus import MilvusIndex
from moviola.addons.milvus import index as module
from moviola.errors import IndexServerError, InvalidValue
from moviola.index import BACKENDS, FlatIndex, Index, load_index, save_index, tune

pytestmark = pytest.mark.long(3)

DIM, COUNT, DEPTH = 16, 3000, 200
IDS = (np.arange(COUNT, dtype=np.int64) // 20 << 20) + np.arange(COUNT) % 20
"""Twenty segments of each of 150 videos, as a library numbers them."""


def vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).normal(size=(count, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def exact(
    stored: NDArray[np.float32], queries: NDArray[np.float32], ids: NDArray[np.int64]
) -> list[list[int]]:
    """The best by falling score; among equals the smaller id."""
    scores = queries @ stored.T
    return [ids[np.lexsort((ids, -row))[:DEPTH]].tolist() for row in scores]


def saved(index: Index, folder: Path) -> Index:
    save_index(index, folder, "segments", backend="milvus", tag="")
    return index


def loaded(kind: type[MilvusIndex], folder: Path, *, thorough: bool = False) -> Index:
    found = load_index(folder, "segments", {**BACKENDS, "milvus": kind}, thorough=thorough)
    assert found is not None
    return found[0]


def collections(kind: type[MilvusIndex]) -> list[str]:
    return sorted(
        name for name in kind(DIM)._client().list_collections() if name.startswith(kind.ADDRESS.collection)
    )


@pytest.fixture
def kind(milvus: RunningMilvus, request: pytest.FixtureRequest) -> Iterator[type[MilvusIndex]]:
    """A place of the test's own on the server."""
    kind = MilvusIndex.at(milvus.address(f"t{crc32(request.node.name.encode())}", "?timeout=120"))
    yield kind
    for name in collections(kind):
        kind(DIM)._client().drop_collection(name)


def test_equals_come_by_their_ids_and_the_depth_cuts_among_them(
    kind: type[MilvusIndex], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products of these vectors are multiples of 1/16, whatever computes them: hundreds are equal."""
    stored = np.random.default_rng(0).choice([-0.25, 0.25], size=(COUNT, DIM)).astype(np.float32)
    index = kind(DIM)
    index.add(IDS, stored)
    saved(index, tmp_path)
    scores, ids = index.search(stored[:5], DEPTH)
    assert ids.tolist() == exact(stored, stored[:5], IDS)
    np.testing.assert_array_equal(scores, -np.sort(-(stored[:5] @ stored.T), axis=1)[:, :DEPTH])
    monkeypatch.setattr(module, "_DEEPEST", 10)
    with pytest.raises(InvalidValue, match=r"depth 200: milvus://.* at most 10"):
        index.search(stored[:1], DEPTH)


def test_the_same_as_the_exact_index(kind: type[MilvusIndex], tmp_path: Path) -> None:
    stored, queries = vectors(COUNT), vectors(70, seed=1)
    flat, index = FlatIndex(DIM), kind(DIM)
    for each in (flat, index):
        each.build(IDS, stored)
    again = loaded(kind, saved(index, tmp_path) and tmp_path)
    for allowed in (None, IDS[200:900], np.r_[IDS[:50], IDS[101:110]]):
        wanted, wanted_ids = flat.search(queries, DEPTH, allowed=allowed)
        scores, ids = again.search(queries, DEPTH, allowed=allowed)
        np.testing.assert_allclose(scores, wanted, atol=1e-5)
        # Where two scores differ by no more than rounding, either may come first.
        near = np.abs(np.diff(wanted, axis=1)) < 1e-6
        clear = ~(np.pad(near, ((0, 0), (1, 0))) | np.pad(near, ((0, 0), (0, 1))))
        clear[:, -1] = False
        np.testing.assert_array_equal(ids[clear], wanted_ids[clear])
        assert clear.mean() > 0.9


def test_unwritten_vectors_are_not_on_the_server(kind: type[MilvusIndex], tmp_path: Path) -> None:
    """A reader completes an index for itself; another reader finds what was published."""
    stored = vectors(60)
    index = kind(DIM)
    index.add(IDS[:40], stored[:40])
    saved(index, tmp_path)
    reader = loaded(kind, tmp_path)
    reader.add(IDS[40:60], stored[40:60])
    reader.remove(IDS[:20])
    assert sorted(reader.search(stored[:1], 60)[1][0].tolist()) == IDS[20:60].tolist()
    other = loaded(kind, tmp_path)
    assert sorted(other.search(stored[:1], 60)[1][0].tolist()) == IDS[:40].tolist()
    saved(reader, tmp_path)
    assert loaded(kind, tmp_path, thorough=True).ids().tolist() == IDS[20:60].tolist()
    assert reader.stats().vectors == 40


def test_an_index_of_the_paper_on_the_server(milvus: RunningMilvus, tmp_path: Path) -> None:
    kind = MilvusIndex.at(milvus.address("lists", "?index=ivf&lists=16"))
    stored, queries = vectors(COUNT), vectors(10, seed=1)
    index = kind(DIM)
    index.build(IDS, stored)
    saved(index, tmp_path)
    wanted = np.array(exact(stored, queries, IDS))
    trials = tune(index, {"text": (queries, wanted)})
    assert [trial.parameters["probes"] for trial in trials][:2] == [16, 32]
    assert min(trials[0].recall.values()) > 0.99  # all sixteen lists
    index.parameters["probes"] = 1
    assert index.search(queries, COUNT)[1].shape == (10, COUNT)  # one list holds too few: all are looked at
    assert index.stats().lists == 16
    assert loaded(kind, saved(index, tmp_path) and tmp_path).parameters == {"probes": 1}


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(
    milvus: RunningMilvus, kind: type[MilvusIndex], tmp_path: Path
) -> None:
    stored = vectors(COUNT)
    index = kind(DIM)
    index.build(IDS[:2000], stored[:2000])
    saved(index, tmp_path)
    index.add(IDS[2000:], stored[2000:])
    index.remove(IDS[:100])
    saved(index, tmp_path)
    reader = loaded(kind, tmp_path)
    before = reader.search(stored[::300], DEPTH)
    milvus.kill()
    try:
        with pytest.raises(IndexServerError, match=r"milvus://127\.0\.0\.1:\d+/t\d+: .*start the server"):
            reader.search(stored[::300], DEPTH)
    finally:
        milvus.start()
    after = reader.search(stored[::300], DEPTH)
    np.testing.assert_array_equal(after[1], before[1])
    assert loaded(kind, tmp_path, thorough=True).ids().tolist() == IDS[100:].tolist()
    assert not reader.take_over()


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
import numpy as np
from moviola.index import BACKENDS, load_index, save_index
from moviola.addons.milvus import MilvusIndex
from moviola.addons.milvus import index as module

folder, address, vectors = Path(sys.argv[1]), sys.argv[2], np.load(sys.argv[3])
kind = MilvusIndex.at(address)
index, _ = load_index(folder, "segments", {**BACKENDS, "milvus": kind})
index.remove(index.ids()[:50])
index.add(vectors["ids"], vectors["vectors"])
module._BYTES_AT_ONCE = 1 << 14
client, left = index._client(), 3

def upsert(*arguments, **options):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return original(*arguments, **options)

original, client.upsert = client.upsert, upsert
save_index(index, folder, "segments", backend="milvus", tag="")
"""


def test_nothing_acknowledged_is_lost_when_the_client_is_killed(
    kind: type[MilvusIndex], milvus: RunningMilvus, tmp_path: Path
) -> None:
    """It had removed some and added others; what it had not published is found by nobody, or made good."""
    stored, folder = vectors(COUNT), tmp_path / "index"
    index = kind(DIM)
    index.add(IDS[:1000], stored[:1000])
    saved(index, folder)
    np.savez(tmp_path / "more.npz", ids=IDS[1000:], vectors=stored[1000:])
    address = milvus.address(kind.ADDRESS.collection)
    command = [sys.executable, "-c", KILLED_WHILE_WRITING, folder, address, tmp_path / "more.npz"]
    ended = subprocess.run(command, env=os.environ, check=False, capture_output=True)
    assert ended.returncode == -9, ended.stderr.decode()

    reader = loaded(kind, tmp_path / "index")
    found = reader.search(stored[:3], DEPTH)[1]
    assert set(found.ravel().tolist()) <= set(IDS[:1000].tolist())

    writer = loaded(kind, folder)
    assert writer.take_over()
    held = writer.ids()
    assert len(held) > 950  # some of the others have come
    assert set(held.tolist()) < set(IDS[50:].tolist())
    writer.add(np.setdiff1d(IDS, held), stored[~np.isin(IDS, held)])
    saved(writer, folder)
    assert loaded(kind, folder, thorough=True).ids().tolist() == IDS.tolist()
    assert writer.search(stored[:3], DEPTH)[1].tolist() == exact(stored, stored[:3], IDS)
    assert len(collections(kind)) == 1


def test_losses_on_the_server_are_noticed_and_put_back(kind: type[MilvusIndex], tmp_path: Path) -> None:
    stored = vectors(100)
    index = kind(DIM)
    index.add(IDS[:100], stored)
    saved(index, tmp_path)
    (name,) = collections(kind)
    index._client().delete(name, ids=IDS[:30].tolist())
    assert index._count() == 70  # which waits until it has come about
    reader = loaded(kind, tmp_path)
    with pytest.raises(IndexServerError, match=r"70 of 100 vectors .*moviola repair"):
        reader.search(stored[:1], 100)
    assert loaded(kind, tmp_path, thorough=True).ids().tolist() == IDS[30:100].tolist()
    assert reader.take_over()
    reader.add(IDS[:30], stored[:30])
    saved(reader, tmp_path)
    assert reader.search(stored[:1], 1)[1].tolist() == [[0]]

    index._client().drop_collection(name)
    with pytest.raises(IndexServerError, match=rf"no collection {name} .*moviola repair"):
        reader.search(stored[:1], 1)
    assert len(loaded(kind, tmp_path, thorough=True)) == 0
    writer = loaded(kind, tmp_path)
    assert writer.take_over()
    writer.add(IDS[:100], stored)
    saved(writer, tmp_path)
    # Under the same name: readers that have opened the index before go on.
    assert reader.search(stored[:1], 1)[1].tolist() == [[0]]


def test_a_copy_gets_its_own_vectors_when_it_changes(kind: type[MilvusIndex], tmp_path: Path) -> None:
    stored = vectors(40)
    index = kind(DIM)
    index.add(IDS[:40], stored)
    saved(index, tmp_path / "original")
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    copy = loaded(kind, tmp_path / "copy")
    assert copy.search(stored[:1], 40)[1].shape == (1, 40)  # reading, it shares them
    assert copy.take_over()
    assert len(copy) == 0
    copy.add(IDS[:10], stored[:10])
    saved(copy, tmp_path / "copy")
    assert len(collections(kind)) == 2
    assert loaded(kind, tmp_path / "original").search(stored[:1], 40)[1].shape == (1, 40)
    assert loaded(kind, tmp_path / "copy").search(stored[:1], 40)[1].shape == (1, 10)


def test_much_that_is_added_goes_to_the_server_at_once(
    kind: type[MilvusIndex], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer has no more in memory than a part; readers find nothing of it before it is published."""
    stored = vectors(300)
    index = kind(DIM)
    index.add(IDS[:50], stored[:50])
    saved(index, tmp_path)
    monkeypatch.setattr(module, "_HELD_BYTES", 100 * DIM * 4)
    reader = loaded(kind, tmp_path)
    reader.add(IDS[50:300], stored[50:300])
    assert reader.stats().added == 250  # it has not taken over
    writer = loaded(kind, tmp_path)
    assert not writer.take_over()
    for begin in range(50, 300, 50):
        writer.add(IDS[begin : begin + 50], stored[begin : begin + 50])
        assert writer.stats().added <= 100
    other = loaded(kind, tmp_path)
    assert set(other.search(stored[:1], 50)[1][0].tolist()) == set(IDS[:50].tolist())
    saved(writer, tmp_path)
    assert loaded(kind, tmp_path, thorough=True).ids().tolist() == IDS[:300].tolist()


def test_built_again_the_old_collection_goes_once_the_new_one_is_published(
    kind: type[MilvusIndex], tmp_path: Path
) -> None:
    for seed in range(2):
        index = kind(DIM)
        index.build(IDS[:20], vectors(20, seed=seed))
        saved(index, tmp_path)
        assert len(collections(kind)) == 1
    assert index.search(vectors(1, seed=1), 1)[1].tolist() == [[0]]
