"""A small library to torture, and what it answers."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from moviola.media import write_video
from moviola.search import Library

__all__ = [
    "QUERIES",
    "STORED",
    "Answers",
    "answers",
    "answers_of",
    "films_in",
    "flip_bit",
    "library_of",
    "restored",
]

STORED = Path(__file__).resolve().parents[2] / "formats"
"""Files that earlier versions wrote."""

QUERIES = ("a red square", "the lighthouse keeper", "harbour")
RATE = 5
SUBTITLES = "1\n00:00:01,000 --> 00:00:03,000\nThe lighthouse keeper lost his umbrella.\n"

Answers = list[tuple[str, float, float, float, str]]
"""Of all queries: video, start, end, score and source of each moment, to the last digit."""


def films_in(folder: Path, names: str = "abc") -> Path:
    """Write some films of a few seconds, the first with subtitles."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        draw = np.random.default_rng(ord(name))
        walls = draw.integers(0, 255, (2, 3), np.uint8)
        frames = [np.broadcast_to(wall, (64, 64, 3)).copy() for wall in walls for _ in range(3 * RATE)]
        write_video(folder / f"{name}.mp4", frames, rate=RATE)
    (folder / f"{names[0]}.srt").write_text(SUBTITLES)
    return folder


def library_of(films: Path, folder: Path, *, model: bool) -> Path:
    """A library of the films, with the model in use if it is wanted."""
    with Library(folder, encoder="demo", sentence_encoder="none") as library:
        library.index(films, ocr=False)
        if model:
            library.indexer.use(refiner="demo")
    for path in folder.glob(".lock*"):
        path.unlink()
    return folder


def answers(folder: Path) -> Answers:
    """What a library answers to the queries, opened again and read-only."""
    with Library(folder, read_only=True) as library:
        return answers_of(library)


def answers_of(library: Library) -> Answers:
    """What an open library answers to the queries."""
    return [
        (m.video_id, m.start, m.end, m.score, m.source)
        for query in QUERIES
        for m in library.search(query, top_k=10)
    ]


def restored(original: Path, folder: Path) -> Path:
    """A fresh copy of a library in place of what lies there."""
    shutil.rmtree(folder, ignore_errors=True)
    return Path(shutil.copytree(original, folder))


def flip_bit(path: Path, place: int, bit: int = 0) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)
