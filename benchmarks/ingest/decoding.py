"""What finding shots takes on a film, beside decoding it to nothing, and on another checkout.

    python benchmarks/ingest/decoding.py FILM [--beside CHECKOUT] [--turns 3] [--out decoding.json]

Seconds of processor time, each the least of some turns, in which the checkouts and the ways take turns:
decoding to nothing by PyAV and by ffmpeg (if installed), one thread each; the frames of every second; these
and all shots, as an indexing run finds them; an indexing run with the encoder ``--encoder``, without speech,
text and sounds; and one that reads text in pictures, too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

WAYS = ("null", "ffmpeg", "frames", "shots", "index", "text")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("film", type=Path)
    parser.add_argument("--beside", type=Path, help="another checkout")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--encoder", default="demo")
    parser.add_argument("--out", type=Path, help="a JSON file of the values, too")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measured(options.way, options.film, options.encoder)))
        return
    here = Path(__file__).resolve().parents[2]
    checkouts = {"now": here, **({"before": options.beside.resolve()} if options.beside else {})}
    ways = [way for way in WAYS if way != "ffmpeg" or shutil.which("ffmpeg")]
    values: dict[str, dict[str, dict[str, float]]] = {name: {} for name in checkouts}
    for _ in range(options.turns):
        for way in ways:
            for name, checkout in checkouts.items():
                value = turn(way, checkout, options)
                known = values[name].setdefault(way, value)
                values[name][way] = {key: min(number, known[key]) for key, number in value.items()}
    seconds = film_seconds(options.film)
    for way in ways:
        row = "".join(f"{name} {values[name][way]['cpu']:8.2f} s   " for name in checkouts)
        now = values["now"][way]["cpu"]
        ratio = f"{values['before'][way]['cpu'] / now:.2f} times as fast   " if options.beside else ""
        print(f"{way:8}{row}{ratio}{now / values['now']['null']['cpu']:.2f} of decoding")
    print(f"{seconds:.0f} s of film")
    if options.out:
        options.out.write_text(json.dumps({"seconds of film": seconds, **values}, indent=1) + "\n")


def turn(way: str, checkout: Path, options: argparse.Namespace) -> dict[str, float]:
    """What a fresh process measured of itself."""
    command = [sys.executable, __file__, str(options.film), "--way", way, "--encoder", options.encoder]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    values: dict[str, float] = json.loads(done.stdout)
    return values


def measured(way: str, film: Path, encoder: str) -> dict[str, float]:
    """Processor seconds, seconds and, where the whole process counts, MiB at the peak."""
    ways: dict[str, Callable[[], object]] = {
        "null": lambda: decode(film), "ffmpeg": lambda: ffmpeg(film), "frames": lambda: frames(film),
        "shots": lambda: shots(film), "index": lambda: index(film, encoder, read=False),
        "text": lambda: index(film, encoder, read=True),
    }  # fmt: skip
    import av  # noqa: F401  before the clock runs

    from moviola.media import find_transitions  # noqa: F401

    wall, used = time.perf_counter(), cpu()
    ways[way]()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu": cpu() - used, "wall": time.perf_counter() - wall, "MiB": peak}


def cpu() -> float:
    """Seconds of this process and those that it started."""
    return sum(os.times()[:4])


def film_seconds(film: Path) -> float:
    from moviola.media import length_of

    return length_of(film)


def decode(film: Path) -> None:
    import av

    with av.open(str(film)) as container:
        stream = container.streams.video[0]
        stream.thread_count = 1
        for _ in container.decode(stream):
            pass


def ffmpeg(film: Path) -> None:
    command = ["ffmpeg", "-v", "error", "-threads", "1", "-i", str(film), "-map", "0:v:0", "-f", "null", "-"]
    subprocess.run(command, check=True)


def frames(film: Path) -> None:
    from moviola.media import sample_frames
    from moviola.types import FrameSize

    with sample_frames(film, rate=1.0, size=FrameSize(224, 224, "crop", 224)) as stream:
        for _ in stream:
            pass


def shots(film: Path) -> None:
    from moviola.media import find_transitions
    from moviola.types import FrameSize

    find_transitions(film, rate=1.0, size=FrameSize(224, 224, "crop", 224))


def index(film: Path, encoder: str, *, read: bool) -> None:
    from moviola import Library

    with (
        tempfile.TemporaryDirectory() as folder,
        Library(Path(folder) / "library", encoder=encoder, sentence_encoder="none") as library,
    ):
        library.index(film, speech="none", sounds="none", ocr=read)


if __name__ == "__main__":
    main()
