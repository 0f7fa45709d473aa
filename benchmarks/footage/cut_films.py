"""Films cut from real clips, with the frame at which every shot begins: what shot detection is measured on.

    python benchmarks/footage/cut_films.py CLIPS OUT [--films 8] [--seed 0] [--transitions cut]

Clips are the files of ``STRETCHES`` in the folder CLIPS, which hold one shot each between the seconds given.
OUT gets ``film-00.mp4``, … and ``labels.json``. The same arguments, the same films.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.media import sample_frames, write_video
from moviola.types import FrameSize

SIZE = FrameSize(270, 480, "stretch", interpolation="bilinear")
RATES = (25.0, 24.0, 30.0, 30000 / 1001)
SHOTS_PER_FILM = 14
SHORTEST, LONGEST = 1.5, 9.0
MIXED = ("cut", "dissolve", "cut", "fade")

# File, first and last second of a stretch without a cut, and the scene: two clips of one scene are never
# neighbours, because nobody could say where one ends.
STRETCHES: tuple[tuple[str, float, float, str], ...] = (
    ("intel_asl_gestures_again.mkv", 0.0, 2.5, "office a"),
    ("intel_asl_gestures_bird.mkv", 0.0, 2.0, "office b"),
    ("intel_asl_gestures_book.mkv", 0.0, 3.5, "office c"),
    ("intel_asl_gestures_brother.mkv", 0.0, 2.1, "office a"),
    ("intel_asl_gestures_eat.mkv", 0.0, 1.5, "office d"),
    ("intel_asl_gestures_sorry.mkv", 0.0, 2.4, "office b"),
    ("intel_bottle-detection.mp4", 0.0, 39.0, "bottles"),
    ("intel_car-detection.mp4", 0.0, 30.0, "road"),
    ("intel_preview_bolt-multi-size-detection.gif", 0.0, 2.4, "bolt"),
    ("intel_preview_bottle-detection.gif", 0.0, 2.9, "bottles"),
    ("intel_preview_car-detection.gif", 0.0, 5.1, "road"),
    ("intel_preview_face-demographics-walking-and-pause.gif", 0.0, 3.4, "corridor"),
    ("intel_preview_fruit-and-vegetable-detection.gif", 0.0, 6.7, "conveyor"),
    ("intel_preview_head-pose-face-detection-female-and-male.gif", 0.0, 4.6, "pair"),
    ("intel_preview_head-pose-face-detection-female.gif", 0.0, 1.9, "woman"),
    ("intel_preview_one-by-one-person-detection.gif", 0.0, 3.9, "table"),
    ("intel_preview_person-bicycle-car-detection.gif", 0.0, 3.4, "parking"),
    ("moviepy_big_buck_bunny_0_30.webm", 3.0, 11.7, "meadow"),
    ("moviepy_big_buck_bunny_0_30.webm", 12.0, 15.5, "flowers"),
    ("moviepy_big_buck_bunny_0_30.webm", 16.0, 22.8, "bird"),
    ("moviepy_big_buck_bunny_0_30.webm", 23.2, 30.0, "burrow"),
    ("moviepy_chaplin.mp4", 0.0, 9.6, "park"),
    ("moviepy_fire2.mp4", 0.0, 2.3, "room"),
    ("moviepy_pigs_in_a_polka.gif", 0.0, 2.9, "pigs"),
    ("moviepy_smpte-2997.mp4", 0.0, 10.0, "bars"),
    ("moviepy_video_with_failing_audio.mp4", 0.0, 3.2, "jet"),
    ("moviepy_video_with_failing_audio.mp4", 4.2, 6.4, "field"),
)

Image = NDArray[np.uint8]


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
    parser.add_argument("clips", type=Path, help="folder with the clips")
    parser.add_argument("out", type=Path, help="folder for the films")
    parser.add_argument("--films", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--transitions", choices=("cut", "mixed"), default="mixed")
    options = parser.parse_args()
    make_films(options.clips, options.out, options.films, options.seed, options.transitions)


def make_films(clips: Path, out: Path, films: int, seed: int, transitions: str) -> list[Film]:
    """Write films and ``labels.json``; with ``transitions="mixed"`` every other one is no cut."""
    out.mkdir(parents=True, exist_ok=True)
    kinds = MIXED if transitions == "mixed" else ("cut",)
    made = []
    for number in range(films):
        film = Film(f"film-{number:02d}.mp4", RATES[number % len(RATES)])
        generator = np.random.default_rng((seed, number))
        frames = compose(film, plan(generator), clips, kinds, generator)
        write_video(out / film.file, frames, rate=film.rate, crf=22, keyframe_every=10.0)
        made.append(film)
        print(f"{film.file}: {film.frames / film.rate:.1f} s, {len(film.shots)} shots", flush=True)
    (out / "labels.json").write_text(json.dumps([asdict(film) for film in made], indent=1))
    return made


def read_labels(folder: Path) -> list[Film]:
    """The films of a folder, as :func:`make_films` left them there."""
    values: list[dict[str, Any]] = json.loads((folder / "labels.json").read_text())
    return [
        Film(
            value["file"],
            value["rate"],
            value["frames"],
            [Shot(**shot) for shot in value["shots"]],
            [Transition(**transition) for transition in value["transitions"]],
        )
        for value in values
    ]


def plan(generator: np.random.Generator) -> list[tuple[str, str, float, float]]:
    """File, scene, first second and length of a film's shots; no two neighbours are of one scene."""
    left = list(generator.permutation(len(STRETCHES)))
    chosen: list[tuple[str, str, float, float]] = []
    while left and len(chosen) < SHOTS_PER_FILM:
        usable = [place for place in left if not chosen or STRETCHES[place][3] != chosen[-1][1]]
        if not usable:
            break
        left.remove(usable[0])
        file, first, last, scene = STRETCHES[usable[0]]
        length = min(last - first, float(generator.uniform(3.0, LONGEST)))
        begin = first + float(generator.uniform(0, last - first - length))
        chosen.append((file, scene, begin, max(SHORTEST, length)))
    return chosen


