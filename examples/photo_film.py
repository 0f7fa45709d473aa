"""A short film of photographs, with everything that is shown, written and said in it written down.

    python examples/photo_film.py FOLDER

The photographs come with scikit-image, inside its wheel: nothing is fetched. A camera pans and zooms over
them, shots are cut or dissolve into each other, title cards stand between, and a synthetic voice says
sentences that have nothing to do with the pictures (``tests/data/speech.ogg``). ``photo-film.json`` beside
the film says what is true: which shot lasts from when to when, what it shows, which lines of text are in it,
and what is said. Same versions of the libraries, same bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from moviola.errors import MissingDependency
from moviola.files.writing import write_json
from moviola.media import write_video
from moviola.types import Span

NAME = "photo-film"
RATE = 15
SIZE = (640, 360)
# Sentences, with a list beside it of when which is said; seconds of a shot before its sentence.
SPEECH = Path(__file__).resolve().parent.parent / "tests" / "data" / "speech.ogg"
SOUND_RATE, SILENCE = 16_000, 1.0
STATION = "we will meet at the train station on monday morning"
UMBRELLA = "the lighthouse keeper lost his umbrella in the storm"
FOOTBALL = "the children are playing football in the garden"
# Of title cards.
BACKGROUND, INK = (28, 36, 58), (240, 236, 220)

Picture = NDArray[np.uint8]
Sound = NDArray[np.float32]


@dataclass(frozen=True)
class Photograph:
    """A file of scikit-image's data, what it shows, and what its documentation says of its rights."""

    file: str
    shows: str
    rights: str


PHOTOGRAPHS = (
    Photograph("astronaut.png", "an astronaut", "public domain, NASA"),
    Photograph("brick.png", "a brick wall", "CC0, cc0textures.com"),
    Photograph("camera.png", "a man with a camera", "CC0, Lav Varshney"),
    Photograph("chelsea.png", "a cat", "CC0, Stefan van der Walt"),
    Photograph("coffee.png", "a cup of coffee", "CC0, Rachel Michetti"),
    Photograph("coins.png", "old coins", "no known restrictions, Brooklyn Museum"),
    Photograph("grass.png", "grass", "CC0, linolafett"),
    Photograph("hubble_deep_field.jpg", "stars and galaxies", "public domain, NASA"),
    Photograph("retina.jpg", "the inside of an eye", "CC0, Wikimedia Commons"),
    Photograph("rocket.jpg", "a rocket", "public domain, SpaceX"),
)


@dataclass(frozen=True)
class View:
    """Where the camera looks.

    ``zoom`` 1 is the largest part of the photograph that fills the film's picture, more is a smaller part;
    ``x`` and ``y`` say where that lies, from 0 (left, top) to 1.
    """

    x: float = 0.5
    y: float = 0.5
    zoom: float = 1.0


@dataclass(frozen=True)
class Shot:
    """A photograph that the camera moves over, or, with ``text``, a title card; and a sentence that is said.

    A dissolve takes the shot's first ``dissolve`` seconds, in which the shot before it goes on below it.
    """

    seconds: float
    photograph: str = ""
    begin: View = View()
    end: View = View()
    text: tuple[str, ...] = ()
    dissolve: float = 0.0
    said: str = ""


FILM = (
    Shot(3, text=("TEN PHOTOGRAPHS", "a film without a camera")),
    Shot(6, "chelsea.png", View(zoom=1.0), View(0.45, 0.4, 1.7), dissolve=1),
    Shot(6, "coffee.png", View(1, 1, 1.4), View(0.5, 0.2, 1.1)),
    Shot(5, "brick.png", View(0, 0, 1.5), View(1, 0.3, 1.5), dissolve=1, said=STATION),
    Shot(4, "chelsea.png", View(0.9, 0.5, 1.6), View(0.2, 0.5, 1.6)),
    Shot(3, text=("To the stars", "and back again"), dissolve=1),
    Shot(7, "astronaut.png", View(0.5, 0.6, 1.0), View(0.5, 0, 1.3)),
    Shot(6, "rocket.jpg", View(0.5, 1, 1.0), View(0.5, 0.6, 2.0), dissolve=1.2),
    Shot(6, "hubble_deep_field.jpg", View(0, 0, 1.2), View(0.6, 0.8, 1.8)),
    Shot(4, "rocket.jpg", View(0, 0.5, 1.8), View(1, 0.5, 1.8)),
    Shot(3, text=("Look closely",)),
    Shot(5, "coins.png", View(0, 0.5, 1.3), View(1, 0.5, 1.3), said=UMBRELLA),
    Shot(6, "camera.png", View(0.1, 0.3, 1.6), View(0.5, 0.3, 1.0), dissolve=0.8),
    Shot(5, "retina.jpg", View(zoom=1.0), View(0.1, 0.5, 2.0)),
    Shot(5, "grass.png", View(0.3, 0.9, 1.5), View(0.6, 0, 1.2), dissolve=1, said=FOOTBALL),
    Shot(3, text=("THE END",)),
)


@dataclass(frozen=True)
class Label:
    """What a film shows in ``[start, end)`` seconds, both times of frames.

    Attributes:
        start: of the shot's first frame; it stands alone ``dissolve`` seconds later.
        end: where the next one begins or the film ends.
        dissolve: 0 after a cut.
        photograph: its file, or empty.
        shows: what is on it, or empty.
        text: lines that stand in the picture, from top to bottom.
        said: what is said, or empty.
    """

    start: float
    end: float
    dissolve: float
    photograph: str
    shows: str
    text: tuple[str, ...]
    said: str = ""

    @property
    def span(self) -> Span:
        """From the shot's first frame to the next one's."""
        return Span(self.start, self.end)


