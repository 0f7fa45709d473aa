"""How long an evaluation of TVR-Ranking's size takes, beside a plain nested-loop one on the same input.

    python benchmarks/measures.py [--queries 2781] [--predictions 200] [--truths 27] [--rows]

Prints the seconds of both, their ratio, the largest difference between their values, and the seconds for
twice the predictions. ``--rows`` also times reading files of 10^6 rows.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from moviola.study.measures import Qrels, Run, evaluate, read_qrels, read_run, write_qrels, write_run

OVERLAPS = (0.3, 0.5, 0.7)
DEPTHS = (10, 20, 40)
MEASURES = [f"nDCG@{k},IoU>={overlap}" for overlap in OVERLAPS for k in DEPTHS]
VIDEOS = 2_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queries", type=int, default=2781)
    parser.add_argument("--predictions", type=int, default=200)
    parser.add_argument("--truths", type=int, default=27)
    parser.add_argument("--rows", action="store_true", help="also read files of a million rows")
    options = parser.parse_args()
    qrels, run = made_up(options.queries, options.predictions, options.truths)
    print(f"{options.queries} queries x {options.predictions} predictions x {options.truths} judged moments")

    fast, results = timed(lambda: evaluate(run, qrels, MEASURES), repeat=3)
    print(f"moviola      {fast:8.3f} s")
    truths, answers = qrels.rows(), run.rows()
    slow, values = timed(lambda: nested_loops(truths, answers))
    print(f"nested loops {slow:8.3f} s, {slow / fast:.0f} times slower")
    print(f"largest difference {max(abs(results.measures[name] - values[name]) for name in MEASURES):.1e}")

    # The depth is what is read of a run, so it doubles as well: all predictions count.
    deep = [f"nDCG@{options.predictions},IoU>={overlap}" for overlap in OVERLAPS]
    deeper = [f"nDCG@{2 * options.predictions},IoU>={overlap}" for overlap in OVERLAPS]
    once, _ = timed(lambda: evaluate(run, qrels, deep), repeat=3)
    _, longer = made_up(options.queries, 2 * options.predictions, options.truths)
    twice, _ = timed(lambda: evaluate(longer, qrels, deeper), repeat=3)
    print(f"reading {options.predictions} predictions {once:.3f} s, twice as many {twice:.3f} s")
    if options.rows:
        million_rows()


def timed(work: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Least seconds of some runs, and what the last gave."""
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - started)
    return min(seconds), found


def made_up(queries: int, predictions: int, truths: int) -> tuple[Qrels, Run]:
    """Random judgements, and a run of which a fifth lies near a judged moment."""
    random = np.random.default_rng(0)
    size = queries * truths
    query = np.repeat(np.arange(queries), truths)
    video = random.integers(0, VIDEOS, size)
    start = random.uniform(0, 60, size)
    end = start + random.uniform(2, 20, size)
    qrels = Qrels.from_columns(query, video, start, end, random.integers(1, 5, size))

    many = queries * predictions
    query_rows = np.repeat(np.arange(queries), predictions)
    near = query_rows * truths + random.integers(0, truths, many)
    aimed = random.random(many) < 0.2
    begin = np.where(aimed, start[near] + random.normal(0, 1, many), random.uniform(0, 60, many))
    finish = np.where(aimed, end[near] + random.normal(0, 1, many), begin + random.uniform(2, 20, many))
    finish = np.maximum(finish, begin + 0.1)
    shown = np.where(aimed, video[near], random.integers(0, VIDEOS, many))
    return qrels, Run.from_columns(query_rows, shown, begin, finish, random.random(many))


def nested_loops(truths: dict[str, list[Any]], answers: dict[str, list[Any]]) -> dict[str, float]:
    """NDCG@K, IoU≥μ as one would write it down: for every threshold and depth, loop over everything."""
    values = {}
    for overlap in OVERLAPS:
        for k in DEPTHS:
            total = 0.0
            for query, judged in truths.items():
                ordered = sorted(judged, key=lambda m: -m["relevance"])
                taken = [False] * len(ordered)
                gains = []
                for answer in answers[query]:
                    best, place = -1.0, -1
                    for i, truth in enumerate(ordered):
                        if taken[i] or truth["video_id"] != answer["video_id"]:
                            continue
                        shared = min(answer["end"], truth["end"]) - max(answer["start"], truth["start"])
                        hull = max(answer["end"], truth["end"]) - min(answer["start"], truth["start"])
                        iou = max(0.0, shared) / hull
                        if iou > best:
                            best, place = iou, i
                    if best >= overlap:
                        taken[place] = True
                        gains.append(2 ** ordered[place]["relevance"] - 1)
                    else:
                        gains.append(0)
                ideal = [2 ** truth["relevance"] - 1 for truth in ordered]
                found = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains[:k]))
                total += found / sum(gain / math.log2(rank + 2) for rank, gain in enumerate(ideal[:k]))
            values[f"nDCG@{k},IoU>={overlap}"] = total / len(truths)
    return values


def million_rows() -> None:
    """Seconds to read 10^6 moments in each of our formats."""
    qrels, run = made_up(5_000, 200, 200)
    with tempfile.TemporaryDirectory() as scratch:
        for suffix in ("json", "jsonl", "csv", "trec"):
            path = Path(scratch) / f"rows.{suffix}"
            write_run(run, path)
            seconds, _ = timed(lambda path=path: read_run(path))  # type: ignore[misc]
            print(f"run   {suffix:12} {len(run):,} rows {seconds:6.2f} s")
        for name in ("tvr_ranking", "json"):
            path = Path(scratch) / "rows.json"
            write_qrels(qrels, path, name)
            seconds, _ = timed(lambda path=path: read_qrels(path))  # type: ignore[misc]
            print(f"qrels {name:12} {len(qrels):,} rows {seconds:6.2f} s")


if __name__ == "__main__":
    main()
