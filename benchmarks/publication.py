"""What one video more costs: the facts of videos that filters choose by, and their names.

    python benchmarks/publication.py --videos 20000 --work bench [--json figures.json]

A library of made videos without pictures, with folders, cameras, places, days, languages and names of two
words of a vocabulary of 4,000; a vector of a name is made of its text. Then videos are put in one by one, and
each time the library is published as a writer does it: once what filters choose by, once the names. Each
publication is a new process; bytes are those of files that were not there before, manifests included; memory
is the high water of the process less what it had after opening the library and publishing nothing.
``publication.json`` has figures before and after facts of videos, and names, lay in parts.
"""

from __future__ import annotations

import json
import shutil
import time
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measuring import alone, arguments, say
from moviola.library import LibraryStore, VideoRow
from moviola.library.derived.name_table import publish_names
from moviola.search.filters import COLUMNS
from moviola.types import Capture
from scale.measured import high_water

DIM, WORDS = 384, 4_000


class MadeVectors:
    """A sentence encoder: unit vectors that depend on the text alone."""

    def encode_text(self, texts: list[str]) -> NDArray[np.float32]:
        seeds = (zlib.crc32(text.encode()) for text in texts)
        rows = np.stack([np.random.default_rng(seed).normal(size=DIM) for seed in seeds]).astype(np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def main() -> None:
    options = arguments(__doc__, videos=[20_000], more=8, work=Path("benchmark-publication"), json=None)
    found = {str(count): measured(options.work, count, options.more) for count in options.videos}
    print(json.dumps(found, indent=1))
    say(found, options.json)


def measured(work: Path, videos: int, more: int) -> dict[str, Any]:
    """Of a publication of one video more: figures by what is published."""
    folder = work / f"library-{videos}"
    if not (folder / "moviola.toml").is_file():
        alone(make, folder, videos)
    copied = work / "grown"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(folder, copied)
    each = [alone(publish_one, copied, videos + number) for number in range(more)]
    summary: dict[str, Any] = {}
    for what in ("columns", "names"):
        own = [one[what] for one in each]
        summary[what] = {
            "bytes": round(mean(one["bytes"] for one in own)),
            "cpu_ms": round(median(one["cpu_ms"] for one in own), 1),
            "peak_mb": round(max(one["peak_mb"] for one in own), 1),
        }
    return summary


def opened(folder: Path) -> LibraryStore:
    store = LibraryStore(folder, encoder="demo", sentence_encoder="minilm", columns=COLUMNS)
    setattr(type(store.encoders), "sentences_of_all", MadeVectors())  # noqa: B010 - a property
    return store


def make(folder: Path, videos: int) -> None:
    with opened(folder) as store:
        with store.writing(), store.catalogue.transaction():
            for number in range(videos):
                put(store, number)
        with store.writing():
            publish_names(store)


def publish_one(folder: Path, number: int) -> dict[str, dict[str, float]]:
    """Put in one video, and say what each publication took."""
    with opened(folder) as store:
        with store.writing():
            publish_names(store)
        found = {}
        for what in ("columns", "names"):
            there, before = files(folder), high_water()
            with store.writing():
                if what == "columns":
                    with store.catalogue.transaction():
                        put(store, number)
                began = time.process_time()
                if what == "names":
                    publish_names(store)
                    taken = time.process_time() - began
            if what == "columns":
                taken = time.process_time() - began
            new = files(folder).items() - there.items()
            found[what] = {
                "bytes": sum(size for _, (size, _, _) in new), "cpu_ms": 1e3 * taken,
                "peak_mb": high_water() - before,
            }  # fmt: skip
    return found


def files(folder: Path) -> dict[Path, tuple[int, int, int]]:
    about = ((path, path.stat()) for path in (folder / "cache").rglob("*") if path.is_file())
    return {path: (one.st_size, one.st_ino, one.st_mtime_ns) for path, one in about}


def put(store: LibraryStore, number: int) -> None:
    draw = np.random.default_rng(number)
    changed = datetime(2015, 1, 1, tzinfo=UTC) + timedelta(minutes=float(draw.integers(0, 5_000_000)))
    first, second = (f"w{word(one)}" for one in draw.integers(0, WORDS, 2).tolist())
    place = f"/films/{number % 7}/{number // 7 % 30}/{number // 210 % 12}"
    name = f"{first}_{second}_{number:07d}"
    row = store.catalogue.put(
        VideoRow(
            0, name, f"{place}/{name}.mp4", 1, int(changed.timestamp()) * 10**9, f"{number:032x}", "",
            "ready", duration=10.0 + number % 100, width=640, height=360, codec="h264",
        ), [],
    ).row  # fmt: skip
    make, model = (("Canon", "EOS"), ("SONY", "A7"), ("Apple", "iPhone 15"))[number % 3]
    north, east = float(draw.uniform(36, 60)), float(draw.uniform(-10, 30))
    taken = changed.replace(tzinfo=None).isoformat() + "+02:00"
    store.catalogue.put_captures({row: Capture(taken, "tags", north, east, make, model)})


def word(number: int) -> str:
    """A word without meaning, another one for each number."""
    letters = ""
    for _ in range(5):
        number, letter = divmod(number, 16)
        letters += "bdfgklmnprstvxzj"[letter] + "aeiou"[letter % 5]
    return letters


if __name__ == "__main__":
    main()
