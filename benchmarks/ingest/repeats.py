"""What is saved by encoding frames that do not change once, and how near the features are that are taken.

    python benchmarks/ingest/repeats.py [--encoder conse-lite1] [FILE OR FOLDER ...]

Without files: a lecture of slides that the script makes, clean and filmed (with noise). A row: the share of
frames that were not encoded, and the least, the first percentile and the median cosine between the features
that were taken and the frame's own.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.table import Table

from moviola.encoders import FrameTextEncoder, PictureEncoder, load_encoder
from moviola.errors import MediaError
from moviola.library.ingest.repeats import encode_changes
from moviola.media import find_videos, sample_frames, write_video

Frames = NDArray[np.uint8]
Rows = NDArray[np.float32]

WIDTH, HEIGHT, RATE, SLIDES, SECONDS = 1280, 720, 5, 8, 20
NOISES = (0.0, 3.0, 6.0)
BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--encoder", default="conse-lite1")
    options = parser.parse_args()
    encoder = load_encoder(options.encoder)
    table = Table(title=f"{options.encoder}: frames that repeat an earlier one")
    for column in ("film", "frames", "saved", "least cosine", "1 %", "median"):
        table.add_column(column)
    every: list[tuple[int, NDArray[np.float64]]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in [*_files(options.paths)] or _lectures(Path(scratch)):
            try:
                with sample_frames(path, rate=1.0, size=encoder.frame_size) as stream:
                    images = np.stack([frame.image for frame in stream])
            except MediaError:
                continue
            cosines = _of_taken(images, partial(_rows, encoder))
            every.append((len(images), cosines))
            if len(cosines):
                table.add_row(path.name, *_row(len(images), cosines))
    together = np.concatenate([cosines for _, cosines in every])
    table.add_row("all", *_row(sum(count for count, _ in every), together))
    Console(width=110).print(table)


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from find_videos(path) if path.is_dir() else [path]


def _rows(encoder: FrameTextEncoder, images: Frames) -> Rows:
    """What a library stores of frames."""
    if isinstance(encoder, PictureEncoder):
        return np.concatenate(encoder.encode_pictures(images), axis=1)
    return encoder.encode_frames(images)


def _of_taken(images: Frames, encode: Callable[[Frames], Rows]) -> NDArray[np.float64]:
    """Cosines between features that were taken from another frame and the frame's own."""
    cosines = []
    for first in range(0, len(images), BATCH):
        batch = images[first : first + BATCH]
        taken, repeats = encode_changes(batch, encode)
        if repeats:
            own = encode(batch)
            lengths = np.linalg.norm(taken, axis=1) * np.linalg.norm(own, axis=1)
            # What was encoded itself has its own features, up to rounding: the nearest ones are those.
            found = np.sort((taken.astype(np.float64) * own).sum(1) / lengths)
            cosines.append(found[:repeats])
    return np.concatenate(cosines) if cosines else np.empty(0)


def _row(frames: int, cosines: NDArray[np.float64]) -> list[str]:
    figures = np.quantile(cosines, [0, 0.01, 0.5]).tolist() if len(cosines) else []
    return [str(frames), f"{len(cosines) / frames:.1%}", *(f"{figure:.4f}" for figure in figures)]


def _lectures(folder: Path) -> Iterator[Path]:
    for noise in NOISES:
        path = folder / f"lecture, noise {noise:g}.mp4"
        write_video(path, _lecture(noise), rate=RATE, crf=26, keyframe_every=10)
        yield path


def _lecture(noise: float) -> Iterator[Frames]:
    """Slides of words and a box, with noise of a standard deviation of 255."""
    generator = np.random.default_rng(0)
    grains = generator.normal(0, noise, (4, HEIGHT, WIDTH, 1)).astype(np.float32)
    for number in range(SLIDES):
        slide = _slide(number)
        for _ in range(SECONDS * RATE):
            shift = tuple(generator.integers(0, (HEIGHT, WIDTH)).tolist())
            grain = np.roll(grains[generator.integers(4)], shift, (0, 1))
            yield np.clip(slide + grain, 0, 255).astype(np.uint8)


def _slide(number: int) -> NDArray[np.float32]:
    light = number % 3 != 1
    image = Image.new("RGB", (WIDTH, HEIGHT), (250, 248, 240) if light else (20, 30, 60))
    draw, ink = ImageDraw.Draw(image), (20, 20, 20) if light else (240, 240, 240)
    draw.text((60, 40), f"Lecture, part {number + 1}", fill=ink, font=ImageFont.load_default(size=56))
    for line in range(5):
        text = f"- what is said in line {line + 1} of part {number + 1}, and why it matters"
        draw.text((80, 160 + 90 * line), text, fill=ink, font=ImageFont.load_default(size=30))
    if number % 2:
        draw.rectangle((860, 300, 1200, 600), fill=(30 * number, 90, 255 - 30 * number))
    return np.asarray(image, np.float32)


if __name__ == "__main__":
    main()
