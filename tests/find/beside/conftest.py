"""Libraries of small films by the packaged encoders. torch is not imported here, since these tests run again
as on other kinds of machine (scripts/kernels.py).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from made_once import made_once
from moviola.media import write_video
from moviola.search import Library

RATE = 5
SUBTITLES = """1
00:00:01,000 --> 00:00:03,000
The lighthouse keeper lost his umbrella.

2
00:00:06,500 --> 00:00:08,000
Nobody remembered the harbour in winter.
"""
NAMES = ("lighthouse", "market in winter", "red street")


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Films of coloured walls, one of them with subtitles."""
    return made_once(tmp_path_factory, "films-beside", _make_films)


def _make_films(folder: Path) -> None:
    generator = np.random.default_rng(0)
    for name in NAMES:
        walls = [np.full((64, 64, 3), generator.integers(0, 255, 3), np.uint8) for _ in range(4)]
        for wall in walls:
            left, top = generator.integers(0, 40, 2)
            wall[top : top + 20, left : left + 20] = generator.integers(0, 255, 3)
        write_video(folder / f"{name}.mp4", [wall for wall in walls for _ in range(3 * RATE)], rate=RATE)
    (folder / f"{NAMES[0]}.srt").write_text(SUBTITLES)


@pytest.fixture(scope="session", params=["conse-lite1", "demo"])
def folder(request: pytest.FixtureRequest, films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their library, by each packaged encoder; to be read only."""

    def make(folder: Path) -> None:
        with Library(folder / "lib", encoder=request.param, sentence_encoder="minilm") as library:
            library.index(films, ocr=False)

    once = made_once(tmp_path_factory, f"beside-{request.param}", make)
    return Path(shutil.copytree(once / "lib", tmp_path_factory.mktemp("library") / "lib"))
