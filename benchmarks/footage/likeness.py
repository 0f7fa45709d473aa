"""Is a picture found again by its likes: features of pictures beside those that texts are compared with.

    python benchmarks/footage/likeness.py [--videos FOLDER] [--encoder conse-lite1] [--films 12] [--seed 5]

Films are cut from real clips (`cut_films.py`, cuts only). A query is the frame in the middle of a shot: as it
is, mirrored, cut to its middle, or all of that and darker. Relevant are all other shots that show the same
scene; in the first columns without those whose stretch of the clip touches the query's, so that no picture is
found as itself. A shot scores the mean of its best two frames, at one a second, as in search. Rows: features
that texts are compared with, and features of pictures; MRR and nDCG@10 over all shots.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cut_films import Film, make_films
from numpy.typing import NDArray
from report import VIDEOS
from rich.console import Console
from rich.table import Table

from moviola.encoders import FrameTextEncoder, PictureEncoder, load_encoder
from moviola.media import sample_frames

Images = NDArray[np.uint8]
Floats = NDArray[np.float32]

BEST = 2


@dataclass(frozen=True)
class Shown:
    """A shot of a film: the clip and scene that it shows, seconds of that clip, and pictures of it."""

    file: str
    scene: str
    start: float
    end: float
    images: Images

    def touches(self, other: Shown) -> bool:
        """Whether both show a moment of a clip, with a second to spare."""
        return self.file == other.file and self.start < other.end + 1 and other.start < self.end + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of real files")
    parser.add_argument("--encoder", default="conse-lite1")
    parser.add_argument("--films", type=int, default=12)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    encoder = load_encoder(options.encoder, device="cpu")
    with tempfile.TemporaryDirectory() as scratch:
        films = make_films(options.videos, Path(scratch), options.films, options.seed, "cut")
        shots = [shot for film in films for shot in shots_of(film, Path(scratch), encoder)]
    table = Table(title=f"{options.encoder}, {len(shots)} shots")
    for column in ("query", "features", *("MRR", "nDCG@10", "queries") * 2):
        table.add_column(column, justify="left" if column in ("query", "features") else "right")
    known = features_of(encoder, [shot.images for shot in shots])
    for name, changed in CHANGES.items():
        queries = features_of(encoder, [changed(middle(shot.images))[None] for shot in shots])
        for kind in known:
            apart = judged(shots, known[kind], queries[kind], touching=False)
            table.add_row(name, kind, *apart, *judged(shots, known[kind], queries[kind], touching=True))
    Console(width=120).print(table)


def shots_of(film: Film, folder: Path, encoder: FrameTextEncoder) -> list[Shown]:
    """The shots of a film with their pictures at one a second; those with none are left out."""
    with sample_frames(folder / film.file, rate=1.0, size=encoder.frame_size) as stream:
        frames = [(frame.time * film.rate, frame.image) for frame in stream]
    shots = []
    for shot in film.shots:
        own = [image for place, image in frames if shot.first + 1 <= place < shot.stop - 1]
        if own:
            end = shot.begin + (shot.stop - shot.first) / film.rate
            shots.append(Shown(shot.file, shot.scene, shot.begin, end, np.stack(own)))
    return shots


def features_of(encoder: FrameTextEncoder, groups: Sequence[Images]) -> dict[str, list[Floats]]:
    """Features of each group of pictures, by their kind."""
    bounds = np.cumsum([len(group) for group in groups])[:-1]
    images = np.concatenate(groups)
    if not isinstance(encoder, PictureEncoder):
        return {"as of texts": np.split(encoder.encode_frames(images), bounds)}
    texts, pictures = encoder.encode_pictures(images)
    return {"as of texts": np.split(texts, bounds), "of pictures": np.split(pictures, bounds)}


def judged(
    shots: Sequence[Shown], known: Sequence[Floats], queries: Sequence[Floats], *, touching: bool
) -> tuple[str, str, str]:
    """MRR, nDCG@10 and the number of queries that have something to find."""
    ranks, gains = [], []
    for place, shot in enumerate(shots):
        others = [
            other
            for other in range(len(shots))
            if other != place and (touching or not shot.touches(shots[other]))
        ]
        relevant = np.array([shots[other].scene == shot.scene for other in others])
        if not relevant.any():
            continue
        scores = [np.sort(known[other] @ queries[place][0])[-BEST:].mean() for other in others]
        found = relevant[np.argsort(-np.array(scores), kind="stable")]
        ranks.append(1 / (1 + int(found.argmax())))
        discounts = 1 / np.log2(np.arange(2, 12))
        gains.append(float(found[:10] @ discounts / discounts[: found.sum()].sum()))
    return f"{np.mean(ranks):.3f}", f"{np.mean(gains):.3f}", str(len(ranks))


# ---- pictures of a scene by another person ------------------------------------------------------------


def middle(images: Images) -> Images:
    """The picture in the middle of a shot."""
    picture: Images = images[len(images) // 2]
    return picture


def mirrored(image: Images) -> Images:
    """Left and right changed."""
    return image[:, ::-1]


def cut_out(image: Images) -> Images:
    """Three quarters of each side, made as large as the whole."""
    sides = image.shape[:2]
    rows, columns = (np.linspace(s / 8, s * 7 / 8, s, endpoint=False).astype(int) for s in sides)
    part: Images = image[rows][:, columns]
    return part


def darker(image: Images) -> Images:
    """Four fifths of the light."""
    return (image * 0.8).astype(np.uint8)


CHANGES: dict[str, Callable[[Images], Images]] = {
    "as it is": lambda image: image,
    "mirrored": mirrored,
    "cut out": cut_out,
    "all, and darker": lambda image: darker(cut_out(mirrored(image))),
}


if __name__ == "__main__":
    main()
