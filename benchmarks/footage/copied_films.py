"""A library in which it is known what is a copy of what: 40 short films of real footage, and copies of them.

A film is a take of ten seconds, or an edit of three shots. No two films share footage, but many are stretches
of one take, a moment apart: the same road, the same bottles. Of each film there are six copies of its whole
length, a clip out of it, and a compilation that holds a part of it between other shots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from clips import Picture, rows
from PIL import Image, ImageDraw, ImageEnhance

from moviola.media import sample_frames, write_video
from moviola.types import FrameSize

FILMS = 40
KINDS = ("scaled", "cropped", "logo", "frame rate", "colour", "compressed", "clip", "compilation")
WIDTH, HEIGHT, RATE = 320, 180, 12
# Footage is shown at half its speed, so that there is enough of it.
SAMPLED = 2 * RATE
TAKE, PIECE = 120, 40
# Frames that two videos must share to be copies, as this benchmark counts.
SHARED = 3 * RATE

# Of scikit-image; the left and the right half make a shot each.
PHOTOGRAPHS = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "coffee.png", "coins.png", "grass.png",
    "gravel.png", "hubble_deep_field.jpg", "ihc.png", "moon.png", "motorcycle_left.png", "rocket.jpg",
    "retina.jpg", "phantom.png", "horse.png", "color.png", "text.png", "page.png", "clock_motion.png",
)  # fmt: skip


@dataclass(frozen=True)
class Shot:
    """Pictures (n, h, w, 3) that are one stretch of footage."""

    name: str
    pictures: Picture


@dataclass(frozen=True)
class Part:
    """Pictures ``first`` to ``stop`` of a shot, from picture ``begin`` of a video on, at :data:`RATE`."""

    shot: str
    first: int
    stop: int
    begin: int


@dataclass(frozen=True)
class Made:
    """A video of the corpus: what it shows of which shots, its film, and its kind (empty: the film)."""

    video_id: str
    parts: tuple[Part, ...]
    film: int
    kind: str


@dataclass(frozen=True)
class Shared:
    """The longest stretch that two videos share, in seconds of both."""

    start: float
    other_start: float
    seconds: float


def shared(one: Made, other: Made) -> Shared | None:
    """What two videos share; None where that is less than :data:`SHARED`."""
    runs: dict[int, list[tuple[int, int]]] = {}
    for a in one.parts:
        for b in other.parts:
            first, stop = max(a.first, b.first), min(a.stop, b.stop)
            if a.shot == b.shot and first < stop:
                begin = a.begin + first - a.first
                runs.setdefault(b.begin - b.first - a.begin + a.first, []).append(
                    (begin, begin + stop - first)
                )
    best: Shared | None = None
    for offset, spans in runs.items():
        start, end = min(s for s, _ in spans), max(e for _, e in spans)
        seconds = sum(e - s for s, e in spans)
        if seconds >= SHARED and (best is None or seconds > best.seconds * RATE):
            best = Shared(start / RATE, (start + offset) / RATE, (end - start) / RATE)
    return best


def overlapping(one: Made, other: Made) -> bool:
    """Whether two videos share any picture."""
    return any(
        a.shot == b.shot and max(a.first, b.first) < min(a.stop, b.stop)
        for a in one.parts
        for b in other.parts
    )


def make_corpus(videos: Path, folder: Path, seed: int = 0) -> list[Made]:
    """Write the videos into a folder, named by what :class:`Made` says of them.

    Args:
        videos: the folder with the files of `stretches.csv`, seconds without a cut.
        folder: for the videos.
        seed: of everything that is drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    takes, pieces = _shots(videos, generator)
    films = [[take] for take in takes]
    order = generator.permutation(len(pieces))
    while len(films) < FILMS:
        films.append([pieces[place] for place in order[:3]])
        order = order[3:]
    fillers = [pieces[place] for place in order]
    made = []
    for number, shots in enumerate(films):
        whole = np.concatenate([shot.pictures for shot in shots])
        parts = _parts(shots)
        made.append(_written(folder, whole, Made(f"film-{number:02d}", parts, number, "")))
        for kind in KINDS:
            label = Made(f"copy-{number:02d}-{kind.replace(' ', '-')}", parts, number, kind)
            made.append(_copy(folder, whole, label, fillers, generator))
    return made


def _shots(videos: Path, generator: np.random.Generator) -> tuple[list[Shot], list[Shot]]:
    """Long takes and short pieces, which share no footage."""
    takes: list[Shot] = []
    pieces: list[Shot] = []
    size = FrameSize(HEIGHT, WIDTH, "stretch", interpolation="bilinear")
    for row in rows("stretches.csv"):
        first, stop = round(float(row["start"]) * SAMPLED), round(float(row["end"]) * SAMPLED)
        with sample_frames(videos / row["file"], rate=SAMPLED, size=size) as stream:
            left = np.stack([frame.image for frame in islice(stream, first, stop)])
        while len(left) >= PIECE:
            length = TAKE if len(left) >= TAKE else PIECE
            (takes if length == TAKE else pieces).append(
                Shot(f"{row['file']}@{stop - len(left)}", left[:length])
            )
            left = left[length:]
    for file in PHOTOGRAPHS:
        with Image.open(_photographs() / file) as image:
            photograph = image.convert("RGB")
        half = photograph.width // 2
        for side in (0, half):
            part = photograph.crop((side, 0, side + half, photograph.height))
            pieces.append(Shot(f"{file}@{side}", np.stack(list(_moved(part, generator)))))
    return takes, pieces


