"""How long an evaluation of TVR-Ranking's size takes, and twice the depth of it.

python benchmarks/measures.py [--queries 2781] [--predictions 200] [--truths 27]
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from measuring import arguments
from moviola.study.measures import Qrels, Run, evaluate

OVERLAPS = (0.3, 0.5, 0.7)
VIDEOS = 2_000


def main() -> None:
    options = arguments(__doc__, queries=2781, predictions=200, truths=27)
    print(f"{options.queries} queries, {options.truths} judged moments each")
    # The depth is what is read of a run, so it is that of the predictions: all of them count.
    for predictions, depths in (
        (options.predictions, (10, 20, 40)),
        (options.predictions, (options.predictions,)),
        (2 * options.predictions, (2 * options.predictions,)),
    ):
        qrels, run = made_up(options.queries, predictions, options.truths)
        measures = [f"nDCG@{depth},IoU>={overlap}" for overlap in OVERLAPS for depth in depths]
        taken = seconds(lambda run=run, qrels=qrels, of=measures: evaluate(run, qrels, of))  # type: ignore[misc]
        print(f"{predictions} predictions, {len(measures)} measures to depth {max(depths)}: {taken:.3f} s")


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """Least seconds of some runs."""
    taken = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


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
    shown = np.where(aimed, video[near], random.integers(0, VIDEOS, many))
    return qrels, Run.from_columns(
        query_rows, shown, begin, np.maximum(finish, begin + 0.1), random.random(many)
    )


if __name__ == "__main__":
    main()
