"""What publishing costs while a library grows, and searching afterwards, beside an index built at once.

    python benchmarks/growth.py --segments 383800 --batch 4100 --work bench

Made segments (``scale/vectors.py``) come in batches; after each the index is opened, extended and published
in a new process, as ``moviola index`` does. Bytes are those of files that were not there before, manifests
included; memory is the high water of such a process less what it took with its libraries alone. The largest
merge is that of as many vectors as a group has at most; the made ones come again until there are as many.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from measuring import alone, arguments
from moviola.index import BACKENDS, Exact, FileRows, load_index, save_index
from moviola.index.parts import LARGEST, RowSpan, write_part
from scale.measured import high_water
from scale.vectors import PER_VIDEO, made_queries, made_segments

KIND, NAME, DEPTH = "reranked", "segments", 200


def main() -> None:
    options = arguments(
        __doc__, segments=383_800, batch=4_100, first=60_000, dim=512, queries=60,
        work=Path("benchmark-growth"),
    )  # fmt: skip
    segments: Any = made_segments(options.work / "segments.npy", options.segments, options.dim)
    grown, whole = options.work / "grown", options.work / "whole"
    for folder in (grown, whole):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    alone(extend, options.work, whole, 0, options.segments)
    begins = [0, *range(options.first, options.segments, options.batch), options.segments]
    taken = [alone(extend, options.work, grown, *span) for span in pairwise(begins)]
    later = taken[1:]
    added = sum(one["added"] for one in later)
    final = stored(whole) / options.segments
    found = {
        "segments": options.segments,
        "batch": options.batch,
        "bytes_per_segment": final,
        "written_times": sum(one["written"] for one in later) / (added * final),
        "largest_peak_mb": max(one["peak_mb"] for one in later),
        "median_s": median(one["seconds"] for one in later),
        "largest_s": max(one["seconds"] for one in later),
        "largest_merge_peak_mb": alone(merge, options.work, LARGEST + LARGEST // 2),
        "searches": compared(segments, grown, whole, options.queries),
    }
    print(json.dumps(found, indent=1))


def extend(work: Path, folder: Path, begin: int, end: int) -> dict[str, float]:
    """Publish some segments more, and say what it took."""
    rows = np.load(work / "segments.npy", mmap_mode="r")
    numbers = np.arange(begin, end, dtype=np.int64)
    ids = (numbers // PER_VIDEO << 20) + numbers % PER_VIDEO
    BACKENDS[KIND](rows.shape[1]).add(ids[:1], rows[begin : begin + 1])  # loads faiss
    there, before = {path.name for path in folder.iterdir()}, high_water()
    started = time.perf_counter()
    loaded = load_index(folder, NAME, BACKENDS)
    index = loaded[0] if loaded else BACKENDS[KIND](rows.shape[1])
    part = RowSpan(file_rows(work, rows), begin, end)
    (index.extend if loaded else index.build)(ids, part)
    save_index(index, folder, NAME, backend=KIND, tag="")
    seconds = time.perf_counter() - started
    new = [path for path in folder.iterdir() if path.name not in there or path.suffix == ".json"]
    written = sum(path.stat().st_size for path in new)
    return {
        "added": end - begin, "written": written, "seconds": seconds, "peak_mb": high_water() - before
    }  # fmt: skip


def merge(work: Path, count: int) -> float:
    """Memory in megabytes of writing a group of ``count`` vectors."""
    rows = np.load(work / "segments.npy", mmap_mode="r")
    one = file_rows(work, rows)
    every = FileRows.joined([one] * -(-count // len(one)))
    BACKENDS[KIND](rows.shape[1]).add(np.zeros(1, np.int64), rows[:1])  # loads faiss
    before = high_water()
    write_part(work / "merged.part", (), np.arange(count), RowSpan(every, 0, count))
    (work / "merged.part").unlink()
    return high_water() - before


def file_rows(work: Path, rows: Any) -> FileRows:
    descriptor = os.open(work / "segments.npy", os.O_RDONLY)
    return FileRows(descriptor, "segments", rows.offset, rows.shape, rows.dtype)


def stored(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def compared(segments: Any, grown: Path, whole: Path, count: int) -> dict[str, Any]:
    """Recall and processor time of one query after the other, both indexes in turn."""
    indexes: dict[str, Any] = {}
    for folder in (grown, whole):
        (indexes[folder.name], _) = load_index(folder, NAME, BACKENDS)  # type: ignore[misc]
    found: dict[str, Any] = {"groups": [len(group) for group in indexes["grown"]._main.groups]}
    found["recent"] = indexes["grown"].stats().added
    for kind, queries in made_queries(segments, count).items():
        exact = exact_ids(segments, queries)
        times: dict[str, list[float]] = {name: [] for name in indexes}
        right = dict.fromkeys(indexes, 0)
        for turn in range(3):
            for query, wanted in zip(queries, exact, strict=True):
                for name, index in indexes.items():
                    started = time.thread_time()
                    _, ids = index.search(query[None], DEPTH)
                    if turn:
                        times[name].append(time.thread_time() - started)
                    else:
                        right[name] += len(np.intersect1d(ids, wanted))
        found[kind] = {
            name: {"recall": right[name] / exact.size, "ms": 1e3 * median(times[name])} for name in indexes
        }
        found[kind]["ratio"] = found[kind]["grown"]["ms"] / found[kind]["whole"]["ms"]
    return found


def exact_ids(segments: Any, queries: Any) -> Any:
    exact = Exact(queries, DEPTH)
    for begin in range(0, len(segments), 1 << 14):
        block = np.asarray(segments[begin : begin + (1 << 14)])
        numbers = np.arange(begin, begin + len(block), dtype=np.int64)
        exact.see((numbers // PER_VIDEO << 20) + numbers % PER_VIDEO, block)
    return exact.ids


if __name__ == "__main__":
    main()
