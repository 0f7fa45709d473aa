"""Files that are cut short, or cannot be read, while they are mapped: a reason, never a signal."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moviola.errors import FeaturesAway
from moviola.files import mapped
from moviola.index import TrainedIndex
from moviola.library import verify
from moviola.search import Library

_CHILD = """
import os, sys
from pathlib import Path
from moviola.errors import LibraryError
from moviola.index import TrainedIndex
from moviola.library import verify
from moviola.search import Library

TrainedIndex.LEAST = 16
folder = Path(sys.argv[1])
with Library(folder, read_only=True) as library:
    before = library.search("a red square", top_k=50, by="visual")
    assert len(before)
    files = (path for part in ("features", "index", "cache") for path in (folder / part).rglob("*.*"))
    for path in sorted(filter(Path.is_file, files)):
        whole, name = path.read_bytes(), path.relative_to(folder).as_posix()
        for length in (len(whole) // 2, 0):
            os.truncate(path, length)
            for _ in range(2):
                try:
                    assert library.search("a red square", top_k=50, by="visual") == before, name
                    print(name, "answered")
                except LibraryError as error:
                    print(name, "refused:", error)
            damage = [problem.message for problem in verify(library.store)]
            print(name, "noticed" if damage else "unnoticed")
            path.write_bytes(whole)
            assert library.search("a red square", top_k=50, by="visual") == before, name
"""


def test_files_cut_short_between_two_searches(
    library: Library, films: Path, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next page that was read of one ended the process by SIGBUS: a shard, a mapped index, a table."""
    monkeypatch.setattr(TrainedIndex, "LEAST", 16)
    film(films / "long.mp4", 60, seed=9)
    library.index(films)
    library.indexer.use_index("reranked")
    library.close()
    ended = subprocess.run(
        [sys.executable, "-c", _CHILD, str(library.folder)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, (ended.returncode, ended.stdout, ended.stderr[-2000:])
    said: dict[str, set[str]] = {}
    for line in ended.stdout.splitlines():
        name, _, outcome = line.partition(" ")
        said.setdefault(name, set()).add(outcome)
    refused = {name for name, outcomes in said.items() if any(one.startswith("refused") for one in outcomes)}
    assert refused == {"features/frames-00000.f16"}
    assert {one.partition(":")[0] for one in said.pop("features/frames-00000.f16")} == {"refused", "noticed"}
    assert any(name.endswith(".faiss") for name in said) and any(
        name.startswith("cache/facts/videos-") for name in said
    )
    assert all(outcomes == {"answered", "noticed"} for outcomes in said.values()), said


def test_a_shard_that_the_disk_does_not_give(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first read went through memory, where no error can be caught."""

    def failing(*_: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    before = library.search("a red square", by="visual")
    library.close()
    with Library(library.folder, read_only=True) as again:
        with monkeypatch.context() as patched:
            patched.setattr(mapped, "read_at", failing)
            with pytest.raises(
                FeaturesAway, match=r"frames-00000\.f16: .*\(Input/output error\); put it back"
            ):
                again.search("a red square", by="visual")
            assert any("Input/output error" in problem.message for problem in verify(again.store))
        assert again.search("a red square", by="visual") == before
