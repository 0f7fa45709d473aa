"""What a model that looks again is worth, by how often its verdicts are right.

    python benchmarks/looker.py [--world DIR] [--videos 60] [--seed 500000] [--draws 5] [--out looker.json]

A search of gridhouse's test queries, without training and with the demo's models, as it is, and with
``check=10`` of a stand-in: it knows the world, and says of each moment what is so with a given probability,
else the opposite, by other chances in each draw. A moment is right as calibrations have it: where it overlaps
a relevant moment by half (IoU >= .5). The verdicts count by their own probability ("measured"), or by the one
that is assumed of a model that was not measured (.75). Columns: share of queries whose first moment is right;
nDCG@20; strong moments of a query; their mean score, and how many of them are right: whether a score still
means what it says.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from comparison.figures import MAIN
from measuring import arguments, as_run, gridhouse_world, print_rows
from moviola import Library
from moviola.files.writing import write_json
from moviola.search.checking import ASSUMED, Judgement
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.measures import Qrels, evaluate, read_qrels
from moviola.types import Moment, Query, Span

TOP, CHECK, OVERLAP = 20, 10, 0.5
RIGHT = (0.75, 0.85, 0.95)
OUT = Path(__file__).with_suffix(".json")

Truth = Mapping[str, Sequence[tuple[str, Span]]]


@dataclass
class StandIn:
    """A model whose verdicts are right with a probability; a :class:`moviola.search.checking.Checker`."""

    truth: Truth
    often: float
    right: float | None
    seed: int
    name: str = "stand-in"
    query_id: str = ""

    def judge(self, question: str, moments: Sequence[Moment]) -> list[Judgement]:
        generator = np.random.default_rng([self.seed, int(self.often * 100), *self.query_id.encode()])
        errs = generator.random(len(moments)) >= self.often
        so = [is_right(one, self.truth[self.query_id]) for one in moments]
        return [Judgement("yes" if own != wrong else "no", "") for own, wrong in zip(so, errs, strict=True)]


def is_right(moment: Moment, answers: Sequence[tuple[str, Span]]) -> bool:
    """Whether a moment overlaps one that answers by half."""
    return any(moment.video_id == video and moment.span.iou(span) >= OVERLAP for video, span in answers)


def truth_of(qrels: Qrels) -> Truth:
    """The relevant moments of each query."""
    found: dict[str, list[tuple[str, Span]]] = {}
    for place, query in enumerate(qrels.query_ids):
        rows = range(qrels.offsets[place], qrels.offsets[place + 1])
        found[query] = [
            (qrels.video_ids[qrels.video[row]], Span(float(qrels.start[row]), float(qrels.end[row])))
            for row in rows
            if qrels.relevance[row] > 0
        ]
    return found


def main() -> None:
    options = arguments(__doc__, world=None, videos=60, seed=500_000, draws=5, out=OUT)
    with tempfile.TemporaryDirectory() as scratch:
        world = gridhouse_world(
            options.world, Path(scratch) / "world", videos=options.videos, seed=options.seed
        )
        queries, qrels = read_queries(world / "test.json"), read_qrels(world / "test.json")
        with Library(Path(scratch) / "library", encoder="demo", sentence_encoder="none") as library:
            library.index(world / "videos", ocr=False)
            rows = list(measured(library, "no training", queries, qrels, options.draws))
            library.indexer.use(stage1="demo", refiner="demo")
            rows += measured(library, "demo's models", queries, qrels, options.draws)
    about = {"videos": options.videos, "seed": options.seed, "draws": options.draws, "queries": len(queries)}
    write_json(options.out, {**about, "top_k": TOP, "check": CHECK, "rows": rows})
    print_rows(rows)
    print(json.dumps(about))


def measured(
    library: Library, system: str, queries: Sequence[Query], qrels: Qrels, draws: int
) -> Iterator[dict[str, Any]]:
    """A row without a look, then two for each probability of being right."""
    truth = truth_of(qrels)
    plain = library.search_many(queries, top_k=TOP, by="visual")
    yield {"system": system, "right": "", "counts as": "no look", **figures(queries, [plain], qrels, truth)}
    for often in RIGHT:
        for right in (None, often):
            answers = []
            for draw in range(draws):
                checker = StandIn(truth, often, right, draw)
                library.checker = checker
                found = []
                for query in queries:
                    checker.query_id = query.query_id
                    found.append(library.search(query.text, top_k=TOP, by="visual", check=CHECK))
                answers.append(found)
            counts = f"{ASSUMED} (assumed)" if right is None else f"{right} (measured)"
            yield {
                "system": system,
                "right": often,
                "counts as": counts,
                **figures(queries, answers, qrels, truth),
            }


def figures(
    queries: Sequence[Query], draws: Sequence[Sequence[Sequence[Moment]]], qrels: Qrels, truth: Truth
) -> dict[str, float]:
    """Means over all draws."""
    first, gain, strong = [], [], []
    for answers in draws:
        run = as_run(zip([query.query_id for query in queries], answers, strict=True))
        gain.append(evaluate(run, qrels, [MAIN]).measures[MAIN])
        for query, moments in zip(queries, answers, strict=True):
            judged = [is_right(one, truth[query.query_id]) for one in moments]
            first.append(bool(judged) and judged[0])
            strong += [(one.score, own) for one, own in zip(moments, judged, strict=True) if one.strong]
    promised, kept = np.array(strong, float).reshape(-1, 2).mean(axis=0) if strong else (0.0, 0.0)
    return {
        "first is right": round(float(np.mean(first)), 4), MAIN: round(float(np.mean(gain)), 4),
        "strong": round(len(strong) / len(draws) / len(queries), 2), "promised": round(float(promised), 3),
        "right of these": round(float(kept), 3),
    }  # fmt: skip


if __name__ == "__main__":
    main()
