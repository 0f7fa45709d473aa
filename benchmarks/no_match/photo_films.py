"""Films of photographs that packages carry, beside the real footage: nothing is fetched.

    python benchmarks/no_match/photo_films.py FOLDER

Each photograph of `photographs.csv` is a shot of four seconds, over which the camera comes a little closer.
Names of the films say nothing. scikit-image comes with `moviola[demo]`, matplotlib with `moviola[studies]`,
pygame with minigrid and scikit-learn with the tools of development.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from moviola.errors import MissingDependency
from moviola.media import write_video

PHOTOGRAPHS = Path(__file__).with_name("photographs.csv")
SECONDS, RATE, SIZE = 4, 10, (400, 360)
CLOSER = 1.15
"""How much closer the camera is at the end of a shot."""
UPPER = 0.2
"""Share of what is cut off that lies above: heads are at the top."""


@dataclass(frozen=True)
class Shot:
    """A photograph in ``film``, from ``start`` to ``end`` seconds; ``scene`` is its name in the labels."""

    film: str
    scene: str
    package: str
    file: str
    start: float
    end: float


def shots() -> list[Shot]:
    """All shots, film by film."""
    with PHOTOGRAPHS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = []
    for film, own in groupby(rows, key=lambda row: row["film"]):
        for place, row in enumerate(own):
            begin = place * SECONDS
            found.append(Shot(film, row["scene"], row["package"], row["file"], begin, begin + SECONDS))
    return found


def make_films(folder: Path) -> None:
    """Write the films into a folder. Raises MissingDependency: a package with photographs is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for film, own in groupby(shots(), key=lambda shot: shot.film):
        write_video(folder / f"{film}.mp4", pictures(list(own)), rate=RATE)


def pictures(film: Sequence[Shot]) -> Iterator[NDArray[np.uint8]]:
    """The pictures (h, w, 3) of a film."""
    for shot in film:
        photograph = read(shot)
        scale = min(photograph.width / SIZE[0], photograph.height / SIZE[1])
        for zoom in np.linspace(1, CLOSER, SECONDS * RATE).tolist():
            width, height = SIZE[0] * scale / zoom, SIZE[1] * scale / zoom
            left = max((photograph.width - width) / 2, 0)
            top = max((photograph.height - height) * UPPER, 0)
            box = (left, top, min(left + width, photograph.width), min(top + height, photograph.height))
            yield np.asarray(photograph.resize(SIZE, Image.Resampling.BICUBIC, box=box))


def read(shot: Shot) -> Image.Image:
    """A photograph out of its package, on white where it is transparent."""
    package = find_spec(shot.package)
    if package is None or package.origin is None:
        raise MissingDependency(
            f"{shot.package} is not installed; `pip install 'moviola[dev]'` brings what has photographs"
        )
    with Image.open(Path(package.origin).parent / shot.file) as image:
        picture = image.convert("RGBA")
    ground = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(ground, picture).convert("RGB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the films go")
    make_films(parser.parse_args().folder)
    print(f"{len(shots())} photographs")


if __name__ == "__main__":
    main()
