"""A search from end to end in a library of the paper's size: warm, from the command line, beside busy cores.

    python benchmarks/online.py LIBRARY [--videos 20200] [--queries 40] [--cold 5] [--busy 2] [--processor]

LIBRARY is made by the library's own functions if nothing is there (5 GB at 20,200 videos): of each video 19
segments of 4 clips, features of 512 numbers that walk about in 64 dimensions, named by two of 40 words; an
encoder with a text tower of the size of CLIP ViT-B/32's and random weights; a stage 1 that starts as the
identity, so that mean-pooled segments are its own; Reel with random weights, whose encodings lie ready. Times
depend on none of these values.

Queries are asked warm, and from the command line, each time by a new process; then the same beside
``--busy`` processes that multiply matrices without a pause (0: not). Medians, by stage as the program times
itself (``--timings``). Processor time stands beside: it is what a quiet machine would take, whatever else
computes; with ``--processor`` stages are given in it, too. Python's bytecode is kept, as that of an installed
program is; the first process, which makes it, does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from moviola import Library
from moviola.features.shards import halves
from moviola.index import backend_of, save_index
from moviola.library import LibraryStore, VideoRow
from moviola.library.derived.indexes import current_index, index_recipe
from moviola.library.disk.models_in_use import copy_into
from moviola.study.models.pretrained import build, save_pretrained
from moviola.timing import STAGES, milliseconds
from runtimes import random_vit
from text_threads import busy

Timings = list[dict[str, float]]
"""Milliseconds by stage, of each query."""

CLOCKS = {False: time.perf_counter, True: time.process_time}
COMMAND = """
import time, moviola.timing
moviola.timing.perf_counter = time.{}
from moviola.cli import main
main()
"""
"""The command line, its stages timed by a clock."""

DIM, CLIPS, PER_SEGMENT, HIDDEN = 512, 76, 4, 256
WORDS = [
    "apple", "bridge", "candle", "desert", "engine", "forest", "garden", "harbour", "island",
    "jacket", "kitchen", "ladder", "market", "needle", "ocean", "piano", "queen", "river", "shadow",
    "temple", "umbrella", "valley", "window", "yellow", "anchor", "basket", "castle", "dancer",
    "eagle", "feather", "guitar", "hammer", "iron", "jungle", "kettle", "lemon", "mirror", "nurse",
    "orchid", "palace",
]  # fmt: skip
TEXTS = (
    "a person in a red coat opens the door",
    "somebody plays the piano near a window",
    "a dog runs along the river",
    "two people talk in a kitchen at night",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--videos", type=int, default=20_200)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--cold", type=int, default=5)
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--processor", action="store_true")
    options = parser.parse_args()
    if not (options.library / "moviola.toml").is_file():
        make_library(options.library, options.videos)
    found: dict[str, Timings] = {}
    for beside in (0, options.busy) if options.busy else (0,):
        with busy(beside), patch("moviola.timing.perf_counter", CLOCKS[options.processor]):
            name = f", {beside} busy" if beside else ""
            found[f"warm{name}"] = warm(options.library, options.queries)
            found[f"cold{name}"] = cold(options.library, options.cold, options.processor)
    report(found)


# -- what is measured ----------------------------------------------------------------------------------------


def warm(folder: Path, queries: int) -> Timings:
    """Milliseconds of each query by stage, in one process that has answered one before."""
    rows: Timings = []
    with Library(folder, read_only=True, resident=True) as library:
        library.search("a first query")
        for number in range(queries):
            before = time.process_time()
            found = library.search(f"{TEXTS[number % len(TEXTS)]} {number}")
            processor = time.process_time() - before
            rows.append(milliseconds({**found.timings, "processor": processor}))
    return rows


def cold(folder: Path, times: int, processor: bool) -> Timings:
    """The same of new processes; ``"total"`` is from the start of the process to its end."""
    rows: Timings = []
    with TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(times + 1):
            text = f"{TEXTS[0]} {number}"
            command = [sys.executable, "-c", COMMAND.format(CLOCKS[processor].__name__), "search", text]
            began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            out = subprocess.run(
                [*command, "--library", str(folder), "--json", "--timings"],
                check=True, capture_output=True, text=True, env=environment,
            )  # fmt: skip
            total, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            timings: dict[str, float] = json.loads(out.stderr.splitlines()[-1])
            rows.append({**timings, **milliseconds({"total": total, "processor": spent})})
    return rows[1:]


def report(found: Mapping[str, Timings]) -> None:
    """Print the table."""
    table = Table("ms", *found)
    for name in (*STAGES, "total", "processor"):
        values = [median(row.get(name, 0.0) for row in rows) for rows in found.values()]
        table.add_row(name, *(f"{value:.1f}" for value in values))
    Console(width=110).print(table)


# -- the library ---------------------------------------------------------------------------------------------


def make_library(folder: Path, videos: int) -> None:
    """Write a library as it would be after indexing; see the top."""
    encoder = folder.with_name(f"{folder.name}-encoder")
    with LibraryStore(folder, encoder=random_vit(encoder)) as store, store.writing():
        put_videos(store, videos)
        put_models_in_use(store)
        put_indexes(store)
    with Library(folder) as library:
        library.index(encoder)  # no video lies there; what follows from videos and models is written
    print(f"{folder}: {videos} videos", flush=True)


def put_videos(store: LibraryStore, count: int) -> None:
    """Features and rows of the catalogue."""
    draw, catalogue = np.random.default_rng(0), store.catalogue
    network = draw.normal(size=(64, DIM)).astype(np.float32) / 8
    mean = draw.normal(size=DIM).astype(np.float32)
    with catalogue.transaction():
        for number in range(count):
            walk = draw.normal(size=64) + np.cumsum(0.15 * draw.normal(size=(CLIPS, 64)), axis=0)
            clips = np.tanh(walk.astype(np.float32) @ network) + mean / np.linalg.norm(mean) * 8
            extent = store.frame_features.append(clips, catalogue.feature_end("frames"), sync=False)
            name = f"{' '.join(draw.choice(WORDS, 2))} {number:05d}"
            video = VideoRow(
                row=0, video_id=name, path=f"/films/{name}.mp4", size=1, mtime_ns=1, hash=f"{number:032x}",
                sidecars="", state="ready", duration=float(CLIPS), width=640, height=360, codec="h264",
                frames=extent,
            )  # fmt: skip
            catalogue.put(video, [])
    store.frame_features.sync()


def put_models_in_use(store: LibraryStore) -> None:
    """A stage 1 that is the identity, and Reel, whose encodings of videos are drawn and lie in the cache."""
    torch.manual_seed(0)
    settings = store.settings
    sizes = {
        "stage1": ("spr-stage1", {"hidden_size": DIM, "layers": 6, "identity_start": True}),
        "refiner": ("reel", {"visual_size": DIM, "query_size": DIM, "hidden_size": HIDDEN}),
    }
    facts = {
        "encoder": settings.encoder, "encoder_revision": settings.encoder_revision,
        "clip_seconds": 1 / settings.frame_rate, "segment_clips": settings.frames_per_segment,
        "calibration": {"slope": 1.0, "intercept": 0.0},
    }  # fmt: skip
    values: dict[str, Any] = {}
    for role, (architecture, config) in sizes.items():
        folder = store.folder.with_name(f"{store.folder.name}-{role}")
        save_pretrained(build(architecture, config), folder, card="random weights", extra=facts)
        values |= copy_into(store.folder, role, folder)
    chosen = replace(settings, **values)
    chosen.write(store.folder)
    store.adopt(chosen)
    draw = np.random.default_rng(1)
    rows = draw.normal(size=(2 * CLIPS, 3, HIDDEN)).astype(np.float32)
    drawn = halves(rows / np.linalg.norm(rows, axis=-1, keepdims=True), "encodings")
    for row in store.searchable():
        begin = int(draw.integers(CLIPS))
        store.cache.get(chosen.refiner_revision, row, CLIPS, partial(stretch, drawn, begin))


def stretch(rows: NDArray[np.float16], begin: int) -> NDArray[np.float16]:
    """As many of some rows as a video has clips."""
    return rows[begin : begin + CLIPS]


def put_indexes(store: LibraryStore) -> None:
    """The index of mean-pooled segments under the name of stage 1, which leaves them as they are."""
    trained = store.settings
    plain = replace(trained, stage1="", stage1_revision="")
    store.adopt(plain)
    index, _ = current_index(store, "segments", store.searchable())
    store.adopt(trained)
    assert index is not None
    recipe = index_recipe(store, "segments")
    save_index(index, store.folder / "index", "segments", backend=backend_of(index), tag=recipe)


if __name__ == "__main__":
    main()
