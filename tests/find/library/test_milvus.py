"""A library whose vectors are on a Milvus server: the catalogue stays the single truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from milvus_server import RunningMilvus
from moviola.addons.milvus import MilvusIndex
from moviola.cli import all_commands
from moviola.errors import IndexServerError, InvalidValue, LibraryError
from moviola.library import repair, verify
from moviola.library.derived.indexes import published_index
from moviola.search import Library
from moviola.types import Moment

app = all_commands()

SECRET = "s3cret-of-mine"


def test_a_wrong_address_is_refused_without_its_secret(library: Library) -> None:
    with pytest.raises(InvalidValue, match="collection's name") as refusal:
        library.indexer.use_index(f"milvus://host/?token={SECRET}")
    assert SECRET not in str(refusal.value)
    path = library.folder / "moviola.toml"
    path.write_text(path.read_text().replace('"auto"', f'"milvus://host/?token={SECRET}"'))
    with pytest.raises(LibraryError, match=r"moviola\.toml: .*collection's name") as refusal:
        Library(library.folder)
    assert SECRET not in f"{refusal.value} {refusal.value.__cause__}"


def test_a_server_that_does_not_answer_leaves_the_library_as_it_is(library: Library) -> None:
    expected = library.search("anything", top_k=50)
    address = f"milvus://127.0.0.1:1/films?timeout=1&token={SECRET}"
    outcome = CliRunner().invoke(
        app, ["library", "use", "--library", str(library.folder), "--index", address]
    )
    assert isinstance(outcome.exception, IndexServerError)
    assert SECRET not in f"{outcome.exception} {outcome.output}"
    with Library(library.folder) as again:
        assert again.settings.index == "auto"
        assert again.search("anything", top_k=50) == expected


@pytest.fixture
def address(milvus: RunningMilvus) -> str:
    return milvus.address(f"films_{uuid4().hex}", f"?timeout=120&token={SECRET}")


@pytest.fixture
def served(library: Library, address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """The library of four films, searched on the server; their vectors went there in two parts."""
    with monkeypatch.context() as patched:
        patched.setattr("moviola.addons.milvus.index._HELD_BYTES", 1 << 12)
        library.indexer.use_index(address)
    yield library
    if library.settings.index != address:
        return
    for index in indexes(library):
        index._client().drop_collection(index._collection)


def indexes(library: Library) -> list[MilvusIndex]:
    found = [published_index(library.store, name) for name in ("segments", "pictures", "cues")]
    return [index for index in found if isinstance(index, MilvusIndex)]


def same(found: list[Moment], expected: list[Moment]) -> bool:
    return [(m.video_id, m.span) for m in found] == [(m.video_id, m.span) for m in expected] and all(
        abs(mine.score - theirs.score) < 1e-4 for mine, theirs in zip(found, expected, strict=True)
    )


@pytest.mark.long(3)
def test_the_answers_are_those_of_the_exact_index(
    library: Library, address: str, opened: Callable[..., Library]
) -> None:
    expected = library.search("anything", top_k=50)
    library.indexer.use_index(address)
    again = opened(read_only=True)
    assert again.settings.index == address
    assert [index.ids().size for index in indexes(again)] == [12]
    assert same(again.search("anything", top_k=50), expected)
    about = CliRunner().invoke(app, ["library", "info", "-l", str(library.folder)])
    assert address.partition("?")[0] in about.output.replace("\n", "")
    assert SECRET not in about.output
    some = {moment.video_id for moment in again.search("anything", top_k=50, videos=["b", "deep/c"])}
    assert some == {"b", "deep/c"}
    assert verify(again.store) == []
    manifest = (library.folder / "index" / "segments.json").read_text()
    assert json.loads(manifest)["backend"] == "milvus"
    assert SECRET.encode() not in b"".join(p.read_bytes() for p in (library.folder / "index").iterdir())
    library.indexer.use_index("flat")
    assert library.search("anything", top_k=50) == expected


@pytest.mark.long(3)
def test_videos_come_and_go(
    served: Library, films: Path, film: Callable[..., Path], opened: Callable[..., Library]
) -> None:
    reader = opened(read_only=True)
    assert {moment.video_id for moment in reader.search("anything", top_k=50)} == {"a", "b", "d", "deep/c"}
    served.indexer.remove(["a"])
    film(films / "new.mp4", 14, seed=7)
    report = served.index(films)
    assert (report.added, report.restored) == (["new"], ["a"])  # what was removed is known again
    served.indexer.remove(["b"])
    assert {moment.video_id for moment in reader.search("anything", top_k=50)} == {"a", "d", "deep/c", "new"}
    assert [p for p in verify(served.store) if p.repairable] == []
    (index,) = indexes(served)
    assert index._count() == len(index)


@pytest.mark.long(3)
def test_losses_on_the_server_come_back_from_the_features(served: Library, films: Path) -> None:
    expected = served.search("anything", top_k=50)
    (index,) = indexes(served)
    index._client().delete(index._collection, ids=index.ids()[:2].tolist())
    assert index._count() == len(index) - 2
    (problem,) = verify(served.store)
    assert problem.repairable
    assert problem.message.startswith("index segments: 10 vectors, the features give 12")
    assert len(repair(served.store)) == 1
    assert verify(served.store) == []
    assert same(served.search("anything", top_k=50), expected)
    with Library(served.folder, read_only=True) as reader:
        assert same(reader.search("anything", top_k=50), expected)
        index._client().drop_collection(index._collection)
        with pytest.raises(IndexServerError, match="moviola repair"):
            reader.search("anything")
        served.index(films)  # indexing notices it, too
        assert same(reader.search("anything", top_k=50), expected)
    assert verify(served.store) == []
    with Library(served.folder, read_only=True) as reader:
        assert same(reader.search("anything", top_k=50), expected)


@pytest.mark.long(3)
def test_a_killed_server_costs_no_video(
    served: Library, milvus: RunningMilvus, films: Path, film: Callable[..., Path]
) -> None:
    film(films / "new.mp4", 14, seed=7)
    milvus.kill()
    try:
        with pytest.raises(IndexServerError, match="start the server"):
            served.search("anything")
        with pytest.raises(IndexServerError, match="start the server"):
            served.index(films)
        assert [(p.repairable, "start the server" in p.message) for p in verify(served.store)] == [
            (False, True)
        ]
    finally:
        milvus.start()
    assert len(served) == 5  # it was encoded before the server was missed
    assert served.index(films).added == []
    assert verify(served.store) == []
    found = served.search("anything", top_k=50)
    assert "new" in {moment.video_id for moment in found}
    served.indexer.use_index("flat")
    assert same(found, served.search("anything", top_k=50))


KILLED_WHILE_INDEXING = """
import os, signal, sys
from moviola.addons.milvus import MilvusIndex
from moviola.search import Library

def published(self):
    os.kill(os.getpid(), signal.SIGKILL)

def upload(self):
    original(self)
    if sys.argv[3] == "before the commit":
        published(self)

original, MilvusIndex._upload = MilvusIndex._upload, upload
if sys.argv[3] == "after it":
    MilvusIndex.published = published
Library(sys.argv[1]).index(sys.argv[2])
"""


@pytest.mark.long(3)
@pytest.mark.parametrize("when", ["before the commit", "after it"])
def test_a_killed_client_costs_no_video(
    served: Library, films: Path, film: Callable[..., Path], when: str
) -> None:
    film(films / "new.mp4", 14, seed=7)
    command = [sys.executable, "-c", KILLED_WHILE_INDEXING, served.folder, films, when]
    ended = subprocess.run(command, env=os.environ, check=False, capture_output=True)
    assert ended.returncode == -9, ended.stderr.decode()
    with Library(served.folder) as again:
        assert "new" in {moment.video_id for moment in again.search("anything", top_k=50)}
        assert again.index(films).added == []
        assert verify(again.store) == []
        (index,) = indexes(again)
        assert index._count() == len(index) == 16
