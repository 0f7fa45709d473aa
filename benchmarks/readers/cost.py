"""What each step of indexing costs on a film of 1280 x 720, by CPU time.

    python benchmarks/readers/cost.py [--minutes 3] [--keyframes 10] [--encoder conse-lite1] [--videos FOLDER]

The film is made of the clips of real files, a title card every half minute, and the spoken sentences of the
tests, over and over. Rows: steps, with their CPU seconds for an hour of such film and their share.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.table import Table
from text import TEXTS, VIDEOS, card

from moviola import Library
from moviola.library import IngestProgress
from moviola.media import write_video

SPEECH = Path(__file__).resolve().parents[2] / "tests" / "data" / "speech.ogg"
CLIPS = ("moviepy_big_buck_bunny_0_30.webm", "intel_car-detection.mp4", "intel_bottle-detection.mp4")
RATE, SOUND_RATE = 25, 16_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--keyframes", type=float, default=10, help="most seconds between two key frames")
    parser.add_argument("--encoder", default="conse-lite1")
    parser.add_argument("--videos", type=Path, default=VIDEOS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        films = Path(scratch) / "films"
        films.mkdir()
        count = round(options.minutes * 60 * RATE)
        write_video(
            films / "film.mp4", islice(_pictures(options.videos), count), rate=RATE,
            keyframe_every=options.keyframes, sound=np.resize(_sound(), count * SOUND_RATE // RATE),
            sound_rate=SOUND_RATE,
        )  # fmt: skip
        steps = _cost(Path(scratch) / "library", films, options.encoder)
    table = Table(
        title=f"an hour like {options.minutes:g} minutes of 720p, key frames every {options.keyframes:g} s"
    )
    for column in ("step", "CPU s", "share"):
        table.add_column(column)
    hour = 60 / options.minutes
    for step, seconds in steps.items():
        table.add_row(step, f"{seconds * hour:.0f}", f"{seconds / sum(steps.values()):.0%}")
    Console(width=110).print(table)


def _cost(library: Path, films: Path, encoder: str) -> dict[str, float]:
    """CPU seconds of each step."""
    spent: dict[str, float] = {"pictures": 0.0, "text": 0.0, "speech": 0.0}
    last = _used()

    def on_progress(progress: IngestProgress) -> None:
        nonlocal last
        spent[progress.step] += _used() - last
        last = _used()

    with Library(library, encoder=encoder) as opened:
        assert opened.encoder is not None
        opened.encoder.encode_text(["what is loaded once is not counted"])
        last = _used()
        opened.index(films, ocr=True, speech="pocketsphinx", progress=on_progress)
        spent["indexes"] = _used() - last
    return spent


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _pictures(videos: Path) -> Iterator[NDArray[np.uint8]]:
    for name, number in zip(cycle(CLIPS), range(1_000_000), strict=False):
        with av.open(str(videos / name)) as container:
            for frame in islice(container.decode(video=0), 26 * RATE):
                yield np.asarray(frame.reformat(1280, 720, "rgb24").to_ndarray(), dtype=np.uint8)
        title = Image.fromarray(card(TEXTS[number % len(TEXTS)], 40, "smooth", number)).resize((1280, 720))
        yield from (np.asarray(title) for _ in range(4 * RATE))


def _sound() -> NDArray[np.float32]:
    resampler = av.AudioResampler(format="flt", layout="mono", rate=SOUND_RATE)
    with av.open(str(SPEECH), "r") as container:
        frames = [made for frame in container.decode(audio=0) for made in resampler.resample(frame)]
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])


if __name__ == "__main__":
    main()
