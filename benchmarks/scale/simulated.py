"""Answers of many libraries at 10^8 and 10^9 segments, simulated: what is touched, read and found.

    python -m scale.simulated WORK [--out scale/simulated.json]        (in benchmarks/)

WORK is a folder for 60 MB of made vectors.

Each of S libraries of 400,000 segments gives its best k; the best 200 of these are the answer. Recall@200
depends only on how many of the true 200 lie in one library, so no vectors are needed: answers come in videos,
as the made vectors of :mod:`scale.vectors` have them, and videos lie in libraries at random (*spread*), or in
those about their subject: library i has its videos with probability 1 / i (*by subject*).

Where that can be computed, at 200,000 segments in 8 and 32 parts, it is, beside the simulation of it.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))  # as a script

from measuring import arguments, say
from scale.plan import DEPTH
from scale.vectors import PER_VIDEO, made_queries, made_segments

ROOT = Path(__file__).resolve().parents[2]
SEGMENTS = 400_000
DEPTHS = (5, 10, 20, 50, 100, 200)
SHOWN = (10, 20, 50, 200)
# As retrieval/index look: lists that a search begins with, vectors of each, and candidates for each answer.
LISTS, IN_LIST, CANDIDATES = 128, 6000, 6

Integers = NDArray[np.int64]


def main() -> None:
    options = arguments(__doc__, "work", out=Path(__file__).with_suffix(".json"), queries=200)
    options.work.mkdir(parents=True, exist_ok=True)
    videos = nearest_videos(options.work / "vectors.npy", options.queries)
    found = {
        "segments of a library": SEGMENTS,
        "segments of one video among the best 200": round(
            float(np.mean([DEPTH / len(set(own)) for own in videos])), 2
        ),
        "computed": [beside(videos, parts) for parts in (8, 32)],
        "simulated": [simulated(videos, size) for size in (10**8, 10**9)],
    }  # fmt: skip
    say(found, options.out)
    print(json.dumps(found, indent=1))


def nearest_videos(path: Path, queries: int) -> list[list[int]]:
    """Of each query by text, the videos of its nearest 200 segments of 200,000, best first."""
    segments = made_segments(path, 200_000, 64)
    wanted = made_queries(segments, queries)["text"]
    scores = np.asarray(segments) @ wanted.T
    best = np.argsort(-scores, axis=0, kind="stable")[:DEPTH]
    return [(own // PER_VIDEO).tolist() for own in best.T]


def beside(videos: Sequence[Sequence[int]], parts: int) -> dict[str, Any]:
    """Recall by the depth of each part: of the made vectors' own videos, divided among the parts in a fixed
    way, and of the simulation.
    """
    generator = np.random.default_rng(1)
    place = generator.integers(parts, size=max(map(max, videos)) + 1)
    own = [recall(place[np.array(one)], DEPTHS) for one in videos]
    return {
        "parts": parts,
        "recall": by_depth(np.mean(own, axis=0)),
        "simulated": by_depth(spread(videos, np.full(parts, 1 / parts))),
    }


def spread(videos: Sequence[Sequence[int]], chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Recall by depth where each video lies in a part with these chances, drawn for each query."""
    generator, rows = np.random.default_rng(2), []
    for own in videos:
        _, video = np.unique(own, return_inverse=True)
        rows.append(recall(generator.choice(len(chances), video.max() + 1, p=chances)[video], DEPTHS))
    return np.asarray(np.mean(rows, axis=0))


def recall(parts: Integers, depths: Sequence[int]) -> list[float]:
    """Share of the answers, by the part of each, that parts give which give some of theirs, by depth."""
    counts = np.bincount(parts)
    return [float(np.minimum(counts, depth).sum() / len(parts)) for depth in depths]


def by_depth(values: NDArray[np.float64]) -> dict[str, float]:
    return {str(depth): round(float(value), 4) for depth, value in zip(DEPTHS, values, strict=True)}


def simulated(videos: Sequence[Sequence[int]], segments: int) -> dict[str, Any]:
    """One size: libraries, the bytes that a question reads of them all, and recall by depth."""
    libraries = segments // SEGMENTS
    about = constants()
    own = 1 / np.arange(1, libraries + 1)
    lists = min(LISTS, SEGMENTS // IN_LIST)
    scanned = lists * IN_LIST * about["scanned"]
    return {
        "segments": segments,
        "libraries": libraries,
        "libraries touched": {"without a filter": libraries, "by a filter of a tenth": libraries // 10},
        "GB scanned": round(libraries * scanned / 1e9, 2),
        "GB compared again, by depth": {
            str(depth): round(libraries * CANDIDATES * depth * about["compared"] / 1e9, 3) for depth in DEPTHS
        },
        "recall, spread": by_depth(spread(videos, np.full(libraries, 1 / libraries))),
        "recall, by subject": by_depth(spread(videos, own / own.sum())),
    }


def table(found: Mapping[str, Any]) -> str:
    """What was simulated as a table of Markdown."""

    def recalls(values: Mapping[str, float]) -> str:
        return " / ".join(f"{values[str(depth)]:.3f}".replace("0.", ".", 1) for depth in SHOWN)

    depths = " / ".join(map(str, SHOWN))
    rows = [
        "| segments | libraries | codes scanned, GB | compared again at depth 200, GB "
        f"| recall@200 at depth {depths}, videos at random | by subject |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {one['segments']:,} | {one['libraries']:,} | {one['GB scanned']} "
        f"| {one['GB compared again, by depth']['200']} | {recalls(one['recall, spread'])} "
        f"| {recalls(one['recall, by subject'])} |"
        for one in found["simulated"]
    ]
    return "\n".join(rows)


def farthest(found: Mapping[str, Any]) -> float:
    """The largest difference between recall that was computed and simulated."""
    pairs: Iterable[tuple[float, float]] = (
        (one["recall"][depth], one["simulated"][depth])
        for one in found["computed"]
        for depth in one["recall"]
    )
    return max(abs(own - its) for own, its in pairs)


def constants() -> dict[str, int]:
    """Bytes of a segment that are scanned, and compared again, by the default index (cost.csv)."""
    with (ROOT / "docs/benchmark/scale/cost.csv").open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["type"] == "reranked")
    scanned, compared = row["bytes per segment, scanned + compared again"].split(" + ")
    return {"scanned": int(scanned), "compared": int(compared)}


if __name__ == "__main__":
    main()