def make_film(
    folder: Path, shots: Sequence[Shot] = FILM, size: tuple[int, int] = SIZE, rate: float = RATE
) -> list[Label]:
    """Write ``photo-film.mp4`` and ``photo-film.json`` into a folder, which is made if it is missing.

    Args:
        folder: where to.
        shots: in order; the first one cannot dissolve.
        size: width and height in pixels, both even.
        rate: frames a second; lengths are rounded to whole frames.

    Returns:
        What the JSON file holds: one label per shot.

    Raises:
        MissingDependency: scikit-image is not installed.
        InvalidValue: the files cannot be written.
    """
    shows = {photograph.file: photograph.shows for photograph in PHOTOGRAPHS}
    labels, first = [], 0
    for shot in shots:
        stop = first + _frames(shot.seconds, rate)
        lasts = _frames(shot.dissolve, rate) / rate
        about = (shot.photograph, shows.get(shot.photograph, ""), shot.text, shot.said)
        labels.append(Label(first / rate, stop / rate, lasts, *about))
        first = stop
    sound = _sound(labels) if any(label.said for label in labels) else None
    pictures = _pictures(shots, size, rate)
    write_video(folder / f"{NAME}.mp4", pictures, rate=rate, sound=sound, sound_rate=SOUND_RATE)
    write_json(folder / f"{NAME}.json", [asdict(label) for label in labels], indent=1)
    return labels


def _frames(seconds: float, rate: float) -> int:
    return round(seconds * rate)


def _pictures(shots: Sequence[Shot], size: tuple[int, int], rate: float) -> Iterator[Picture]:
    """All pictures of a film."""
    below: list[Picture] = []  # what the shot before still shows while this one appears
    for number, shot in enumerate(shots):
        length = _frames(shot.seconds, rate)
        longer = _frames(shots[number + 1].dissolve, rate) if number + 1 < len(shots) else 0
        source = _card(shot.text, size) if shot.text else _photograph(shot.photograph)
        moments = np.linspace(0, 1, length + longer)
        for place, moment in enumerate(moments[:length]):
            picture = _seen(source, shot, float(moment), size)
            share = (place + 1) / (len(below) + 1)
            yield _mixed(below[place], picture, share) if place < len(below) else picture
        below = [_seen(source, shot, float(moment), size) for moment in moments[length:]]


def _sound(labels: Sequence[Label]) -> Sound:
    """All samples (n,) of a film: silence, and each sentence in its shot."""
    sound = np.zeros(round(labels[-1].end * SOUND_RATE), np.float32)
    for label in labels:
        if label.said:
            sentence = _sentences()[label.said]
            first = round((label.start + SILENCE) * SOUND_RATE)
            sound[first : first + len(sentence)] = sentence[: len(sound) - first]
    return sound


@cache
def _sentences() -> dict[str, Sound]:
    """What the synthetic voice says: samples (n,) by sentence."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=SOUND_RATE)
    with av.open(str(SPEECH), "r") as container:
        frames = [made for frame in container.decode(audio=0) for made in resampler.resample(frame)]
    samples = np.concatenate([frame.to_ndarray()[0] for frame in (*frames, *resampler.resample(None))])
    lines = [line.split(maxsplit=2) for line in SPEECH.with_suffix(".txt").read_text("utf-8").splitlines()]
    return {
        sentence: np.asarray(
            samples[round(float(start) * SOUND_RATE) : round(float(end) * SOUND_RATE)], np.float32
        )
        for start, end, sentence in lines
    }


def _photograph(file: str) -> Image.Image:
    package = find_spec("skimage")
    if package is None or package.origin is None:
        raise MissingDependency("scikit-image is not installed", "demo")
    with Image.open(Path(package.origin).parent / "data" / file) as image:
        return image.convert("RGB")


def _card(text: Sequence[str], size: tuple[int, int]) -> Image.Image:
    """Lines of text in the middle of a plain picture, the first one larger."""
    card = Image.new("RGB", size, BACKGROUND)
    draw = ImageDraw.Draw(card)
    heights = [size[1] / 8, *[size[1] / 14] * (len(text) - 1)]
    y = (size[1] - 1.5 * sum(heights)) / 2
    for line, height in zip(text, heights, strict=True):
        draw.text((size[0] / 2, y), line, INK, ImageFont.load_default(height), anchor="ma")
        y += 1.5 * height
    return card


def _seen(source: Image.Image, shot: Shot, moment: float, size: tuple[int, int]) -> Picture:
    """What the camera sees of a photograph or card at a moment of a shot, from 0 to 1."""
    x, y, zoom = (
        (1 - moment) * begin + moment * end
        for begin, end in (
            (shot.begin.x, shot.end.x),
            (shot.begin.y, shot.end.y),
            (shot.begin.zoom, shot.end.zoom),
        )
    )
    scale = min(source.width / size[0], source.height / size[1]) / zoom
    width, height = size[0] * scale, size[1] * scale
    left, top = x * (source.width - width), y * (source.height - height)
    box = (left, top, min(left + width, source.width), min(top + height, source.height))
    return np.asarray(source.resize(size, Image.Resampling.BICUBIC, box=box))


def _mixed(below: Picture, above: Picture, share: float) -> Picture:
    return ((1 - share) * below + share * above + 0.5).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the film goes")
    labels = make_film(parser.parse_args().folder)
    print(f"{len(labels)} shots, {labels[-1].end:g} s")


if __name__ == "__main__":
    main()
