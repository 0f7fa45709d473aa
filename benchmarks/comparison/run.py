"""The comparison in pieces of minutes: every training is one, and what is done is not done again.

A piece leaves one small file of figures; the report is made of these alone, so that they can be carried to
another machine, which goes on with what is left. An interrupted training goes on from its last evaluation.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch

from comparison.bench import Bench
from comparison.figures import figures
from comparison.lines import with_lines
from comparison.plan import Job
from comparison.runs import keep_answers
from moviola.errors import InvalidValue, LibraryLocked
from moviola.files.writing import write_json
from moviola.study.datasets.building.relevant_pairs import read_relevant_pairs, write_relevant_pairs
from moviola.study.datasets.building.steps import find_relevant_pairs
from moviola.study.training.data import Split
from moviola.study.training.experiment import Experiment, TrainedModel

__all__ = ["Left", "run_pieces", "what_is_left"]


# ---- what is left ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Left:
    """Pieces of a comparison that are not done.

    Attributes:
        done, planned: how many pieces.
        names: of the pieces that are left, in their order.
        cpu_seconds: what they will cost, by what a step of the same recipe has cost where a CPU trained it.
        unknown: how many are not in that, since no piece of their recipe was trained on a CPU.
    """

    done: int
    planned: int
    names: tuple[str, ...]
    cpu_seconds: float
    unknown: int


def what_is_left(bench: Bench, only: Sequence[str] = ()) -> Left:
    """Pieces that are not done, of some rows or of all; see :func:`run_pieces`."""
    plan = _wanted(bench, only)
    rest = [job for job in plan if not bench.done(job.name)]
    seconds, steps = Counter[str](), Counter[str]()
    for job in bench.jobs():
        if bench.done(job.name) and (found := bench.result(job.name)).get("device", "cpu") == "cpu":
            seconds[job.recipe] += found["cpu_seconds"]
            steps[job.recipe] += _steps(job)
    known = [job for job in rest if job.recipe in steps]
    cost = sum(_steps(job) * seconds[job.recipe] / steps[job.recipe] for job in known)
    return Left(
        len(plan) - len(rest), len(plan), tuple(job.name for job in rest), cost, len(rest) - len(known)
    )


def _steps(job: Job) -> int:
    """Steps of all phases of a training."""
    settings = dict(override.split("=", 1) for override in job.overrides)
    return sum(int(value) for name, value in settings.items() if name.endswith(".steps"))


def _wanted(bench: Bench, only: Sequence[str]) -> list[Job]:
    """Jobs that a pattern fits, all without any, and those that they build on."""
    plan = bench.jobs()
    fitting = [[job for job in plan if _fits(job, pattern)] for pattern in only or "*"]
    for pattern, jobs in zip(only, fitting, strict=False):
        if not jobs:
            raise InvalidValue(f"only {pattern!r}: no row, model or group; --status names all rows")
    own = {job.name for jobs in fitting for job in jobs}
    own |= {first for job in plan if job.name in own and (first := bench.stage1_of(job))}
    return [job for job in plan if job.name in own]


def _fits(job: Job, pattern: str) -> bool:
    return any(fnmatch(name, pattern) for name in (job.name, job.recipe, job.group))


# ---- doing it --------------------------------------------------------------------------------------------


class _TimeIsUpError(Exception):
    """Leaves a training, which goes on from its last evaluation another time."""


def run_pieces(
    bench: Bench,
    *,
    only: Sequence[str] = (),
    minutes: float | None = None,
    device: str = "cpu",
    note: Callable[[str], None] = print,
) -> None:
    """Do the pieces that are left, in their order, on one thread.

    Several processes may do so in one folder: each piece is done by one of them. A process ends when no piece
    is left that it could begin.

    Args:
        bench: where.
        only: patterns of the names, the recipes or the groups of jobs; all by default.
        minutes: the time after which it stops, within a training if need be; None for no limit.
        device: what trains: "cpu", "cuda", …; figures are made on the CPU.
        note: called with what is done, with figures of val alone.

    Raises:
        InvalidValue: a piece was done with other settings.
    """
    torch.set_num_threads(1)
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    try:
        for job in _pieces(bench, only):
            _require_time(deadline)
            found = _piece(bench, job, device, deadline)
            left = what_is_left(bench, only)
            note(f"{left.done}/{left.planned} {job.name}: {found['cpu_seconds']:.0f} s of CPU, "
                 f"val {found['selected']:.4f}")  # fmt: skip
    except _TimeIsUpError:
        note(f"{minutes:g} minutes are over; the same command goes on from here")


def _require_time(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise _TimeIsUpError


def _pieces(bench: Bench, only: Sequence[str]) -> Iterator[Job]:
    """The first piece that can be begun, held while it is done; again and again, as each may free others."""
    for job in filter(lambda job: bench.done(job.name), bench.jobs()):
        _require_same(bench, job)
    while True:
        for job in _wanted(bench, only):
            first = bench.stage1_of(job)
            if not bench.done(job.name) and (first is None or bench.done(first)):
                try:
                    with bench.piece(job):
                        if bench.done(job.name):
                            continue
                        yield job
                except LibraryLocked:
                    continue
                break
        else:
            return


def _require_same(bench: Bench, job: Job) -> None:
    # Results of before a field was there mean its default.
    defaults = {field.name: field.default for field in fields(Job) if field.default is not MISSING}
    if defaults | bench.result(job.name)["job"] != json.loads(json.dumps(asdict(job))):
        path = bench.result_file(job.name)
        raise InvalidValue(f"{path}: was made with other settings; remove it, or give another folder")


def _piece(bench: Bench, job: Job, device: str, deadline: float | None) -> dict[str, Any]:
    """One job; the figures are written last, since they mark it as done."""
    first = bench.stage1_of(job)
    if first and not (bench.model(first) / "config.json").is_file():
        # Figures that came from elsewhere say that it is done, but the model stayed there.
        _train(bench, bench.job(first), device, deadline)
    trained = _train(bench, job, device, deadline)
    begun = time.process_time()
    found = {"job": asdict(job), **_course(trained), **figures(bench, job)}
    if job.relevant:
        found["related"] = _related_share(bench, job)
    keep_answers(bench, job)
    found["cpu_seconds"] += time.process_time() - begun
    write_json(bench.result_file(job.name), found)
    for state in (bench.model(job.name) / "run").glob("**/state.pt"):
        state.unlink()
    return found


def _train(bench: Bench, job: Job, device: str, deadline: float | None) -> TrainedModel:
    """The job's model, with its calibration and its card; an interrupted training goes on."""
    world, out = bench.world(job.world), bench.model(job.name)
    stage1, candidates = bench.sources(job)
    overrides = [*job.overrides, f"loop.device={device}"]
    if job.relevant:
        path = _related_file(bench, job)
        _write_related(world.split("train", job.top), path, job.relevant, job.phi)
        overrides.append(f"sampling.relevant_pairs={json.dumps(str(path))}")
    experiment = Experiment.prepare(
        job.recipe, **world.training(job.top),
        stage1=stage1, candidates=candidates, segments=bench.preset.segments, overrides=overrides,
    )  # fmt: skip
    learned, judged = (with_lines(before, job.lines) for before in experiment.built_on)
    return replace(experiment, built_on=(learned, judged)).train(
        out,
        resume=any((out / "run").glob("**/state.pt")),
        progress=lambda step, steps, values: _require_time(deadline),
    )


