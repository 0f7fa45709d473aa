"""A library in which it is known what is a copy of what: 40 short films of real footage, and copies of them.

A film is a take of ten seconds, or an edit of three shots. No two films share footage, but many are stretches
of one take, a moment apart: the same road, the same bottles. Of each film there are six copies of its whole
length, a clip out of it, and a compilation that holds a part of it between other shots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
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

# File, first and last second, without a cut in between.
STRETCHES: tuple[tuple[str, float, float], ...] = (
    ("intel_bottle-detection.mp4", 0.0, 39.0),
    ("intel_car-detection.mp4", 0.0, 30.0),
    ("moviepy_smpte-2997.mp4", 0.0, 10.0),
    ("moviepy_chaplin.mp4", 0.0, 9.6),
    ("moviepy_big_buck_bunny_0_30.webm", 3.0, 11.7),
    ("moviepy_big_buck_bunny_0_30.webm", 16.0, 22.8),
    ("moviepy_big_buck_bunny_0_30.webm", 23.2, 30.0),
    ("moviepy_big_buck_bunny_0_30.webm", 12.0, 15.5),
    ("intel_preview_fruit-and-vegetable-detection.gif", 0.0, 6.7),
    ("intel_preview_head-pose-face-detection-female-and-male.gif", 0.0, 4.6),
    ("intel_preview_one-by-one-person-detection.gif", 0.0, 3.9),
    ("intel_preview_person-bicycle-car-detection.gif", 0.0, 3.4),
    ("intel_preview_face-demographics-walking-and-pause.gif", 0.0, 3.4),
    ("intel_preview_bolt-multi-size-detection.gif", 0.0, 2.4),
    ("intel_preview_head-pose-face-detection-female.gif", 0.0, 1.9),
    ("intel_asl_gestures_again.mkv", 0.0, 2.5),
    ("intel_asl_gestures_bird.mkv", 0.0, 2.0),
    ("intel_asl_gestures_book.mkv", 0.0, 3.5),
    ("intel_asl_gestures_brother.mkv", 0.0, 2.1),
    ("intel_asl_gestures_sorry.mkv", 0.0, 2.4),
    ("moviepy_fire2.mp4", 0.0, 2.3),
    ("moviepy_pigs_in_a_polka.gif", 0.0, 2.9),
    ("moviepy_video_with_failing_audio.mp4", 0.0, 3.2),
    ("moviepy_video_with_failing_audio.mp4", 4.2, 6.4),
)
# Of scikit-image; the left and the right half make a shot each.
PHOTOGRAPHS = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "coffee.png", "coins.png", "grass.png",
    "gravel.png", "hubble_deep_field.jpg", "ihc.png", "moon.png", "motorcycle_left.png", "rocket.jpg",
    "retina.jpg", "phantom.png", "horse.png", "color.png", "text.png", "page.png", "clock_motion.png",
)  # fmt: skip

Picture = NDArray[np.uint8]


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
        videos: the folder with the files of :data:`STRETCHES`.
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
    for file, begin, end in STRETCHES:
        first, stop = round(begin * SAMPLED), round(end * SAMPLED)
        with sample_frames(videos / file, rate=SAMPLED, size=size) as stream:
            pictures = np.stack([frame.image for frame in islice(stream, first, stop)])
        while len(pictures) >= PIECE:
            length = TAKE if len(pictures) >= TAKE else PIECE
            shot = Shot(f"{file}@{stop - len(pictures)}", pictures[:length])
            (takes if length == TAKE else pieces).append(shot)
            pictures = pictures[length:]
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


def _copy(  # noqa: PLR0911 one kind after the other
    folder: Path, whole: Picture, label: Made, fillers: Sequence[Shot], generator: np.random.Generator
) -> Made:
    """Write a copy of a film as its kind is made."""
    match label.kind:
        case "scaled":
            side = float(generator.uniform(0.4, 0.8))
            return _written(folder, _resized(whole, side), label)
        case "cropped":
            share = float(generator.uniform(0.05, 0.125))  # of each side
            x, y = round(WIDTH * share), round(HEIGHT * share)
            return _written(folder, _even(whole[:, y : HEIGHT - y, x : WIDTH - x]), label)
        case "logo":
            return _written(folder, _with_logo(whole, generator), label)
        case "frame rate":
            rate = int(generator.choice([8, 15, 25]))
            places = np.minimum(np.arange(len(whole) * rate // RATE) * RATE // rate, len(whole) - 1)
            return _written(folder, whole[places], label, rate=rate)
        case "colour":
            return _written(folder, _recoloured(whole, generator), label)
        case "compressed":
            return _written(folder, whole, label, crf=int(generator.integers(36, 43)))
        case "clip":
            length = int(generator.integers(5 * RATE, 8 * RATE))
            first = int(generator.integers(0, len(whole) - length))
            label = Made(label.video_id, _cut(label.parts, first, first + length), label.film, label.kind)
            return _written(folder, _resized(whole[first : first + length], 0.75), label, crf=28)
    length = int(generator.integers(5 * RATE, 8 * RATE))
    first = int(generator.integers(0, len(whole) - length))
    before, after = (fillers[place] for place in generator.choice(len(fillers), 2, replace=False))
    begin = len(before.pictures)
    parts = (
        Part(before.name, 0, begin, 0),
        *(
            Part(part.shot, part.first, part.stop, part.begin + begin)
            for part in _cut(label.parts, first, first + length)
        ),
        Part(after.name, 0, len(after.pictures), begin + length),
    )
    pictures = np.concatenate([before.pictures, whole[first : first + length], after.pictures])
    return _written(folder, pictures, Made(label.video_id, parts, label.film, label.kind), crf=28)


def _written(folder: Path, pictures: Picture, label: Made, *, rate: float = RATE, crf: int = 22) -> Made:
    write_video(folder / f"{label.video_id}.mp4", iter(pictures), rate=rate, crf=crf)
    return label


def _resized(pictures: Picture, factor: float) -> Picture:
    size = round(WIDTH * factor / 2) * 2, round(HEIGHT * factor / 2) * 2
    return np.stack([np.asarray(Image.fromarray(one).resize(size)) for one in pictures])


def _even(pictures: Picture) -> Picture:
    return pictures[:, : pictures.shape[1] // 2 * 2, : pictures.shape[2] // 2 * 2]


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
