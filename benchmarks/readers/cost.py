"""What each step of indexing costs on a film of 1280 x 720, by CPU time, and how fast all but speech is.

    OMP_NUM_THREADS=1 python benchmarks/readers/cost.py [--minutes 3] [--keyframes 10] [--encoder conse-lite1]

The film is made of the clips of real files, a title card every half minute, and the spoken sentences of the
tests, over and over. Rows: steps, each run by itself, with their CPU seconds for an hour of such film and
their share. Then the film is indexed without speech: seconds on the clock and of CPU time. On one thread no
time is spent in waiting for other threads, which counts as CPU time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice, pairwise
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.table import Table
from text import TEXTS, VIDEOS, card

from moviola import Library
from moviola.encoders import load_encoder
from moviola.encoders.readers import load_speech_reader, load_text_reader, voiced
from moviola.library.ingest.screen_text import looks, read_text
from moviola.library.ingest.speech import read_speech
from moviola.media import find_transitions, sample_frames, sample_stills, write_video
from moviola.types import Span

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
        steps = _cost(films / "film.mp4", options.encoder)
        clock, used = _indexed(Path(scratch) / "library", films, options.encoder)
    table = Table(
        title=f"an hour like {options.minutes:g} minutes of 720p, key frames every {options.keyframes:g} s"
    )
    for column in ("step", "CPU s", "share"):
        table.add_column(column)
    hour = 60 / options.minutes
    for step, seconds in steps.items():
        table.add_row(step, f"{seconds * hour:.0f}", f"{seconds / sum(steps.values()):.0%}")
    console = Console(width=110)
    console.print(table)
    length = options.minutes * 60
    console.print(
        f"indexed without speech in {clock:.0f} s, {length / clock:.1f} times as fast as it runs; "
        f"{used:.0f} s of CPU time"
    )


def _cost(film: Path, encoder_name: str) -> dict[str, float]:
    """CPU seconds of each step."""
    spent: dict[str, float] = {}

    @contextmanager
    def step(name: str) -> Iterator[None]:
        started = time.process_time()
        yield
        spent[name] = time.process_time() - started

    encoder, text, speech = load_encoder(encoder_name), load_text_reader(), load_speech_reader("pocketsphinx")
    side = text.longest_side
    # What is loaded once is not counted.
    encoder.encode_frames(np.zeros((1, encoder.frame_size.height, encoder.frame_size.width, 3), np.uint8))
    text.read(card(TEXTS[0], 40, "smooth", 0))
    list(speech.read(voiced([_sound()[: 2 * SOUND_RATE]])))
    with step("decode a frame a second"), sample_frames(film, rate=1.0, size=encoder.frame_size) as stream:
        images = np.stack([frame.image for frame in stream])
    with step("shots besides"):
        found = find_transitions(film, rate=1.0, size=encoder.frame_size)
    spent["shots besides"] -= spent["decode a frame a second"]
    with step("pictures: encode"):
        for first in range(0, len(images), 32):
            encoder.encode_frames(images[first : first + 32])
    edges = [0.0, *(shot.time for shot in found), float(len(images))]
    shots = [Span(start, end) for start, end in pairwise(edges)]
    times = [look.time for look in looks(shots)]
    with step("text: decode stills"), sample_stills(film, times, longest_side=side) as stills:
        for _ in stills:
            pass
    with step("text: read"):
        read_text(film, shots, text, lambda _: None)
    spent["text: read"] -= spent["text: decode stills"]
    with step("speech"):
        read_speech(film, float(len(images)), speech, lambda _: None)
    return spent


def _indexed(library: Path, films: Path, encoder: str) -> tuple[float, float]:
    """Seconds on the clock, and of CPU time, in which a library of films is made, without speech."""
    started, used = time.perf_counter(), time.process_time()
    with Library(library, encoder=encoder) as opened:
        opened.index(films, ocr=True)
    return time.perf_counter() - started, time.process_time() - used


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
