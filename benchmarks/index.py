"""Every index type at the sizes of SPR's Tables 2 and 3, against exact search, in one run.

    python benchmarks/index.py [--segments 383828 860917] [--dim 768] [--types reranked] [--queries 100]

Vectors are made: videos of 19 segments are random walks in 64 dimensions, which a random network of two
layers takes to ``dim`` numbers; a common mean and a little noise are added (a mean cosine of about .5, as
CLIP's pictures have among each other), and the length is 1. ``--vectors FILE.npy`` takes real ones (n, dim).

Queries by *picture* are segments with noise and an offset. Queries by *text* lie off all of them, as those of
CLIP and SigLIP do: .85 of one direction in which no segment lies, .3 of where a segment lies beside the mean,
.4 of noise; their best cosine is about .26.

Each query is answered by Flat and by the type in turn, so that both meet the machine in the same state, and
the ratio of the medians is what counts. Memory is what a new process that opens the index and answers all
queries takes more than one that does nothing (``VmHWM``). The last column is a video of ten minutes added and
written, without its encoding.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.index import BACKENDS, Index, load_index, save_index

DEPTH = 200
PER_VIDEO = 19
NAME = "segments"
VIDEO = 150
"""Segments of a video of ten minutes."""

Floats = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--segments", type=int, nargs="+", default=[383_828, 860_917])
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--types", nargs="+", default=["reranked"], choices=sorted(BACKENDS))
    parser.add_argument("--queries", type=int, default=100, help="of each kind")
    parser.add_argument("--vectors", type=Path, help="real ones instead, (n, dim) .npy")
    options = parser.parse_args()
    print(HEAD)
    for count in options.segments:
        vectors = unit(np.load(options.vectors)) if options.vectors else made(count, options.dim)
        queries = queries_of(vectors, options.queries)
        for name in options.types:
            print(measured(name, vectors, queries).row, flush=True)


# -- what is searched ------------------------------------------------------------------------------------


def unit(rows: NDArray[np.floating[Any]]) -> Floats:
    found: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def made(count: int, dim: int, seed: int = 0) -> Floats:
    """Segments (count, dim) of random walks; see the top."""
    generator = np.random.default_rng(seed)
    first = generator.normal(size=(64, 256)).astype(np.float32) / 8
    second = generator.normal(size=(256, dim)).astype(np.float32) / 16
    mean = unit(generator.normal(size=(1, dim)))
    found = np.empty((count, dim), np.float32)
    at_once = 512 * PER_VIDEO
    for begin in range(0, count, at_once):
        start = generator.normal(size=(512, 1, 64))
        walks = start + np.cumsum(generator.normal(size=(512, PER_VIDEO, 64)) * 0.25, axis=1)
        latent = walks.reshape(-1, 64)[: count - begin].astype(np.float32)
        seen = np.tanh(latent @ first) @ second
        noise = generator.normal(size=seen.shape).astype(np.float32) * (0.15 / dim**0.5)
        found[begin : begin + at_once] = unit(seen / np.linalg.norm(seen, axis=1).mean() + mean + noise)
    return found


def queries_of(vectors: Floats, count: int, seed: int = 1) -> dict[str, Floats]:
    """Queries (count, dim) by picture and by text; see the top."""
    generator = np.random.default_rng(seed)
    dim, mean = vectors.shape[1], vectors[::97].mean(axis=0)
    segments = vectors[np.sort(generator.choice(len(vectors), count, replace=False))]
    noise = unit(generator.normal(size=(count, dim)))
    offset = unit(generator.normal(size=(1, dim)))
    gap = generator.normal(size=dim)
    off = unit((gap - gap @ mean * mean / (mean @ mean))[None])
    return {
        "picture": unit(segments + 0.4 * noise + 0.3 * offset),
        "text": unit(0.3 * unit(segments - mean) + 0.85 * off + 0.4 * noise + 0.1 * mean),
    }


# -- what is measured --------------------------------------------------------------------------------------

HEAD = """\
| segments | type | recall@200 picture | text | ms | of Flat's | batch of 500, s | of Flat's | memory, MB | \
of Flat's | on disk, MB | build, s | open, ms | add, s |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


