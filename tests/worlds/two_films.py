"""Films and a library that commands work on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from moviola.media import write_video


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films, one with subtitles, and a file that is none; to be read only."""
    folder = tmp_path_factory.mktemp("films")
    generator = np.random.default_rng(0)
    for name in ("harbour", "street"):
        frames = [generator.integers(0, 255, (72, 96, 3), np.uint8) for _ in range(60)]
        write_video(folder / f"{name}.mp4", frames, rate=5)
    (folder / "harbour.srt").write_text("1\n00:00:02,000 --> 00:00:05,000\nThe umbrella is gone.\n")
    (folder / "broken.mp4").write_bytes(b"nothing of a film")
    return folder


@pytest.fixture(scope="session")
def library(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of them, to be read only."""
    from moviola.search import Library

    folder = tmp_path_factory.mktemp("library") / "lib"
    with Library(folder, encoder="demo", sentence_encoder="none") as lib:
        lib.index(films)
    return folder