def _course(trained: TrainedModel) -> dict[str, Any]:
    """What a training says of itself, with its curve on val."""
    loops = trained.trained.settings.loops
    phases = [
        {
            "name": name,
            "select": loop.select,
            "steps": fitted.step,
            "epochs": fitted.history[-1]["epoch"],
            "best_step": fitted.best_step,
            "curve": [[row["step"], row["epoch"], round(row[loop.select], 5)] for row in fitted.history],
            "losses": [_losses(row) for row in fitted.history],
        }
        for (name, loop), fitted in zip(loops.items(), trained.trained.fitted, strict=True)
    ]
    fitted = trained.trained.fitted
    return {
        "phases": phases,
        "selected": fitted[-1].best,
        "device": next(iter(loops.values())).device,
        "seconds": sum(phase.seconds for phase in fitted),
        "cpu_seconds": sum(phase.cpu_seconds for phase in fitted),
        "parameters": sum(p.numel() for p in trained.trained.model.parameters()),
    }


def _losses(row: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 5) for name, value in row.items() if name.startswith("loss/")}


def _related_file(bench: Bench, job: Job) -> Path:
    return bench.out / "relevant" / f"{job.name}.npz"


def _related_share(bench: Bench, job: Job) -> float:
    """The share of all ordered pairs of training captions that are potentially relevant."""
    pairs = read_relevant_pairs(_related_file(bench, job))
    return len(pairs) / (pairs.count * (pairs.count - 1))


def _write_related(split: Split, path: Path, theta: float, phi: str) -> None:
    """Pairs of a split's captions that resemble each other by at least ``theta``."""
    from moviola.encoders import load_sentence_encoder

    captions = split.pairs.captions
    pairs = find_relevant_pairs(captions, load_sentence_encoder("minilm"), phi=phi, theta=theta)
    write_relevant_pairs(pairs, path)
