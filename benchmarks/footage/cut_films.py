"""Films cut from real clips, with the frame at which every shot begins: what shot detection is measured on.

    python benchmarks/footage/cut_films.py CLIPS OUT [--films 8] [--seed 0] [--transitions cut]

OUT gets ``film-00.mp4``, … and ``labels.json``. The same arguments, the same films.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from clips import Picture, pictures, stretches

from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.media import write_video
from moviola.types import FrameSize

SIZE = FrameSize(270, 480, "stretch", interpolation="bilinear")
RATES = (25.0, 24.0, 30.0, 30000 / 1001)
SHOTS_PER_FILM = 14
SHORTEST, LONGEST = 1.5, 9.0
KINDS = {"mixed": ("cut", "dissolve", "cut", "fade"), "cut": ("cut",)}


@dataclass(frozen=True)
class Shot:
    """A stretch of a clip in a film: ``file`` from second ``begin``, as frames ``first`` to ``stop``."""

    file: str
    scene: str
    begin: float
    first: int
    stop: int


@dataclass(frozen=True)
class Transition:
    """What lies between two shots: pictures ``first`` to ``stop`` show neither the one nor the other alone.

    A cut has ``first == stop``, the number of the new shot's first frame.
    """

    kind: str
    first: int
    stop: int


@dataclass
class Film:
    """A film: its file, frames a second, shots and what lies between; frames are counted from 0."""

    file: str
    rate: float
    frames: int = 0
    shots: list[Shot] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clips", type=Path, help="folder with the files of stretches.csv")
    parser.add_argument("out", type=Path, help="folder for the films")
    parser.add_argument("--films", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--transitions", choices=KINDS, default="mixed")
    options = parser.parse_args()
    make_films(options.clips, options.out, options.films, options.seed, options.transitions)


def make_films(clips: Path, out: Path, films: int, seed: int, transitions: str) -> list[Film]:
    """Write films and ``labels.json``; with ``transitions="mixed"`` every other one is no cut."""
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(films):
        film = Film(f"film-{number:02d}.mp4", RATES[number % len(RATES)])
        generator = np.random.default_rng((seed, number))
        frames = compose(film, plan(generator), clips, KINDS[transitions], generator)
        write_video(out / film.file, frames, rate=film.rate, crf=22, keyframe_every=10.0)
        made.append(film)
        print(f"{film.file}: {film.frames / film.rate:.1f} s, {len(film.shots)} shots", flush=True)
    write_json(out / "labels.json", [asdict(film) for film in made], indent=1)
    return made


def read_labels(folder: Path) -> list[Film]:
    """The films of a folder, as :func:`make_films` left them there."""
    return [
        Film(
            one["file"], one["rate"], one["frames"], [Shot(**shot) for shot in one["shots"]],
            [Transition(**transition) for transition in one["transitions"]],
        )
        for one in read_json(folder / "labels.json")
    ]  # fmt: skip


def plan(generator: np.random.Generator) -> list[tuple[str, str, float, float]]:
    """File, scene, first second and length of a film's shots; no two neighbours are of one scene."""
    there = stretches()
    left = list(generator.permutation(len(there)))
    chosen: list[tuple[str, str, float, float]] = []
    while left and len(chosen) < SHOTS_PER_FILM:
        usable = [place for place in left if not chosen or there[place].scene != chosen[-1][1]]
        if not usable:
            break
        left.remove(usable[0])
        own = there[usable[0]]
        length = min(own.end - own.start, float(generator.uniform(3.0, LONGEST)))
        begin = own.start + float(generator.uniform(0, own.end - own.start - length))
        chosen.append((own.file, own.scene, begin, max(SHORTEST, length)))
    return chosen


def compose(
    film: Film,
    shots: Sequence[tuple[str, str, float, float]],
    clips: Path,
    kinds: Sequence[str],
    generator: np.random.Generator,
) -> Iterator[Picture]:
    """The pictures of a film, noting in it where its shots begin."""
    tail: list[Picture] = []  # pictures of the last shot that the transition still needs
    for number, (file, scene, begin, length) in enumerate(shots):
        images = list(pictures(clips / file, begin, length, film.rate, SIZE))
        if number:
            yield from between(film, kinds[number % len(kinds)], tail, images, generator)
        first, keep = film.frames, len(images) // 4  # at the end, for the next transition
        body, tail = images[: len(images) - keep], images[len(images) - keep :]
        film.frames += len(body)
        film.shots.append(Shot(file, scene, begin, first, film.frames))
        yield from body
    film.frames += len(tail)
    yield from tail


def between(
    film: Film, kind: str, tail: list[Picture], images: list[Picture], generator: np.random.Generator
) -> Iterator[Picture]:
    """The end of a shot (``tail``) and the transition; takes from ``images`` what the transition uses up."""
    longest = min(len(tail), len(images) // 3)
    length = 0 if kind == "cut" else int(np.clip(film.rate * generator.uniform(0.3, 1.5), 4, longest))
    whole, last = tail[: len(tail) - length], tail[len(tail) - length :]
    yield from whole
    start = film.frames + len(whole)
    mixed: list[Picture] = []
    if kind == "dissolve":
        shares = np.arange(1, length + 1) / (length + 1)
        mixed = [blend(a, b, s) for a, b, s in zip(last, images, shares, strict=False)]
    elif kind == "fade":
        shares, black = np.arange(1, length + 1) / length, np.zeros_like(images[0])
        mixed = [blend(a, black, s) for a, s in zip(last, shares, strict=True)]
        mixed += [blend(b, black, s) for b, s in zip(images, shares[::-1], strict=False)]
    del images[:length]
    yield from mixed
    film.frames = start + len(mixed)
    film.transitions.append(Transition(kind, start, film.frames))


def blend(first: Picture, second: Picture, share: float) -> Picture:
    """``(1 - share) * first + share * second``."""
    return (first * (1 - share) + second * share + 0.5).astype(np.uint8)


if __name__ == "__main__":
    main()
