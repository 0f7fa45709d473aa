"""What the pages of README and docs/ are run on: a generated world, and a library of its films."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from made_once import made_once
from moviola import Library
from moviola.media import write_video
from moviola.study.datasets import gridhouse

SUBTITLES = """1
00:00:05,000 --> 00:00:09,000
Where did you leave the key?

2
00:00:20,000 --> 00:00:24,000
The red door is still locked.
"""


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``world``, ten annotated films, and ``lib``, their library; not to be changed."""

    def make(folder: Path) -> None:
        gridhouse.build(folder / "world", videos=10, seed=3, workers=1, write_video=write_video)
        with Library(folder / "lib", encoder="demo") as library:
            library.index(folder / "world" / "videos")

    return made_once(tmp_path_factory, "generated", make)


@pytest.fixture
def workplace(generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a page: copies of ``world`` and ``lib``, and ``films``, one with subtitles."""
    for name in ("world", "lib"):
        shutil.copytree(generated / name, tmp_path / name)
    (tmp_path / "films").mkdir()
    for film in sorted((generated / "world" / "videos").iterdir())[:3]:
        shutil.copy(film, tmp_path / "films")
    (tmp_path / "films" / "gh-0001.srt").write_text(SUBTITLES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MOVIOLA_LIBRARY", raising=False)
    return tmp_path