def _photographs() -> Path:
    found = find_spec("skimage")
    assert found is not None and found.origin is not None, "scikit-image is not installed"
    return Path(found.origin).parent / "data"


def _moved(photograph: Image.Image, generator: np.random.Generator) -> Iterator[Picture]:
    """A camera goes from one cut of a photograph to another."""
    boxes = []
    for _ in range(2):
        width = photograph.width * generator.uniform(0.6, 0.95)
        height = min(width * HEIGHT / WIDTH, photograph.height)
        left, top = (
            generator.uniform(0, photograph.width - width),
            generator.uniform(0, photograph.height - height),
        )
        boxes.append(np.array([left, top, left + width, top + height]))
    for share in np.linspace(0, 1, PIECE):
        box = tuple((boxes[0] * (1 - share) + boxes[1] * share).tolist())
        yield np.asarray(photograph.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR, box=box))


def _parts(shots: Sequence[Shot]) -> tuple[Part, ...]:
    parts, begin = [], 0
    for shot in shots:
        parts.append(Part(shot.name, 0, len(shot.pictures), begin))
        begin += len(shot.pictures)
    return tuple(parts)


def _cut(parts: Sequence[Part], first: int, stop: int) -> tuple[Part, ...]:
    """The parts of a stretch of a video."""
    cut = []
    for part in parts:
        length = part.stop - part.first
        start, end = max(first - part.begin, 0), min(stop - part.begin, length)
        if start < end:
            cut.append(Part(part.shot, part.first + start, part.first + end, part.begin + start - first))
    return tuple(cut)


def _copy(
    folder: Path, whole: Picture, label: Made, fillers: Sequence[Shot], generator: np.random.Generator
) -> Made:
    """Write a copy of a film as its kind is made."""
    shown, how = whole, {}
    match label.kind:
        case "scaled":
            shown = _resized(whole, float(generator.uniform(0.4, 0.8)))
        case "cropped":
            share = float(generator.uniform(0.05, 0.125))  # of each side
            x, y = round(WIDTH * share), round(HEIGHT * share)
            cut = whole[:, y : HEIGHT - y, x : WIDTH - x]
            shown = cut[:, : cut.shape[1] // 2 * 2, : cut.shape[2] // 2 * 2]
        case "logo":
            shown = _with_logo(whole, generator)
        case "frame rate":
            how["rate"] = rate = int(generator.choice([8, 15, 25]))
            shown = whole[np.minimum(np.arange(len(whole) * rate // RATE) * RATE // rate, len(whole) - 1)]
        case "colour":
            shown = _recoloured(whole, generator)
        case "compressed":
            how["crf"] = int(generator.integers(36, 43))
        case _:  # a clip, or a compilation
            length = int(generator.integers(5 * RATE, 8 * RATE))
            first = int(generator.integers(0, len(whole) - length))
            parts, shown, how["crf"] = (
                _cut(label.parts, first, first + length),
                whole[first : first + length],
                28,
            )
            if label.kind == "clip":
                shown = _resized(shown, 0.75)
            else:
                before, after = (fillers[place] for place in generator.choice(len(fillers), 2, replace=False))
                begin = len(before.pictures)
                parts = (
                    Part(before.name, 0, begin, 0),
                    *(replace(part, begin=part.begin + begin) for part in parts),
                    Part(after.name, 0, len(after.pictures), begin + length),
                )
                shown = np.concatenate([before.pictures, shown, after.pictures])
            label = replace(label, parts=parts)
    return _written(folder, shown, label, **how)


def _written(folder: Path, pictures: Picture, label: Made, *, rate: float = RATE, crf: int = 22) -> Made:
    write_video(folder / f"{label.video_id}.mp4", iter(pictures), rate=rate, crf=crf)
    return label


def _resized(pictures: Picture, factor: float) -> Picture:
    size = round(WIDTH * factor / 2) * 2, round(HEIGHT * factor / 2) * 2
    return np.stack([np.asarray(Image.fromarray(one).resize(size)) for one in pictures])


def _with_logo(pictures: Picture, generator: np.random.Generator) -> Picture:
    """A mark in a corner, and a bar with a line of text along the bottom."""
    size = int(generator.integers(28, 48))
    left = int(generator.choice([6, WIDTH - size - 6]))
    colour = tuple(int(part) for part in generator.integers(40, 255, 3))

    def drawn(one: Any) -> Picture:
        image = Image.fromarray(one)
        draw = ImageDraw.Draw(image)
        draw.ellipse((left, 6, left + size, 6 + size), fill=colour)
        draw.rectangle((0, HEIGHT - 20, WIDTH, HEIGHT), fill=(16, 16, 32))
        draw.text((10, HEIGHT - 16), "THE NEWS OF THE DAY AT EIGHT", fill=(240, 240, 240))
        return np.asarray(image)

    return np.stack([drawn(one) for one in pictures])


def _recoloured(pictures: Picture, generator: np.random.Generator) -> Picture:
    """Brighter or darker, with another contrast, and more or less colour; every fourth without any."""
    brightness, contrast = generator.uniform(0.75, 1.3), generator.uniform(0.75, 1.3)
    colour = 0.0 if generator.random() < 0.25 else generator.uniform(0.5, 1.6)

    def changed(one: Any) -> Picture:
        image = ImageEnhance.Brightness(Image.fromarray(one)).enhance(brightness)
        image = ImageEnhance.Contrast(image).enhance(contrast)
        return np.asarray(ImageEnhance.Color(image).enhance(colour))

    return np.stack([changed(one) for one in pictures])
