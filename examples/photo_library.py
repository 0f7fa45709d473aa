"""A library of four short films of photographs, in folders, one of them with subtitles.

    python examples/photo_library.py FOLDER

``FOLDER/films`` and ``FOLDER/photographs``. The films are made as in ``photo_film.py``; nothing is fetched.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from moviola import Library
from moviola.encoders import best_encoder
from photo_film import NAME, RATE, SIZE, Shot, View, make_film

FILMS: Mapping[str, Sequence[Shot]] = {
    "home/a cat.mp4": (
        Shot(6, "chelsea.png", View(zoom=1.0), View(0.45, 0.4, 1.7)),
        Shot(5, "grass.png", View(0.3, 0.9, 1.5), View(0.6, 0, 1.2), dissolve=1),
        Shot(5, "chelsea.png", View(0.9, 0.5, 1.6), View(0.2, 0.5, 1.6)),
    ),
    "home/breakfast.mp4": (
        Shot(3, text=("BREAKFAST", "on a Sunday")),
        Shot(7, "coffee.png", View(1, 1, 1.4), View(0.5, 0.2, 1.1)),
        Shot(5, "brick.png", View(0, 0, 1.5), View(1, 0.3, 1.5), dissolve=1),
        Shot(4, "coffee.png", View(0.2, 0.4, 1.6), View(0.6, 0.4, 1.3)),
    ),
    "work/launch.mp4": (
        Shot(7, "astronaut.png", View(0.5, 0.6, 1.0), View(0.5, 0, 1.3)),
        Shot(6, "rocket.jpg", View(0.5, 1, 1.0), View(0.5, 0.6, 2.0), dissolve=1.2),
        Shot(6, "hubble_deep_field.jpg", View(0, 0, 1.2), View(0.6, 0.8, 1.8)),
        Shot(5, "rocket.jpg", View(0, 0.5, 1.8), View(1, 0.5, 1.8)),
    ),
    "work/the collector.mp4": (
        Shot(6, "camera.png", View(0.1, 0.3, 1.6), View(0.5, 0.3, 1.0)),
        Shot(6, "coins.png", View(0, 0.5, 1.3), View(1, 0.5, 1.3), dissolve=0.8),
        Shot(5, "retina.jpg", View(zoom=1.0), View(0.1, 0.5, 2.0)),
    ),
}
SUBTITLES = {
    "work/launch.srt": """1
00:00:01,000 --> 00:00:05,000
She had trained for this day for eleven years.

2
00:00:08,000 --> 00:00:12,000
Then the rocket left the ground, and nobody spoke.

3
00:00:15,000 --> 00:00:18,500
Out there, every point of light is a galaxy.
"""
}


def make_library(folder: Path, *, size: tuple[int, int] = SIZE, rate: float = RATE) -> Path:
    """Make the films and index them with the best encoder that needs no download; text is not read in them.

    Args:
        folder: where ``films`` and the library, ``photographs``, go.
        size, rate: of the films, see :func:`photo_film.make_film`.

    Returns:
        The library's folder.

    Raises:
        MissingDependency: scikit-image or the encoder's weights are not installed.
    """
    films = folder / "films"
    for name, shots in FILMS.items():
        path = films / name
        make_film(path.parent, shots, size, rate)
        (path.parent / f"{NAME}.mp4").replace(path)
        (path.parent / f"{NAME}.json").unlink()
    for name, text in SUBTITLES.items():
        (films / name).write_text(text, encoding="utf-8")
    with Library(folder / "photographs", encoder=best_encoder().name) as library:
        library.index(films, ocr=False)
    return library.folder


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the films and the library go")
    print(make_library(parser.parse_args().folder))


if __name__ == "__main__":
    main()
