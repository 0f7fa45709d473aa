"""Trains every job of a plan, some side by side, and keeps what each found; interrupted work goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import torch

from moviola.benchmark.plan import Job
from moviola.benchmark.recall import in_corpus, in_video
from moviola.benchmark.world import World
from moviola.errors import InvalidValue
from moviola.files.writing import write_json
from moviola.measures import Run
from moviola.measures.output_formats import write_run
from moviola.models.pretrained import from_pretrained, save_pretrained
from moviola.models.spr import SegmentRetriever, SprClip
from moviola.training.cards import described, facts, model_card
from moviola.training.recipes import Split, Trained, judge, read_settings, train
from moviola.training.registry import recipe
from moviola.training.segments import propose_for, video_scores

__all__ = ["Bench", "run_jobs"]

IN_VIDEO = 5
"""Segments retrieved where one video is searched alone: 20 s of it."""


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
        """What a job found."""
        found: dict[str, Any] = json.loads(self.result_file(name).read_text())
        return found

    def stage1(self, name: str) -> SegmentRetriever:
        """A trained stage 1."""
        return from_pretrained(self.model(name), kind=SegmentRetriever)


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
    """One job, in a process of its own."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    how = recipe(job.recipe)
    if job.relevant:
        how = _with_relevant_pairs(how, _split(bench.world, "train", job.top), job.relevant)
    settings = read_settings(how, overrides=job.overrides)
    stage1 = bench.stage1(job.stage1) if job.stage1 else None

    def ready(split: Split, count: int = bench.segments) -> Split:
        return split if stage1 is None else _with_stage1(split, stage1, how.needs, count)

    def start(model: torch.nn.Module) -> None:
        if isinstance(model, SprClip) and stage1 is not None:
            model.start_from(stage1)

    learned, chosen, test = (ready(_split(bench.world, name, job.top)) for name in ("train", "val", "test"))
    trained = train(how, learned, chosen, settings, start=start)
    asked = time.perf_counter()
    with torch.inference_mode():
        run = how.run(trained.model, test)
        answered = time.perf_counter() - asked
        # A stage 1 has no answer of its own in one video: all its segments are one proposal.
        alone = in_video(lambda part: how.run(trained.model, ready(part, IN_VIDEO)), test) if stage1 else {}
    found = {"test": judge(run, test), "recall": in_corpus(run, test) | alone}
    _keep(bench, job, trained, run, found | {"query_seconds": answered / len(test.queries)})
    return job.name, time.perf_counter() - started, found["test"]["nDCG@20,IoU>=0.5"]


def _with_stage1(split: Split, model: SegmentRetriever, needs: frozenset[str], count: int) -> Split:
    """A split with what a recipe needs of a stage 1."""
    if "proposals" in needs:
        split = replace(split, proposals=propose_for(model, split, count=count))
    if "first_stage" in needs:
        split = replace(split, first_stage=video_scores(model, split))
    return split


@cache
def _split(world: World, name: str, top: int) -> Split:
    return world.split(name, top if name == "train" else None)


def _keep(bench: Bench, job: Job, trained: Trained, run: Run, found: dict[str, Any]) -> None:
    """Write the model, its answers and its figures; the figures last, since they mark the job as done."""
    for folder in ("models", "runs", "results"):
        (bench.out / folder).mkdir(parents=True, exist_ok=True)
    extra = facts(
        job.recipe,
        trained,
        bench.world.features,
        {name: described(_split(bench.world, name, job.top), name) for name in ("train", "val")},
        job.stage1 if recipe(job.recipe).needs else None,
    )
    config = asdict(cast("Any", trained.model).config)
    save_pretrained(
        trained.model, bench.model(job.name), card=model_card(job.recipe, config, extra), extra=extra
    )
    write_run(run, bench.run_file(job.name))
    found = {
        "job": asdict(job),
        **found,
        "val": trained.fitted[-1].best,
        "steps": sum(fitted.steps for fitted in trained.fitted),
        "seconds": sum(fitted.seconds for fitted in trained.fitted),
        "parameters": sum(p.numel() for p in trained.model.parameters()),
        "log": trained.fitted[-1].history,
    }
    write_json(bench.result_file(job.name), found, indent=1)


def _with_relevant_pairs(how: Any, split: Split, theta: float) -> Any:
    """The recipe with potentially relevant pairs of the training captions (Phi of noun and verb phrases)."""
    from moviola.datasets.building.phrases import load_chunker
    from moviola.datasets.building.relevant_pairs import encode_parts, parts_of, relevant_pairs
    from moviola.encoders import load_sentence_encoder

    captions = split.pairs.captions
    embed, chunk = load_sentence_encoder("minilm"), load_chunker("rules", captions)
    parts = parts_of(captions, "np-vp", chunk)
    sentences = encode_parts(parts_of(captions, "sent", chunk), embed)
    pairs = relevant_pairs(sentences, encode_parts(parts, embed), parts.offsets, theta)
    return replace(cast("Any", how), relevant=pairs)
