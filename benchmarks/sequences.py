"""Whether a sequence of two things is found: steps searched everywhere, or where the other was found too.

    python benchmarks/sequences.py [--videos 80] [--seed 990017] [--queries 100] [--work DIR]

Films of `moviola gridhouse`, searched with the demo's models. A query names two events that follow each other
in one film within 30 seconds, each by an imprecise text that fits other events too. With fewer retrieved
segments a small library behaves like a large one: 15 of 1,688 segments are what 200 are of 22,500. Columns:
the share of queries with an answer, with a chain that holds the end of the first event and the start of the
second among the first 20, and the mean reciprocal rank of that; processor time. Printed as JSON, and written
to `benchmarks/sequences.json`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

import numpy as np

from moviola.media import write_video
from moviola.search import Library, Text, answers, searcher
from moviola.search.answers import chains
from moviola.search.evidence import EvidenceGatherer, Rows
from moviola.search.found import Found
from moviola.search.queries import Steps
from moviola.study.datasets import gridhouse

PAUSE, TOP = 30.0, 20
SEGMENTS = (200, 40, 15, 8)


@dataclass(frozen=True)
class Pair:
    """Two events of a film, one after the other, and a text for each."""

    video_id: str
    first: tuple[float, float]
    second: tuple[float, float]
    texts: tuple[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=int, default=80)
    parser.add_argument("--seed", type=int, default=990_017)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--work", type=Path, help="where films lie and stay; else a temporary folder")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        world = (options.work or Path(scratch)) / "world"
        if not world.is_dir():
            gridhouse.build(
                world, videos=options.videos, seed=options.seed, workers=2, write_video=write_video
            )
        query_pairs = pairs(world)
        order = np.random.default_rng(0).permutation(len(query_pairs))[: options.queries]
        with Library(Path(scratch) / "library", encoder="demo", sentence_encoder="none") as library:
            library.index(world / "videos", ocr=False)
            library.use(stage1="demo", refiner="demo")
            for name, steps in (
                ("everywhere alone", everywhere),
                ("with the others' videos", answers._steps),
            ):
                for segments in SEGMENTS:
                    row = measured(library, [query_pairs[place] for place in order.tolist()], steps, segments)
                    rows.append({"steps are searched": name, "segments": segments, **row})
                    print(json.dumps(rows[-1]), flush=True)
    Path(__file__).with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")


def pairs(world: Path) -> list[Pair]:
    """Events that follow each other, with the first and the last of the texts that fit each."""
    texts: dict[tuple[str, tuple[float, float]], set[str]] = defaultdict(set)
    for split in ("train_top40", "val", "test"):
        for query in json.loads((world / f"{split}.json").read_text()):
            for moment in query["relevant_moment"]:
                texts[moment["video_name"], tuple(moment["timestamp"])].add(query["query"])
    found = []
    events = sorted(texts)
    for (video, first), (other, second) in pairwise(events):
        if video == other and -1 <= second[0] - first[1] <= PAUSE:
            words = min(texts[video, first]), max(texts[other, second])
            found.append(Pair(video, first, second, words))
    return found


def everywhere(gatherer: EvidenceGatherer, query: Steps, rows: Rows, segments: int) -> list[Found]:
    """Chains of what each step finds in the whole library."""
    found = [answers.candidates(gatherer, step, rows, segments) for step in query.steps]
    return chains(found, query.gaps)


def measured(
    library: Library, query_pairs: Sequence[Pair], steps: Callable[..., list[Found]], segments: int
) -> dict[str, Any]:
    """Answers to all pairs."""
    ranks, answered, before = [], [], time.process_time()
    with patch.object(answers, "_steps", steps), patch.object(searcher, "SEGMENTS", segments):
        for pair in query_pairs:
            first, second = map(Text, pair.texts)
            found = library.search(first.then(second), top_k=TOP, by="visual")
            right = [
                rank
                for rank, moment in enumerate(found, 1)
                if moment.video_id == pair.video_id
                and moment.start < pair.first[1]
                and moment.end > pair.second[0]
            ]
            ranks.append(1 / right[0] if right else 0.0)
            answered.append(bool(found))
    return {
        "queries": len(query_pairs),
        "answered": fmean(answered),
        "right among the first 20": fmean(rank > 0 for rank in ranks),
        "MRR": round(fmean(ranks), 3),
        "processor ms": round(1000 * (time.process_time() - before) / len(query_pairs), 1),
    }


if __name__ == "__main__":
    main()
