"""What search finds on gridhouse, beside what finds nothing, what has learned nothing and what only pads.

    python benchmarks/spine.py [--world DIR] [--videos 200] [--seed 500000] [--out spine.json]

Rows: random ranking of random spans; the same pipeline with an encoder of random weights; coarse proposals;
coarse proposals padded by a constant; refined moments; and coarse proposals and refined moments of the
demo's trained models. Each with NDCG@20 at three overlaps over the test queries of the world, and its ratio
to random. ``benchmarks/spine.json`` is what 200 films of seed 500000 gave, with the number of test queries.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from comparison.figures import OVER
from comparison.table import Table
from measuring import arguments, as_run, gridhouse_world
from moviola import Library
from moviola.files.writing import write_json
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.measures import Qrels, evaluate, read_qrels
from moviola.types import Moment, Query
from random_models import random_clip

TOP = 100
# Padding at the front of every proposal, in seconds: a strong trick where moments build up to their event.
PADDINGS = (2.0, 4.0)

Answers = dict[str, list[Moment]]


@dataclass(frozen=True)
class World:
    """A gridhouse folder with its test queries and judgements."""

    folder: Path
    queries: list[Query]
    qrels: Qrels


def main() -> None:
    options = arguments(__doc__, world=None, videos=200, seed=500_000, out=None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = gridhouse_world(
            options.world, Path(scratch) / "world", videos=options.videos, seed=options.seed
        )
        world = World(folder, read_queries(folder / "test.json"), read_qrels(folder / "test.json"))
        values = report(world, Path(scratch))
    if options.out:
        found = {name: dict(zip(OVER, row, strict=True)) for name, row in values.items()}
        write_json(options.out, {"queries": len(world.queries), "rows": found})


def report(world: World, scratch: Path) -> dict[str, list[float]]:
    """Print the table; the values of each row."""
    rows: dict[str, Answers] = {}
    seconds: dict[str, float] = {}

    def record(name: str, answer: Callable[[], Answers]) -> None:
        started = time.perf_counter()
        rows[name] = answer()
        seconds[name] = (time.perf_counter() - started) / len(world.queries)

    with Library(scratch / "demo", encoder="demo", sentence_encoder="none") as library:
        library.index(world.folder / "videos", ocr=False)
        record("random", lambda: at_random(world, library))
        record("coarse proposals", lambda: searched(world, library, refine=False))
        for padding in PADDINGS:
            record(
                f"coarse, {padding:g} s in front",
                lambda padding=padding: padded(rows["coarse proposals"], padding),  # type: ignore[misc]
            )
        record("refined", lambda: searched(world, library, refine=True))
        library.indexer.use(stage1="demo", refiner="demo")
        record("trained: coarse proposals", lambda: searched(world, library, refine=False))
        record("trained: refined", lambda: searched(world, library, refine=True))
    with Library(
        scratch / "random", encoder=str(random_clip(scratch / "model")), sentence_encoder="none"
    ) as library:
        library.index(world.folder / "videos", ocr=False)
        record("untrained encoder, refined", lambda: searched(world, library, refine=True))

    values = {name: means(answers, world.qrels) for name, answers in rows.items()}
    chance = max(values["random"][0], 1e-9)
    cells = [
        (name, *(f"{value:.4f}" for value in row), f"{row[0] / chance:.1f}", f"{seconds[name]:.4f}")
        for name, row in values.items()
    ]
    head = ("system", *OVER, "times random at 0.3", "s / query")
    Table(f"{world.folder.name}: {len(world.queries)} test queries", head, cells).print()
    return values


def searched(world: World, library: Library, *, refine: bool) -> Answers:
    """The library's own answers, by pictures alone."""
    found = library.search_many(world.queries, top_k=TOP, by="visual", refine=refine)
    return {query.query_id: moments for query, moments in zip(world.queries, found, strict=True)}


def padded(answers: Answers, seconds: float) -> Answers:
    """The same answers with a constant in front of each span."""
    return {
        query: [Moment(m.video_id, max(0.0, m.start - seconds), m.end, m.score, m.rank) for m in moments]
        for query, moments in answers.items()
    }


def at_random(world: World, library: Library) -> Answers:
    """Random videos, random spans of a usual length: 4 to 16 s."""
    generator = np.random.default_rng(0)
    videos = library.videos()
    answers: Answers = {}
    for query in world.queries:
        moments = []
        for rank in range(1, TOP + 1):
            video = videos[generator.integers(len(videos))]
            length = min(generator.uniform(4, 16), video.duration)
            start = generator.uniform(0, video.duration - length)
            moments.append(Moment(video.video_id, start, start + length, 1 / rank, rank))
        answers[query.query_id] = moments
    return answers


def means(answers: Answers, qrels: Qrels) -> list[float]:
    """One value a measure."""
    results = evaluate(as_run(answers.items()), qrels, OVER)
    return [results.measures[name] for name in OVER]


if __name__ == "__main__":
    main()
