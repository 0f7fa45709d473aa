"""Films and a library that commands work on."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from made_once import made_once
from moviola.media import write_video


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films, one with subtitles, and a file that is none; to be read only."""

    def make(folder: Path) -> None:
        generator = np.random.default_rng(0)
        for name in ("harbour", "street"):
            frames = [generator.integers(0, 255, (72, 96, 3), np.uint8) for _ in range(60)]
            write_video(folder / f"{name}.mp4", frames, rate=5)
        (folder / "harbour.srt").write_text("1\n00:00:02,000 --> 00:00:05,000\nThe umbrella is gone.\n")
        (folder / "broken.mp4").write_bytes(b"nothing of a film")

    return made_once(tmp_path_factory, "two-films", make)


@pytest.fixture(scope="session")
def library(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of them, this worker's own, to be read only: commands keep their last answer in it."""
    from moviola.search import Library

    def make(folder: Path) -> None:
        with Library(folder / "lib", encoder="demo", sentence_encoder="none") as lib:
            lib.index(films)

    once = made_once(tmp_path_factory, "library-of-two", make)
    return Path(shutil.copytree(once / "lib", tmp_path_factory.mktemp("library") / "lib"))
