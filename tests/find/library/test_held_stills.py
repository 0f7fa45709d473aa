"""Text in pictures is read from stills of the first decode, and the same where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.encoders.readers import TextLine
from moviola.library.ingest import film_parts, held_stills, recognition, screen_text
from moviola.library.ingest.held_stills import HeldStills
from moviola.library.ingest.plan import IngestProgress
from moviola.media import packed, unpacked, write_video
from moviola.search import Library
from moviola.types import Box, Cue
from stopped import stop_after

RATE = 5


class Shades:
    """Reads how bright a picture is, to a digit that a lossy still would change if it were another one."""

    id, revision, longest_side = "shades", "1", 64

    def read(self, image: NDArray[np.uint8]) -> list[TextLine]:
        return [TextLine(f"{image.mean():.3f} of {image.shape[1]}", Box(0, 0, 1, 1), 0.9)]


def changing(seed: int, seconds: int) -> Iterator[NDArray[np.uint8]]:
    """Noise that changes every second and is another shot every seven, and short ones in between."""
    generator = np.random.default_rng(seed)
    for number in range(seconds * RATE):
        if number % (7 * RATE) in {0, 1, 3}:
            base = generator.integers(0, 200, (6, 8, 3))
        if number % RATE == 0:
            drawn = generator.integers(0, 50, (6, 8, 3))
        yield np.kron((base + drawn).astype(np.uint8), np.ones((16, 16, 1), np.uint8))


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    for seed, name in enumerate(("a", "b")):
        write_video(folder / f"{name}.mp4", changing(seed, 15 + 25 * seed), rate=RATE)
    return folder


@pytest.fixture(scope="module")
def moments() -> Iterator[list[float]]:
    """Of stills for which a file was opened again; the reader of text is :class:`Shades`."""
    noted: list[float] = []
    real = screen_text.sample_stills

    def opened_again(path: Path, times: list[float], **options: Any) -> Any:
        noted.extend(times)
        return real(path, times, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recognition, "LEGIBLE", 1)
        patch.setattr(recognition, "load_text_reader", lambda *_: Shades())
        patch.setattr(screen_text, "sample_stills", opened_again)
        yield noted


@pytest.fixture
def decoded_again(moments: list[float]) -> list[float]:
    moments.clear()
    return moments


def opened(folder: Path) -> Library:
    return Library(folder, encoder="demo", sentence_encoder="none")


def texts(library: Library) -> dict[str, list[Cue]]:
    videos = library.catalogue.videos()
    return {video.video_id: library.catalogue.cues(video.row) for video in videos}


@pytest.fixture(scope="module")
def later(
    films: Path, tmp_path_factory: pytest.TempPathFactory, moments: list[float]
) -> dict[str, list[Cue]]:
    """Lines that are read of files that are opened again for them."""
    moments.clear()
    with opened(tmp_path_factory.mktemp("later") / "library") as library:
        library.index(films, ocr=False)
        library.index(films)
        assert len(moments) > 20 and len(texts(library)["b"]) > 12
        return texts(library)


def test_stills_are_taken_in_the_first_decode(
    films: Path, tmp_path: Path, later: dict[str, list[Cue]], decoded_again: list[float]
) -> None:
    """Catches a second opening of the file for what was decoded already, stills that another rule chooses,
    stills that are another picture, and those that stay.
    """
    left: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HeldStills, "__exit__", lambda self, *_: left.append(self._bytes))
        with opened(tmp_path / "library") as library:
            library.index(films)
            assert texts(library) == later
            assert all(time % 1 for time in decoded_again), "a sampled frame was decoded again"
    assert left == [0]


@pytest.mark.parametrize("most", [0, 40_000])
def test_little_room_for_stills(
    films: Path, tmp_path: Path, later: dict[str, list[Cue]], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Catches stills without bound, a text that depends on the room for them, and text that is read only
    after all pictures although no more stills can be held.
    """
    monkeypatch.setattr(held_stills, "MOST_HELD", most)
    steps: list[IngestProgress] = []
    with opened(tmp_path / "library") as library:
        report = library.index(films, progress=steps.append)
        assert texts(library) == later and sorted(report.read["text"]) == ["a", "b"]
    kinds = [step.step for step in steps]
    assert kinds.index("text") < max(place for place, kind in enumerate(kinds) if kind == "pictures")


def test_a_full_disk_and_a_film_in_parts(
    films: Path, tmp_path: Path, later: dict[str, list[Cue]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a run that ends since stills cannot be held, and a film that was interrupted in the middle, of
    which the stills of the first parts are gone.
    """
    real, rows = HeldStills.rows, []

    def full(self: HeldStills, query: str, *values: object) -> list[tuple[Any, ...]]:
        rows.append(query)
        if len(rows) == 100:
            self._database.close()
        return real(self, query, *values)

    with monkeypatch.context() as patch, opened(tmp_path / "full") as library:
        patch.setattr(HeldStills, "rows", full)
        library.index(films)
        assert texts(library) == later
    monkeypatch.setattr(film_parts, "PART_SECONDS", 32)
    with opened(tmp_path / "parts") as library:
        with monkeypatch.context() as patch:
            stop_after(patch, 1)
            library.index(films / "b.mp4")
        assert library.catalogue.unfinished()
        library.index(films)
        assert texts(library) == later


def test_stills_are_held_and_let_go() -> None:
    """Catches bytes that are counted twice or not given back, a still that replaces none, and one film's
    stills that go with another's.
    """
    picture = np.full((48, 64, 3), 90, np.uint8)
    assert np.abs(unpacked(packed(picture)).astype(int) - picture).max() <= 1
    with HeldStills(64, 1.0, 40) as held:
        assert held.taken_of("small", 64, 39) is None
        for film in ("one", "other"):
            for ms in (0, 1000, 1000, 2000, 3000):
                held._put(film, ms, bytes([ms // 1000]) * 10)
        held.keep_only("one", [1000], until=3000)
        assert held.of("one").milliseconds() == {1000, 3000} and held._bytes == 60
        assert held.of("one").still(1000) == b"\1" * 10 and held.of("one").still(2000) is None
        held.drop(["one"])
        assert held.of("other").milliseconds() == {0, 1000, 2000, 3000} and held._bytes == 40
        held._database.execute("DROP TABLE still")
        held._put("one", 0, b"1")
        assert held._broken and held.of("other").still(0) is None
