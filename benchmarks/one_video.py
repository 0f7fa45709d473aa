"""How many of the best segments merge with each other where one video, or few, are searched.

    python benchmarks/one_video.py --out benchmarks/one_video.json

24 generated films (seed 640015), searched one at a time, by four and all together, by the demo's encoder with
and without its models: nDCG@10 at IoU >= 0.5 of 120 queries each where 20 segments merge, where all that
are retrieved do, and where it goes by what is searched (:func:`moviola.retrieval.proposals.merged_apart`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from moviola import Library
from moviola.files.rows import read_json
from moviola.media import write_video
from moviola.retrieval import pipeline
from moviola.retrieval.proposals import merged_apart
from moviola.study.datasets.gridhouse.dataset import build
from moviola.study.measures import Qrels, Run, evaluate

MEASURE = "nDCG@10,IoU>=0.5"
ALL = 10**6
RULES: dict[str, Callable[[int], int]] = {
    "20": lambda searched: 20,
    "all": lambda searched: ALL,
    "a quarter": merged_apart,
}
"""How many of the best segments merge with each other, of the number that was searched."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=int, default=24)
    parser.add_argument("--seed", type=int, default=640_015)
    parser.add_argument("--tasks", type=int, default=120, help="queries of each row")
    parser.add_argument("--out", type=Path, help="a JSON file for all figures")
    options = parser.parse_args()
    rows = []
    with TemporaryDirectory() as scratch:
        films = Path(scratch) / "films"
        build(films, videos=options.videos, seed=options.seed, write_video=write_video)
        queries = [row for split in ("val", "test") for row in read_json(films / f"{split}.json")]
        with Library(Path(scratch) / "library", encoder="demo", sentence_encoder="none") as library:
            library.index(films / "videos", ocr=False)
            for models in ("none", "demo"):
                library.use(stage1=models, refiner=models)
                for size in (1, 4, options.videos):
                    tasks = drawn(queries, size, options.tasks)
                    found = {name: ndcg(library, tasks, rule) for name, rule in RULES.items()}
                    rows.append({"models": models, "videos": size, "tasks": len(tasks), MEASURE: found})
                    print(json.dumps(rows[-1]), flush=True)
    if options.out:
        about = {"videos": options.videos, "seed": options.seed}
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


Task = tuple[str, list[str], list[dict[str, Any]]]
"""The text of a query, the videos to search, and the relevant moments in them."""


def drawn(queries: Sequence[dict[str, Any]], size: int, most: int) -> list[Task]:
    """Queries, each with some videos of which one at least holds an answer."""
    random = np.random.default_rng(0)
    names = sorted({moment["video_name"] for query in queries for moment in query["relevant_moment"]})
    tasks: list[Task] = []
    while len(tasks) < most:
        query = queries[int(random.integers(len(queries)))]
        some = [names[place] for place in random.permutation(len(names))[:size]]
        moments = [
            one for one in query["relevant_moment"] if one["relevance"] > 0 and one["video_name"] in some
        ]
        if moments:
            tasks.append((query["query"], some, moments))
    return tasks


def ndcg(library: Library, tasks: Sequence[Task], rule: Callable[[int], int]) -> float:
    """Mean nDCG@10 of some tasks."""
    truth, answers = {}, {}
    with patch.object(pipeline, "merged_apart", rule):
        for number, (text, names, moments) in enumerate(tasks):
            truth[str(number)] = [
                {
                    "video_id": one["video_name"],
                    "start": one["timestamp"][0],
                    "end": one["timestamp"][1],
                    "relevance": one["relevance"],
                }
                for one in moments
            ]
            found = library.search(text, videos=names, by="visual")
            answers[str(number)] = [
                {"video_id": one.video_id, "start": one.start, "end": one.end, "score": one.score}
                for one in found
            ]
    measured = evaluate(Run.from_dict(answers), Qrels.from_dict(truth), [MEASURE])
    return round(float(measured.measures[MEASURE]), 4)


if __name__ == "__main__":
    main()
