"""Files under ``cache/``: a damaged one changes no answer, is found by ``verify`` and made again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.library import repair, verify
from moviola.library.disk.disk_cache import DiskCache
from moviola.search import Library, SearchResult

TABLES = (
    "facts/videos.json", "facts/videos-*.part", "facts/columns-*.part", "facts/names-*.part",
    "background.npz",
)  # fmt: skip
QUERIES = ("a red square", "lighthouse keeper", "deep c")


def answers(library: Library) -> list[SearchResult]:
    return [library.search(query, top_k=3) for query in QUERIES]


def file_of(library: Library, pattern: str) -> Path:
    """The file of a pattern in the cache."""
    (path,) = (library.folder / "cache").glob(pattern)
    return path


def flipped(whole: bytes, generator: np.random.Generator) -> bytes:
    harmed = bytearray(whole)
    for place in generator.integers(0, len(whole), 3):
        harmed[place] ^= 1 << int(generator.integers(8))
    return bytes(harmed)


@pytest.mark.parametrize("name", TABLES)
def test_flipped_bits_change_no_answer(library: Library, name: str, original: Path) -> None:
    expected = answers(library)
    library.close()
    path = file_of(library, name)
    whole, generator = path.read_bytes(), np.random.default_rng(0)
    for _ in range(20):
        path.write_bytes(flipped(whole, generator))
        with Library(library.folder, read_only=True) as opened:
            found = answers(opened)
        assert found == expected
        assert [answer.confident for answer in found] == [answer.confident for answer in expected]


@pytest.mark.parametrize("name", TABLES)
def test_a_damaged_file_is_found_and_made_again(library: Library, name: str) -> None:
    library.index(library.folder.parent / "films")  # the copies lie elsewhere than the originals
    assert verify(library.store) == []
    path = file_of(library, name)
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, np.random.default_rng(1)))
    (problem,) = verify(library.store)
    assert problem.repairable and problem.message.startswith(
        f"cache/{path.relative_to(library.folder / 'cache')}: damaged;"
    )
    assert repair(library.store) == [problem]
    assert path.read_bytes() == whole and verify(library.store) == []


def test_an_encoding_that_cannot_be_kept_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, save = DiskCache(tmp_path / "context", read_only=False), np.save

    def swept(file: IO[bytes], rows: NDArray[np.float16]) -> None:
        save(file, rows)
        shutil.rmtree(cache.folder / "revision")  # another process has put another model in use

    monkeypatch.setattr("numpy.save", swept)
    assert cache.get("revision", 1, 2, lambda: np.zeros((2, 3), np.float16)).shape == (2, 3)


@pytest.mark.parametrize("name", TABLES)
def test_whatever_writes_next_makes_it_again(library: Library, name: str) -> None:
    path = file_of(library, name)
    path.write_bytes(path.read_bytes()[:200])
    library.index(library.folder.parent / "films")
    assert verify(library.store) == []


@pytest.mark.parametrize("name", TABLES)
def test_a_pipe_is_not_waited_for(library: Library, name: str) -> None:
    expected = answers(library)
    path = file_of(library, name)
    path.unlink()
    os.mkfifo(path)
    with Library(library.folder, read_only=True) as opened:
        assert answers(opened) == expected
    assert [problem.message.partition(":")[0] for problem in repair(library.store)] == [
        f"cache/{path.relative_to(library.folder / 'cache')}"
    ]
    assert path.is_file()


def test_damaged_encodings_and_graphs_are_found_and_made_again(
    library: Library, opened: Callable[..., Library]
) -> None:
    library.indexer.use(stage1="demo", refiner="demo")
    expected = [answer[:] for answer in answers(library)]
    cache = library.folder / "cache"
    harmed = [next((cache / "context").rglob("*.npy")), next((cache / "compiled").rglob("*.blob"))]
    for path in harmed:
        path.write_bytes(flipped(path.read_bytes(), np.random.default_rng(0)))
    again = opened(read_only=True)
    assert [answer[:] for answer in answers(again)] == expected
    problems = verify(library.store)
    assert {problem.message.partition(":")[0] for problem in problems} == {
        path.relative_to(library.folder).as_posix() for path in harmed
    }
    assert repair(opened().store) == problems
    assert all(path.is_file() for path in harmed) and verify(library.store) == []


def test_verify_needs_no_cache(library: Library) -> None:
    shutil.rmtree(library.folder / "cache")
    assert verify(library.store) == []