@dataclass
class Measured:
    segments: int
    type: str
    recall: dict[str, float]
    single: tuple[float, float]
    batch: tuple[float, float]
    memory: tuple[float, float]
    disk: float
    build: float
    opening: float
    adding: float

    @property
    def row(self) -> str:
        recalls = " | ".join(f"{value:.3f}" for value in self.recall.values())
        return (
            f"| {self.segments:,} | {self.type} | {recalls} "
            f"| {self.single[0] * 1e3:.1f} | 1/{self.single[1] / self.single[0]:.1f} "
            f"| {self.batch[0]:.2f} | 1/{self.batch[1] / self.batch[0]:.1f} "
            f"| {self.memory[0]:.0f} | 1/{self.memory[1] / self.memory[0]:.1f} "
            f"| {self.disk:.0f} | {self.build:.0f} | {self.opening * 1e3:.0f} | {self.adding:.2f} |"
        )


def measured(name: str, vectors: Floats, queries: dict[str, Floats]) -> Measured:
    """One type beside Flat."""
    ids = np.arange(len(vectors), dtype=np.int64)
    with tempfile.TemporaryDirectory() as scratch:
        folders = {kind: Path(scratch) / kind for kind in ("flat", name)}
        building = 0.0
        for kind, folder in folders.items():
            started = time.perf_counter()
            index = BACKENDS[kind](vectors.shape[1])
            index.build(ids, vectors)
            building = time.perf_counter() - started
            save_index(index, folder, NAME, backend=kind, tag="")
            del index
        asked = np.concatenate(list(queries.values()))
        memory = {kind: memory_of(folder, asked) for kind, folder in folders.items()}
        started = time.perf_counter()
        index = opened(folders[name])
        index.search(asked[:1], DEPTH)
        opening = time.perf_counter() - started
        flat = BACKENDS["flat"](vectors.shape[1])
        flat.build(ids, vectors)
        recall, single = answered(index, flat, queries)
        many = np.tile(asked, (-(-500 // len(asked)), 1))[:500]
        batch = seconds(index, many), seconds(flat, many)
        disk = sum(path.stat().st_size for path in folders[name].iterdir()) / 1e6
        adding = added(folders[name], vectors)
    return Measured(
        len(vectors),
        name,
        recall,
        single,
        batch,
        (memory[name], memory["flat"]),
        disk,
        building,
        opening,
        adding,
    )


def opened(folder: Path) -> Index:
    loaded = load_index(folder, NAME, BACKENDS)
    assert loaded is not None
    return loaded[0]


def seconds(index: Index, queries: Floats) -> float:
    started = time.perf_counter()
    index.search(queries, DEPTH)
    return time.perf_counter() - started


def answered(
    index: Index, flat: Index, queries: dict[str, Floats]
) -> tuple[dict[str, float], tuple[float, float]]:
    """Recall of each kind of query, and medians of single queries, the type's and Flat's."""
    recall: dict[str, float] = {}
    times: tuple[list[float], list[float]] = ([], [])
    for kind, own in queries.items():
        shares = []
        for query in own:
            answers = []
            for which, taken in zip((index, flat), times, strict=True):
                started = time.perf_counter()
                answers.append(which.search(query[None], DEPTH)[1][0])
                taken.append(time.perf_counter() - started)
            shares.append(len(np.intersect1d(*answers)) / DEPTH)
        recall[kind] = float(np.mean(shares))
    return recall, (median(times[0]), median(times[1]))


def added(folder: Path, vectors: Floats) -> float:
    """Seconds to open, add a video and write."""
    started = time.perf_counter()
    index = opened(folder)
    first = len(vectors)
    index.add(np.arange(first, first + VIDEO, dtype=np.int64), vectors[:VIDEO])
    name = next(kind for kind, of in BACKENDS.items() if type(index) is of)
    save_index(index, folder, NAME, backend=name, tag="")
    return time.perf_counter() - started


def memory_of(folder: Path, queries: Floats) -> float:
    """MB that a process takes at most for an index and its queries."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return float(pool.apply(_grown, (folder, queries)))


def _grown(folder: Path, queries: Floats) -> float:
    import faiss  # noqa: F401  its code is not the index's memory

    before = _high_water()
    index = opened(folder)
    for query in queries:
        index.search(query[None], DEPTH)
    return _high_water() - before


def _high_water() -> float:
    status = Path("/proc/self/status").read_text()
    (found,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(found) / 1e3


if __name__ == "__main__":
    main()
