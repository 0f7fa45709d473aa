"""How many pictures with and without words pass the test that comes before the networks.

    python benchmarks/readers/strokes.py [--words 300] [--videos FOLDER]

Words of several typefaces and sizes are put on stills of real files in three ways. Rows: these, and the
stills as they are; columns: those in which the networks read the word (or anything) when the test holds
nothing back, and the share of them that passes it; those in which they do not, likewise.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import matplotlib
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.table import Table
from text import FONTS, TEXTS, VIDEOS

from moviola.encoders.readers import load_text_reader
from moviola.encoders.readers.rapid import has_strokes
from moviola.errors import MediaError
from moviola.library.ingest.screen_text import looks
from moviola.media import find_videos, probe, sample_stills
from moviola.types import Span

WORDS = ("END", "90", "EXIT", "Paris", "ACT II", "BBC", "Chapter 3", "LIVE", "NO", *TEXTS[:5])
SMALLEST, LARGEST = 12, 160
WAYS = ("any colour", "outlined", "on a bar, low contrast")

Picture = NDArray[np.uint8]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--words", type=int, default=300)
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of real files")
    options = parser.parse_args()
    with patch("moviola.encoders.readers.rapid.has_strokes", return_value=True):  # nothing is held back
        report(options.videos, options.words)


def report(videos: Path, words: int) -> None:
    """Print the table."""
    reader, random = load_text_reader(), np.random.default_rng(1)
    passed: dict[str, dict[bool, list[bool]]] = defaultdict(lambda: {True: [], False: []})
    grounds = []
    for still in stills(videos, reader.longest_side):
        read = bool(reader.read(still))
        passed["as they are"][read].append(has_strokes(still))
        if not read:
            grounds.append(still)
    for number in range(words):
        text, way = WORDS[random.integers(len(WORDS))], WAYS[number % len(WAYS)]
        picture = with_word(grounds[random.integers(len(grounds))], text, way, random)
        found = "".join(line.text for line in reader.read(picture)).replace(" ", "").lower()
        passed[way][text.replace(" ", "").lower() in found].append(has_strokes(picture))
    table = Table(title=f"{len(grounds)} stills without a word, {words} words on them")
    for column in ("pictures", "read", "passed of read", "not read", "passed of not read"):
        table.add_column(column)
    for name, results in passed.items():
        row = [text for read in (True, False) for text in (str(len(results[read])), share(results[read]))]
        table.add_row(name, *row)
    Console(width=110).print(table)


def share(passed: list[bool]) -> str:
    return f"{np.mean(passed):.2f}" if passed else ""


def stills(videos: Path, side: int) -> Iterator[Picture]:
    """A still a second of all files of a folder that are large enough to be read."""
    for path in find_videos(videos):
        try:
            times = [look.time for look in looks([Span(0, probe(path).duration or 1.0)], every=1.0)]
            with sample_stills(path, times, longest_side=side) as frames:
                yield from (frame.image for frame in frames if min(frame.image.shape[:2]) >= 200)
        except MediaError:
            continue


def with_word(still: Picture, text: str, way: str, random: Generator) -> Picture:
    """A still with a word somewhere on it, smaller where it would not fit."""
    image = Image.fromarray(still)
    draw = ImageDraw.Draw(image)
    pixels = np.exp(random.uniform(np.log(SMALLEST), np.log(LARGEST)))
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / FONTS[random.integers(len(FONTS))]
    widest = ImageFont.truetype(str(path), 100).getlength(text) / 100
    pixels = int(min(pixels, 0.9 * image.width / widest, 0.7 * image.height))
    font = ImageFont.truetype(str(path), pixels)
    left = random.uniform(0.02 * image.width, 0.98 * image.width - font.getlength(text))
    top = random.uniform(0, image.height - 1.3 * pixels)
    if way == "any colour":
        red, green, blue = random.integers(0, 256, 3).tolist()
        draw.text((left, top), text, (red, green, blue), font)
    elif way == "outlined":
        edge = max(1, pixels // 14)
        draw.text((left, top), text, (245, 245, 240), font, stroke_width=edge, stroke_fill=(0, 0, 0))
    else:
        bar = int(random.integers(90, 165))
        ink = bar + int(random.choice([-1, 1]) * random.integers(30, 90))
        draw.rectangle((left - 5, top - 3, left + font.getlength(text) + 5, top + 1.3 * pixels), (bar,) * 3)
        draw.text((left, top), text, (ink,) * 3, font)
    return np.asarray(image)


if __name__ == "__main__":
    main()
