"""Small real films to index, and a library of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from made_once import made_once
from moviola.media import write_video
from moviola.search import Library

RATE = 5


def scene(colour: tuple[int, int, int], frames: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """A coloured wall with a moving square, so that frames differ."""
    generator = np.random.default_rng(seed)
    place = generator.integers(0, 40)
    for number in range(frames):
        image = np.empty((64, 64, 3), np.uint8)
        image[:] = colour
        left = int(place + number) % 48
        image[20:36, left : left + 16] = 255 - np.array(colour, np.uint8)
        yield image


def _film(path: Path, seconds: float, seed: int = 0) -> Path:
    """Write an MP4 of a length in seconds; another seed, another film."""
    generator = np.random.default_rng(seed)
    colour = tuple(int(c) for c in generator.integers(30, 225, 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_video(path, scene(colour, round(seconds * RATE), seed), rate=RATE)  # type: ignore[arg-type]
    return path


@pytest.fixture
def film() -> Callable[..., Path]:
    """The writer of films: ``film(path, seconds, seed)``."""
    return _film


SUBTITLES = """1
00:00:01,000 --> 00:00:03,000
The lighthouse keeper lost his umbrella.

2
00:00:06,000 --> 00:00:08,000
Nobody remembered the harbour in winter.
"""


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four ``films``, one in a subfolder, one with subtitles, and a ``library`` of them."""

    def make(folder: Path) -> None:
        for number, name in enumerate(("a.mp4", "b.mp4", "deep/c.mp4", "d.mp4")):
            _film(folder / "films" / name, 9 + number, seed=number)
        (folder / "films" / "d.srt").write_text(SUBTITLES)
        with Library(folder / "library", encoder="demo", sentence_encoder="none") as library:
            library.index(folder / "films")

    return made_once(tmp_path_factory, "four-films", make)


@pytest.fixture
def films(original: Path, tmp_path: Path) -> Path:
    """A copy of the four films that a test may change."""
    return shutil.copytree(original / "films", tmp_path / "films")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Library]]:
    """Open the test's library; closed at the end, however often it was opened."""
    libraries: list[Library] = []

    def open_library(**options: object) -> Library:
        library = Library(tmp_path / "library", **options)  # type: ignore[arg-type]
        libraries.append(library)
        return library

    yield open_library
    for library in libraries:
        library.close()


@pytest.fixture
def library(original: Path, films: Path, tmp_path: Path, opened: Callable[..., Library]) -> Library:
    """A copy of the library of the four films, which knows them by where the copies lie."""
    shutil.copytree(original / "library", tmp_path / "library")
    library = opened()
    library.indexer.move(original / "films", films)
    return library
