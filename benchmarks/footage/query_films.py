"""Films cut from real clips whose contents are known, for queries.

    python benchmarks/footage/query_films.py FOLDER --videos CLIPS [--films 8] [--seed 0]

Same clips, options and versions of the libraries, same films. ``shots.csv`` beside them says what is shown
when; ``clips.csv`` here says which pieces of which files are used, ``queries.csv`` which clips answer what.
A shot that is longer than its clip runs there and back, so that nothing jumps inside a shot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from clips import VIDEOS, Picture, rows

from measuring import arguments
from moviola.files.writing import write_csv
from moviola.media import probe, sample_frames, write_video
from moviola.types import FrameSize

RATE = 12.5
WIDTH, HEIGHT = 640, 360
SHOTS = 14
SHORTEST, LONGEST = 3.0, 9.0


@dataclass(frozen=True)
class Clip:
    """A piece of a file that shows one thing: seconds in that file."""

    clip: str
    file: str
    start: float
    end: float


@dataclass(frozen=True)
class Query:
    """A query and the clips that answer it."""

    text: str
    clips: frozenset[str]


@dataclass(frozen=True)
class Shot:
    """What a film shows from ``start`` to ``end`` seconds."""

    film: str
    start: float
    end: float
    clip: str


def read_clips() -> dict[str, Clip]:
    """All clips by name."""
    return {row["clip"]: Clip(row["clip"], row["file"], float(row["start"]), float(row["end"]))
            for row in rows("clips.csv")}  # fmt: skip


def read_queries() -> list[Query]:
    """All queries, in the order of the file."""
    return [Query(row["query"], frozenset(row["clips"].split())) for row in rows("queries.csv")]


def make_films(folder: Path, videos: Path, films: int, seed: int) -> list[Shot]:
    """Write ``film-00.mp4``, … and ``shots.csv``.

    Args:
        folder: a new folder.
        videos: of the clips' files.
        films: how many.
        seed: of what is shown when.
    """
    clips = [clip for clip in read_clips().values() if (videos / clip.file).is_file()]
    shots = planned(clips, films, seed)
    pictures: dict[str, list[Picture]] = {}
    for name in dict.fromkeys(clip.file for clip in clips):
        pictures |= read_pictures(videos / name, [clip for clip in clips if clip.file == name])
    folder.mkdir(parents=True)
    for film in dict.fromkeys(shot.film for shot in shots):
        own = [shot for shot in shots if shot.film == film]
        write_video(folder / f"{film}.mp4", _frames(own, pictures), rate=RATE)
    write_csv(folder / "shots.csv", [field.name for field in fields(Shot)], map(astuple, shots))
    return shots


def planned(clips: Sequence[Clip], films: int, seed: int) -> list[Shot]:
    """Shots of some films: every clip comes as often as any other, none twice in a row, none of one file."""
    random = np.random.default_rng(seed)
    deck: list[Clip] = []
    shots: list[Shot] = []
    for number in range(films):
        before, at = "", 0.0
        for _ in range(SHOTS):
            if not any(clip.file != before for clip in deck):
                deck += [clips[place] for place in random.permutation(len(clips))]
            clip = deck.pop(next(place for place, clip in enumerate(deck) if clip.file != before))
            length = round(float(random.uniform(SHORTEST, LONGEST)) * RATE) / RATE
            shots.append(Shot(f"film-{number:02}", round(at, 3), round(at + length, 3), clip.clip))
            before, at = clip.file, at + length
    return shots


def read_pictures(path: Path, clips: Sequence[Clip]) -> dict[str, list[Picture]]:
    """Pictures of some clips of a file at the films' rate, with black bars where the aspect asks for them."""
    info = probe(path)
    scale = min(WIDTH / info.width, HEIGHT / info.height)
    size = FrameSize(max(1, round(info.height * scale)), max(1, round(info.width * scale)), "stretch")
    top, left = (HEIGHT - size.height) // 2, (WIDTH - size.width) // 2
    pictures: dict[str, list[Picture]] = {clip.clip: [] for clip in clips}
    with sample_frames(path, rate=RATE, size=size) as frames:
        for frame in frames:
            for clip in clips:
                if clip.start <= frame.time < clip.end:
                    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
                    picture[top : top + size.height, left : left + size.width] = frame.image
                    pictures[clip.clip].append(picture)
    return pictures


def _frames(shots: Sequence[Shot], pictures: dict[str, list[Picture]]) -> Iterator[Picture]:
    for shot in shots:
        own = pictures[shot.clip]
        there_and_back = [*own, *own[-2:0:-1]]
        for number in range(round((shot.end - shot.start) * RATE)):
            yield there_and_back[number % len(there_and_back)]


def main() -> None:
    options = arguments(__doc__, "folder", videos=VIDEOS, films=8, seed=0)
    shots = make_films(options.folder, options.videos, options.films, options.seed)
    print(f"{options.folder}: {options.films} films, {len(shots)} shots")


if __name__ == "__main__":
    main()
