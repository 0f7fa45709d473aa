"""The answers of trained rows as run files, for the studies of measures (``benchmarks/study.py``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from comparison.bench import Bench
from moviola.study.measures import write_run
from moviola.study.measures.output_formats import write_qrels

__all__ = ["write_runs"]


def write_runs(bench: Bench, out: Path, note: Callable[[str], None] = print) -> int:
    """Write ``val`` and ``test``, each with ``qrels.json`` and a run of each finished row, named as its job.

    Rows of which only the figures are there, and not the model, are left out.

    Args:
        bench: a comparison.
        out: the folder of both.
        note: called with what is being done.

    Returns:
        the number of rows.
    """
    there = {path.parent.name for path in bench.out.glob("models/*/config.json")}
    rows = [job for job in bench.jobs() if bench.done(job.name) and job.name in there]
    for name in ("val", "test") if rows else ():
        split = bench.world("report").split(name)
        write_qrels(split.pairs.qrels, out / name / "qrels.json")
        for job in rows:
            note(f"answers of {job.name} on {name}")
            own = bench.world(job.world).split(name)
            write_run(bench.answering(job).run(own), out / name / f"{job.name}.json")
    return len(rows)
