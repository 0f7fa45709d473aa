"""Trains every job of a plan, some side by side, and keeps what each found; interrupted work goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from moviola.benchmark.plan import Job
from moviola.benchmark.recall import in_corpus, in_video
from moviola.benchmark.world import World
from moviola.errors import InvalidValue
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.measures.output_formats import write_run
from moviola.training.data import Split
from moviola.training.experiment import AnsweringModel, TrainedModel, train_model
from moviola.training.judging import judge
from moviola.training.one_video import SEGMENTS_IN_VIDEO
from moviola.training.recipes import recipe

__all__ = ["Bench", "run_jobs"]


@dataclass(frozen=True)
class Bench:
    """Where a comparison lives, and how many segments stage 1 retrieves."""

    world: World
    out: Path
    segments: int

    def model(self, name: str) -> Path:
        """Folder of a trained model."""
        return self.out / "models" / name

    def run_file(self, name: str) -> Path:
        """The answers of a job to the test queries."""
        return self.out / "runs" / f"{name}.jsonl"

    def result_file(self, name: str) -> Path:
        """What a job found."""
        return self.out / "results" / f"{name}.json"

    def result(self, name: str) -> dict[str, Any]:
        """What a job found.

        Raises:
            InvalidValue: an earlier version wrote it, without figures on val.
        """
        found: dict[str, Any] = read_json(self.result_file(name))
        if not isinstance(found.get("val"), dict):
            raise InvalidValue(
                f"{self.result_file(name)}: has no figures on val, as an earlier version wrote it; remove it "
                "and run the comparison again"
            )
        return found

    def built_on(self, job: Job) -> Path | None:
        """Folder of the stage 1 that a job's model builds on; None for models that need none."""
        return self.model(job.stage1) if job.stage1 and recipe(job.recipe).needs else None

    def answering(self, job: Job, segments: int | None = None) -> AnsweringModel:
        """A job's trained model, ready to answer after so many segments, by default :attr:`segments`."""
        return AnsweringModel.open(
            self.model(job.name), self.world.features.facts, stage1=self.built_on(job),
            segments=segments or self.segments,
        )  # fmt: skip


def run_jobs(bench: Bench, plan: Sequence[Job], *, workers: int, tell: Callable[[str], None] = print) -> None:
    """Train what is not trained yet.

    Args:
        bench: where.
        plan: jobs, those of stage 1 first.
        workers: processes of one thread each.
        tell: told what is done.

    Raises:
        InvalidValue: a job of that name was done with other settings.
    """
    missing = [job for job in plan if not _is_done(bench, job)]
    first = [job for job in missing if job.stage1 is None]
    rest = [job for job in missing if job.stage1 is not None]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        done = len(plan) - len(missing)
        for wave in (first, rest):
            for name, seconds, value in pool.map(_do, [bench] * len(wave), wave):
                done += 1
                tell(f"{done}/{len(plan)} {name}: {seconds:.0f} s, nDCG@20,IoU>=0.5 {value:.4f}")


def _is_done(bench: Bench, job: Job) -> bool:
    """Whether there is a result of exactly this job."""
    path = bench.result_file(job.name)
    if not path.is_file():
        return False
    if bench.result(job.name)["job"] != json.loads(json.dumps(asdict(job))):
        raise InvalidValue(f"{path}: was made with other settings; remove it, or give another folder")
    return True


def _do(bench: Bench, job: Job) -> tuple[str, float, float]:
    """One job, in a process of its own; the figures are written last, since they mark it as done."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    trained = _train(bench, job)
    test, answering = bench.world.split("test"), bench.answering(job)
    ready = answering.completed(test)
    asked = time.perf_counter()
    run = answering.recipe.run(answering.model, ready, answering.how)
    answered = time.perf_counter() - asked
    # A stage 1 has no answer of its own in one video: all its segments are one proposal.
    alone = in_video(bench.answering(job, SEGMENTS_IN_VIDEO).run, test) if job.stage1 else {}
    figures = judge(run, test)
    val = bench.world.split("val")
    found = {
        "test": figures,
        "val": judge(answering.run(val), val),
        "recall": in_corpus(run, test, answering.video_run(test)) | alone,
        "query_seconds": answered / len(test.queries),
    }
    write_run(run, bench.run_file(job.name))
    write_json(bench.result_file(job.name), {"job": asdict(job), **found, **_figures(trained)}, indent=1)
    return job.name, time.perf_counter() - started, figures["nDCG@20,IoU>=0.5"]


def _train(bench: Bench, job: Job) -> TrainedModel:
    """The job's model, with its calibration and its card; an interrupted training goes on."""
    world, out = bench.world, bench.model(job.name)
    overrides = list(job.overrides)
    if job.relevant:
        path = bench.out / "relevant" / f"{job.name}.npz"
        _write_relevant_pairs(world.split("train", job.top), job.relevant, path)
        overrides.append(f"sampling.relevant_pairs={json.dumps(str(path))}")
    return train_model(
        job.recipe, world.features, train=world.pairs("train"), val=world.pairs("val"), out=out,
        train_videos=world.videos("train"), val_videos=world.videos("val"), top=job.top,
        stage1=bench.built_on(job), segments=bench.segments, overrides=overrides,
        resume=any((out / "run").glob("**/state.pt")),
    )  # fmt: skip


def _figures(trained: TrainedModel) -> dict[str, Any]:
    """What a training says of itself."""
    fitted = trained.trained.fitted
    return {
        "selected": fitted[-1].best,
        "converged": all(phase.best_step < phase.steps for phase in fitted),
        "steps": sum(phase.steps for phase in fitted),
        "seconds": sum(phase.seconds for phase in fitted),
        "parameters": sum(p.numel() for p in trained.trained.model.parameters()),
        "log": fitted[-1].history,
    }


def _write_relevant_pairs(split: Split, theta: float, path: Path) -> None:
    """Potentially relevant pairs of the training captions (Phi of noun and verb phrases)."""
    from moviola.datasets.building.relevant_pairs import write_relevant_pairs
    from moviola.datasets.building.steps import find_relevant_pairs
    from moviola.encoders import load_sentence_encoder

    found = find_relevant_pairs(split.pairs.captions, load_sentence_encoder("minilm"), theta=theta)
    write_relevant_pairs(found, path)
