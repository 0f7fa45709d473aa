"""The answers of trained rows: kept beside their figures, compressed, and written as run files.

``benchmarks/study.py`` reads the run files. Where answers are kept, no model is needed to write them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

from comparison.bench import Bench
from comparison.plan import Job
from moviola.files.writing import draft_of
from moviola.study.measures import Run, write_run
from moviola.study.measures.output_formats import write_qrels

__all__ = ["keep_answers", "kept_answers", "write_runs"]

SPLITS = ("val", "test")


def _kept(bench: Bench, name: str, split: str) -> Path:
    return bench.out / "answers" / f"{name}-{split}.json.gz"


def keep_answers(bench: Bench, job: Job) -> None:
    """Keep a trained row's answers to the queries of val and test."""
    answering, world = bench.answering(job), bench.world(job.world)
    for split in SPLITS:
        path = _kept(bench, job.name, split)
        path.parent.mkdir(exist_ok=True)
        text = json.dumps(answering.run(world.split(split)).rows())
        with draft_of(path) as draft:
            draft.write_bytes(gzip.compress(text.encode(), mtime=0))


def kept_answers(bench: Bench, name: str, split: str) -> Run | None:
    """The answers of a row that are kept; None without any."""
    path = _kept(bench, name, split)
    return (
        Run.from_dict(json.loads(gzip.decompress(path.read_bytes())), ranked=True) if path.exists() else None
    )


def write_runs(bench: Bench, out: Path, note: Callable[[str], None] = print) -> int:
    """Write ``val`` and ``test``, each with ``qrels.json`` and a run of each finished row, named as its job.

    Rows of which only the figures are there, neither the answers nor the model, are left out.

    Args:
        bench: a comparison.
        out: the folder of both.
        note: called with what is being done.

    Returns:
        the number of rows.
    """
    there = {path.parent.name for path in bench.out.glob("models/*/config.json")}
    rows = [
        job
        for job in bench.jobs()
        if bench.done(job.name) and (job.name in there or _kept(bench, job.name, SPLITS[-1]).exists())
    ]
    for name in SPLITS if rows else ():
        split = bench.world(bench.preset.world).split(name)
        write_qrels(split.pairs.qrels, out / name / "qrels.json")
        for job in rows:
            note(f"answers of {job.name} on {name}")
            run = kept_answers(bench, job.name, name)
            if run is None:
                run = bench.answering(job).run(bench.world(job.world).split(name))
            write_run(run, out / name / f"{job.name}.json")
    return len(rows)
