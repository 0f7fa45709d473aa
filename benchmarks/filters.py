"""What filters cost beside the same search without one, in a library of many videos.

    python benchmarks/filters.py LIBRARY [--videos 20200] [--clips 76] [--queries 12]

LIBRARY is made by the library's own functions if nothing is there: features of 512 numbers that walk about
in 64 dimensions, folders, cameras, places, days and tags; an encoder with a text tower of the size of CLIP
ViT-B/32's and random weights. Times depend on none of these values. A query is asked without a filter and
with each, in turns, each time with another text. Processor time of the searching thread and its helpers,
medians; ``first`` is the first query with a filter, and ``again`` are those with the same one. ``facets``
are counted once for a state of the library, here each time in a library that was just opened.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import numpy as np

from moviola.encoders.checkpoints import DEMO_FOLDER
from moviola.library import LibraryStore, VideoRow
from moviola.library.userdata.values import Mark
from moviola.search import Filter, Library
from moviola.types import Capture

DIM = 512
FILTERS = {
    "folder": "/films/3\n/films/5/1",
    "modified": "2019..2021",
    "video_length": "0..120",
    "taken": "2021..2023-05",
    "near": "48.0,11.0,700km",
    "camera": "canon\nsony",
    "tag": "favourite",
    "where": "0..50%",
}
PATTERN = {"folder": "*/1/*7.mp4"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--videos", type=int, default=20_200)
    parser.add_argument("--clips", type=int, default=76)
    parser.add_argument("--queries", type=int, default=12)
    parser.add_argument("--resident", action="store_true")
    options = parser.parse_args()
    if not (options.library / "moviola.toml").is_file():
        make_library(options.library, options.videos, options.clips)
    print(json.dumps(measured(options.library, options.queries, options.resident), indent=1))


def measured(folder: Path, queries: int, resident: bool) -> dict[str, dict[str, float]]:
    """Milliseconds of processor time, by filter."""
    chosen = {**{name: {name: text} for name, text in FILTERS.items()}, "pattern": PATTERN, "all": FILTERS}
    filters = {"": Filter(), **{name: Filter.parse(**texts) for name, texts in chosen.items()}}
    found: dict[str, dict[str, float]] = {}
    with Library(folder, read_only=True, resident=resident) as library:
        library.search("a first query")
        library.search("a second query")
        first = {name: spent(library, f"a first {name}", filter) for name, filter in filters.items()}
        again: dict[str, list[float]] = {name: [] for name in filters}
        for number in range(queries):
            for name, filter in filters.items():
                again[name].append(spent(library, f"a dog runs along the river {number}{name}", filter))
    plain = median(again[""])
    for name in filters:
        own = median(again[name])
        found[name or "none"] = {
            "first": round(first[name], 1), "again": round(own, 1),
            "first ratio": round(first[name] / plain, 2), "again ratio": round(own / plain, 2),
        }  # fmt: skip
    with Library(folder, read_only=True) as library:
        began = time.process_time()
        library.facets()
        found["facets"] = {"first": round(1000 * (time.process_time() - began), 1)}
    return found


def spent(library: Library, text: str, filter: Filter) -> float:
    """Milliseconds of processor time of a search."""
    began = time.process_time()
    library.search(text, filter=filter)
    return 1000 * (time.process_time() - began)


def make_library(folder: Path, videos: int, clips: int) -> None:
    """Write a library as it would be after indexing; see the top."""
    encoder = random_vit(folder.with_name(f"{folder.name}-encoder"))
    with LibraryStore(folder, encoder=str(encoder)) as store, store.writing():
        put_videos(store, videos, clips)
    with Library(folder) as library:
        library.index(encoder)  # no video lies there; what follows from videos is written
        for number in range(0, min(videos, 5000), 10):
            library.userdata.mark(Mark(video_id=f"{number:06d}"), add=["favourite"])


def random_vit(folder: Path) -> Path:
    """A CLIP ViT-B/32 with random weights, and the demo's tokenizer."""
    import torch
    from transformers import CLIPConfig
    from transformers.models.clip.modeling_clip import CLIPModel

    torch.manual_seed(0)
    text = json.loads((DEMO_FOLDER / "config.json").read_text())["text_config"]
    known = {"vocab_size": text["vocab_size"], "eos_token_id": text["eos_token_id"]}
    CLIPModel(CLIPConfig(text_config=known)).save_pretrained(folder)
    for file in DEMO_FOLDER.glob("tokenizer*"):
        shutil.copy(file, folder)
    (folder / "preprocessor_config.json").write_text("{}")
    return folder


def put_videos(store: LibraryStore, count: int, clips: int) -> None:
    """Features, rows of the catalogue, and when, where and with what each was taken."""
    draw, catalogue = np.random.default_rng(0), store.catalogue
    network = draw.normal(size=(64, DIM)).astype(np.float32) / 8
    mean = draw.normal(size=DIM).astype(np.float32)
    begin = datetime(2015, 1, 1, tzinfo=UTC)
    captures: dict[int, Capture] = {}
    with catalogue.transaction():
        for number in range(count):
            walk = draw.normal(size=64) + np.cumsum(0.15 * draw.normal(size=(clips, 64)), axis=0)
            rows = np.tanh(walk.astype(np.float32) @ network) + mean / np.linalg.norm(mean) * 8
            extent = store.frame_features.append(rows, catalogue.feature_end("frames"), sync=False)
            changed = begin + timedelta(minutes=float(draw.integers(0, 10 * 365 * 1440)))
            place = f"/films/{number % 7}/{number // 7 % 30}/{number // 210 % 12}"
            video = VideoRow(
                row=0, video_id=f"{number:06d}", path=f"{place}/{number:06d}.mp4", size=1,
                mtime_ns=int(changed.timestamp()) * 10**9, hash=f"{number:032x}", sidecars="", state="ready",
                duration=float(clips) + number % 100, width=640, height=360, codec="h264", frames=extent,
            )  # fmt: skip
            row = catalogue.put(video, []).row
            if number % 4:
                taken = (changed - timedelta(hours=1)).replace(tzinfo=None).isoformat()
                zone = ("", "+02:00", "+00:00")[number % 3]
                make, model = (("Canon", "EOS"), ("SONY", "A7"), ("Apple", "iPhone 15"))[number // 3 % 3]
                north, east = float(draw.uniform(36, 60)), float(draw.uniform(-10, 30))
                captures[row] = Capture(
                    taken + zone, "container" if zone == "+00:00" else "tags",
                    north if number % 5 else None, east if number % 5 else None, make, model,
                )  # fmt: skip
        catalogue.put_captures(captures)
    store.frame_features.sync()


if __name__ == "__main__":
    main()
