"""Several libraries searched as one, beside one library that has all their videos.

    python benchmarks/several_libraries.py FOLDER [--libraries 8] [--segments 400000] [--queries 20]

FOLDER is made, and may be deleted. Features are made up: 128 numbers of an encoder of the demo's size that
walk about in 32 dimensions, one a segment, 200 segments a video. Each question is asked of both in turns,
first with the index that is chosen at this size, then with exact search. Written to
``benchmarks/several_libraries.json``; with 8 libraries of 400,000 segments FOLDER takes up to 7 GB.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measuring import arguments, say
from moviola.files.rows import read_json
from moviola.library import LibraryStore, VideoRow
from moviola.search import Libraries, Library
from scale.run import machine

PER_VIDEO, SECONDS = 200, 4.0
Key = tuple[str, float, float, float]
"""A moment of an answer: its video, start, end and score."""
QUESTIONS = (
    "a red door opens", "a dog in the snow", "a man carries a ladder", "a boat on a lake", "an empty street",
    "two people talk", "a green car", "a child on a swing", "a train at night", "a table with a blue cup",
)  # fmt: skip


def main() -> None:
    options = arguments(
        __doc__, "folder", libraries=8, segments=400_000, queries=len(QUESTIONS),
        out=Path(__file__).with_suffix(".json"),
    )  # fmt: skip
    single, parts = (
        options.folder / "single",
        [options.folder / f"part{number}" for number in range(options.libraries)],
    )
    found = read_json(options.out) if options.out.is_file() and single.is_dir() else {}
    if not found:
        videos = options.segments // PER_VIDEO
        own = [range(number * videos, (number + 1) * videos) for number in range(options.libraries)]
        making = sum(seconds(partial(make_library, part, [own[at]])) for at, part in enumerate(parts))
        making_one = seconds(lambda: make_library(single, own))
        total = options.segments * len(parts)
        found = {
            "machine": machine(), "libraries": options.libraries, "segments of each": options.segments,
            "processor seconds to make": {"parts": round(making, 1), "one": making_one},
            "bytes a segment": {"parts": bytes_of(parts) / total, "one": bytes_of([single]) / total},
        }  # fmt: skip
    exact: list[set[Key]] = []
    for name, index in (("exact search", "flat"), ("index chosen", "auto")):
        for folder in (single, *parts):
            with Library(folder) as library:
                library.indexer.use_index(index)
        found[name], answers = compared(single, parts, options.queries)
        exact = exact or answers["one"]
        found[name]["moments of exact search"] = {
            # Rows of half precision give scores with other last digits.
            kind: sum(len(spans(own) & spans(its)) for own, its in zip(exact, found_here, strict=True))
            for kind, found_here in answers.items()
        }
        say(found, options.out)
    print(json.dumps(found, indent=1))


def spans(moments: Iterable[Key]) -> set[tuple[str, float, float]]:
    """Moments without their scores."""
    return {(video, start, end) for video, start, end, _ in moments}


def seconds(do: Callable[[], object]) -> float:
    """Processor seconds that something takes."""
    began = time.process_time()
    do()
    return round(time.process_time() - began, 1)


def make_library(folder: Path, videos: Iterable[Iterable[int]]) -> None:
    """Write a library as it would be after indexing; the same videos are the same wherever they are."""
    if (folder / "moviola.toml").is_file():
        return
    store = LibraryStore(
        folder, encoder="demo", sentence_encoder="none", frame_rate=1 / SECONDS, segment_seconds=SECONDS
    )
    network = np.random.default_rng(0).normal(size=(32, store.settings.encoder_dim)).astype(np.float32)
    with store, store.writing():
        for block in videos:
            put_videos(store, block, network)
    with Library(folder) as library:
        empty = folder.parent / "no films"
        empty.mkdir(exist_ok=True)
        library.index(empty)  # what follows from videos is written


def put_videos(store: LibraryStore, videos: Iterable[int], network: NDArray[np.float32]) -> None:
    """Features, and rows of the catalogue."""
    catalogue = store.catalogue
    with catalogue.transaction():
        for number in videos:
            draw = np.random.default_rng(number)
            walk = draw.normal(size=32) + np.cumsum(0.15 * draw.normal(size=(PER_VIDEO, 32)), axis=0)
            rows = np.tanh(walk.astype(np.float32) @ network / 6)
            extent = store.frame_features.append(rows, catalogue.feature_end("frames"), sync=False)
            catalogue.put(
                VideoRow(
                    row=0, video_id=f"{number:06d}", path=f"/films/{number % 7}/{number:06d}.mp4", size=1,
                    mtime_ns=0, hash=f"{number:032x}", sidecars="", state="ready",
                    duration=SECONDS * PER_VIDEO, width=640, height=360, codec="h264", frames=extent,
                ),
                [],
            )  # fmt: skip
    store.frame_features.sync()


def bytes_of(folders: Iterable[Path]) -> float:
    """Bytes of all files."""
    return sum(file.stat().st_size for one in folders for file in one.rglob("*") if file.is_file())


def compared(
    single: Path, parts: list[Path], queries: int
) -> tuple[dict[str, Any], dict[str, list[set[Key]]]]:
    """Answers and processor milliseconds of both, asked in turns; and the moments of each answer."""
    opening: dict[str, float] = {}
    spent: dict[str, list[float]] = {"one": [], "parts": []}
    moments: dict[str, list[set[Key]]] = {"one": [], "parts": []}
    equal = 0
    with timed(opening, "one", lambda: Library(single, read_only=True)) as one, timed(
        opening, "parts", lambda: Libraries(parts)
    ) as several:  # fmt: skip
        for number in range(queries):
            answers = {}
            for name, library in (("one", one), ("parts", several)):
                began = time.process_time()
                answers[name] = library.search(QUESTIONS[number % len(QUESTIONS)], top_k=50)
                spent[name].append(1000 * (time.process_time() - began))
                moments[name].append({(m.video_id, m.start, m.end, m.score) for m in answers[name]})
            equal += [*answers["one"]] == [*answers["parts"]]
    return {
        "first search, processor ms": opening,
        "questions": queries,
        "median processor ms": {name: round(median(ms), 1) for name, ms in spent.items()},
        "answers that are equal": equal,
        "moments": sum(map(len, moments["one"])),
        "moments in both, with one score": sum(map(len, map(set.__and__, *moments.values()))),
        "peak MB of the process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }, moments


def table(found: Mapping[str, Any]) -> str:
    """What was found as a table of Markdown."""
    rows = ["| | index that is chosen | exact search |", "|---|---|---|"]
    both = [found[name] for name in ("index chosen", "exact search")]

    def row(name: str, cell: Callable[[Mapping[str, Any]], str]) -> str:
        return f"| {name} | {' | '.join(map(cell, both))} |"

    def in_turn(values: Mapping[str, float]) -> str:
        return f"{values['one']:.0f} / {values['parts']:.0f}"

    return "\n".join(
        [
            *rows,
            row(
                "questions whose 50 best are equal, to the byte",
                lambda one: f"{one['answers that are equal']} of {one['questions']}",
            ),
            row(
                "moments of exact search's that one library / eight give",
                lambda one: in_turn(one["moments of exact search"]),
            ),
            row(
                "a search, one library / eight, processor ms", lambda one: in_turn(one["median processor ms"])
            ),
            row(
                "the first one of a process, with opening, processor ms",
                lambda one: in_turn(one["first search, processor ms"]),
            ),
        ]
    )


def timed(into: dict[str, float], name: str, opened: Callable[[], Library]) -> Library:
    """A library after its first search, and how long that took with opening it."""
    began = time.process_time()
    library = opened()
    library.search("a first question")
    into[name] = round(1000 * (time.process_time() - began), 1)
    return library


if __name__ == "__main__":
    main()
