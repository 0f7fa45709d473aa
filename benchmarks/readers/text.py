"""Words found on title cards made here, and what is read in the pictures of real files.

    python benchmarks/readers/text.py [--videos FOLDER]

The first table: share of words that are read on cards of 1280 x 720, by height of the letters, on a plain, a
smooth and a restless ground; wrong words a card without a word on it; CPU milliseconds a card, one thread.
The second: the text cues of each file of a folder. Then the share of their stills, one a second, that a
network looks at, since something in them is like a row of strokes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.table import Table

from moviola.encoders.readers import TextReader, load_text_reader
from moviola.encoders.readers.rapid import has_strokes
from moviola.errors import MediaError
from moviola.library.ingest.screen_text import looks, read_text
from moviola.media import find_videos, probe, sample_stills
from moviola.types import Span

VIDEOS = Path(__file__).resolve().parents[3] / "shared" / "videos"
FONTS = ("DejaVuSans.ttf", "DejaVuSerif-Italic.ttf", "DejaVuSansMono-Bold.ttf")
TEXTS = (
    "The Harbour at Dawn", "A film by Anna Larsson", "Chapter Two: The Storm", "Please mind the gap",
    "Breaking news: bridge closed until Monday", "Directed by Jonas Meyer", "Reykjavik, 14 March 1968",
    "Exit only - no return", "To be continued", "Dr. Maria Keller, marine biologist",
)  # fmt: skip
HEIGHTS = (16, 24, 40, 72)
GROUNDS = ("plain", "smooth", "restless")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of real files")
    options = parser.parse_args()
    reader, console = load_text_reader(), Console(width=110)
    table = Table(title=f"{reader.id} {reader.revision}: words read on title cards")
    for column in ("ground", *(f"{height} px" for height in HEIGHTS), "wrong on none", "ms"):
        table.add_column(column)
    for ground in GROUNDS:
        table.add_row(ground, *_card_row(reader, ground))
    console.print(table)
    looked_at: list[bool] = []
    table = Table(title="read in real files")
    for column in ("file", "from", "to", "text", "sure"):
        table.add_column(column, overflow="fold")
    for path in find_videos(options.videos):
        try:
            whole = Span(0, probe(path).duration or 1.0)
            cues = read_text(path, [whole], reader, lambda _: None)
            looked_at += _looked_at(path, whole, reader.longest_side)
        except MediaError:
            continue
        for cue in cues:
            text = cue.text.replace("\n", " / ")
            table.add_row(path.name, f"{cue.start:.1f}", f"{cue.end:.1f}", text, f"{cue.confidence:.2f}")
    console.print(table)
    console.print(f"{np.mean(looked_at):.2f} of {len(looked_at)} stills are looked at by a network")


def _looked_at(path: Path, whole: Span, side: int) -> list[bool]:
    """Of one still a second, whether there may be letters in it."""
    times = [look.time for look in looks([whole], every=1.0)]
    with sample_stills(path, times, longest_side=side) as stills:
        return [has_strokes(still.image) for still in stills]


def _card_row(reader: TextReader, ground: str) -> list[str]:
    row, cards = [], 0
    started = time.process_time()
    for height in HEIGHTS:
        read = total = 0
        for number, text in enumerate(TEXTS):
            found = _words(reader, card(text, height, ground, number))
            words = text.lower().split()
            read, total = read + sum(word in found for word in words), total + len(words)
            cards += 1
        row.append(f"{read / total:.3f}")
    empty = sum(len(_words(reader, card("", 16, ground, number))) for number in range(len(TEXTS)))
    milliseconds = 1000 * (time.process_time() - started) / (cards + len(TEXTS))
    return [*row, f"{empty / len(TEXTS):.2f}", f"{milliseconds:.0f}"]


def _words(reader: TextReader, picture: NDArray[np.uint8]) -> list[str]:
    return " ".join(line.text for line in reader.read(picture)).lower().split()


def card(text: str, height: int, ground: str, seed: int) -> NDArray[np.uint8]:
    """A picture of 960 x 540, as a reader gets one of 1280 x 720, with a line of text on it."""
    generator = np.random.default_rng(seed)
    fields = {"plain": (1, 1), "smooth": (9, 16), "restless": (90, 160)}[ground]
    colours = Image.fromarray(generator.integers(0, 200, (*fields, 3)).astype(np.uint8))
    image = colours.resize((1280, 720), Image.Resampling.BICUBIC)
    font = ImageFont.truetype(
        str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / FONTS[seed % len(FONTS)]), height
    )
    place = (int(generator.integers(20, 100)), int(generator.integers(20, 600)))
    ImageDraw.Draw(image).text(
        place, text, font=font, fill=(250, 250, 240), stroke_width=max(1, height // 16), stroke_fill=(0, 0, 0)
    )
    return np.asarray(image.resize((960, 540), Image.Resampling.BICUBIC))


if __name__ == "__main__":
    main()