def compose(
    film: Film,
    shots: Sequence[tuple[str, str, float, float]],
    clips: Path,
    kinds: Sequence[str],
    generator: np.random.Generator,
) -> Iterator[Image]:
    """The pictures of a film, noting in it where its shots begin."""
    tail: list[Image] = []  # pictures of the last shot that the transition still needs
    for number, (file, scene, begin, length) in enumerate(shots):
        images = list(pictures(clips / file, begin, length, film.rate))
        if number:
            kind = kinds[number % len(kinds)]
            yield from between(film, kind, tail, images, generator)
        first = film.frames
        keep = len(images) // 4  # at the end, for the next transition
        body, tail = images[: len(images) - keep], images[len(images) - keep :]
        film.frames += len(body)
        film.shots.append(Shot(file, scene, begin, first, film.frames))
        yield from body
    film.frames += len(tail)
    yield from tail


def between(
    film: Film, kind: str, tail: list[Image], images: list[Image], generator: np.random.Generator
) -> Iterator[Image]:
    """The end of a shot (``tail``) and the transition; takes from ``images`` what the transition uses up."""
    longest = min(len(tail), len(images) // 3)
    length = 0 if kind == "cut" else int(np.clip(film.rate * generator.uniform(0.3, 1.5), 4, longest))
    whole, last = tail[: len(tail) - length], tail[len(tail) - length :]
    yield from whole
    start = film.frames + len(whole)
    mixed: list[Image] = []
    if kind == "dissolve":
        shares = np.arange(1, length + 1) / (length + 1)
        mixed = [blend(a, b, s) for a, b, s in zip(last, images, shares, strict=False)]
        del images[:length]
    elif kind == "fade":
        shares = np.arange(1, length + 1) / length
        black = np.zeros_like(images[0])
        mixed = [blend(a, black, s) for a, s in zip(last, shares, strict=True)]
        mixed += [blend(b, black, s) for b, s in zip(images, shares[::-1], strict=False)]
        del images[:length]
    yield from mixed
    film.frames = start + len(mixed)
    film.transitions.append(Transition(kind, start, film.frames))


def blend(first: Image, second: Image, share: float) -> Image:
    """``(1 - share) * first + share * second``."""
    return (first * (1 - share) + second * share + 0.5).astype(np.uint8)


def pictures(path: Path, begin: float, length: float, rate: float) -> Iterator[Image]:
    """Pictures of a clip at the film's rate."""
    first = round(begin * rate)
    with sample_frames(path, rate=rate, size=SIZE) as stream:
        for frame in islice(stream, first, first + round(length * rate)):
            yield frame.image


if __name__ == "__main__":
    main()
