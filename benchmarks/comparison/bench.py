"""Where a comparison lives: worlds, models, what finished pieces found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from comparison.lines import with_lines
from comparison.plan import WORLDS, Job, Preset, jobs
from comparison.world import World, prepare, require_encoder
from moviola.errors import InvalidValue
from moviola.files.locks import exclusive
from moviola.files.rows import read_json
from moviola.study.measures import Run, write_run
from moviola.study.training.answering import AnsweringModel
from moviola.study.training.recipes import recipe

__all__ = ["Bench"]


@dataclass(frozen=True)
class Bench:
    """Where a comparison lives, and what is planned."""

    out: Path
    preset: Preset

    def world(self, name: str) -> World:
        """The world of that name, which has been prepared."""
        cut = WORLDS[name]
        drawn = cut.times * self.preset.queries if self.preset.narrator else None
        return World(self.out / "worlds" / "report", cut, drawn)

    def prepare(self, workers: int, note: Callable[[str], None]) -> None:
        """Make the worlds of the plan that are missing.

        Errors are those of :func:`prepare` and :func:`require_encoder`.

        Args:
            workers: processes that film; further calls wait meanwhile.
            note: called with what is being done.
        """
        planned, preset = {job.world for job in self.jobs()}, self.preset
        for world in (self.world(name) for name in WORLDS if name in planned):
            if preset.encoder:
                require_encoder(world, preset.encoder)
            with exclusive(self._lock("world-report"), wait=True):
                prepare(
                    world.folder, videos=preset.videos, seed=preset.films, workers=workers,
                    subtitles=preset.narrator, queries=world.queries, cut=world.cut, note=note,
                )  # fmt: skip

    def model(self, name: str) -> Path:
        """Folder of a trained model."""
        return self.out / "models" / name

    def result_file(self, name: str) -> Path:
        """What a piece found."""
        return self.out / "results" / f"{name}.json"

    def done(self, name: str) -> bool:
        """Whether a piece is finished."""
        return self.result_file(name).is_file()

    def result(self, name: str) -> dict[str, Any]:
        """What a piece found.

        Raises:
            InvalidValue: an earlier version wrote it, without its curve on val.
        """
        found: dict[str, Any] = read_json(self.result_file(name))
        if "phases" not in found:
            raise InvalidValue(
                f"{self.result_file(name)}: has no curves on val, as an earlier version wrote it; remove it "
                "and run the comparison again"
            )
        return found

    def jobs(self) -> list[Job]:
        """The planned jobs, in their order."""
        return jobs(self.preset)

    def job(self, name: str) -> Job:
        """A planned job by its name."""
        return {own.name: own for own in self.jobs()}[name]

    def stage1_of(self, job: Job) -> str | None:
        """The job that a job's model builds on; None for models that need none."""
        return job.stage1 if job.stage1 and recipe(job.recipe).needs else None

    def sources(self, job: Job, segments: int | None = None) -> tuple[Path | None, Path | None]:
        """What a job's model builds on: a stage 1's folder, or a run of what that proposes, made if missing.

        A run where the model reads clips of another length than the stage 1.
        """
        first, segments = self.stage1_of(job), segments or self.preset.segments
        if first is None or WORLDS[job.world].clip_seconds == 1:
            return self.model(first) if first else None, None
        path = self.out / "candidates" / f"{first}-{segments}.json"
        if not path.is_file():
            path.parent.mkdir(exist_ok=True)
            write_run(_proposed(self, self.job(first), segments), path)
        return None, path

    def answering(self, job: Job, segments: int | None = None) -> AnsweringModel:
        """A job's trained model, ready to answer after this number of segments, by default the preset's."""
        stage1, candidates = self.sources(job, segments)
        answering = AnsweringModel.open(
            self.model(job.name), self.world(job.world).features.facts, stage1=stage1, candidates=candidates,
            segments=segments or self.preset.segments,
        )  # fmt: skip
        return replace(answering, built_on=with_lines(answering.built_on, job.lines))

    def _lock(self, name: str) -> Path:
        path = self.out / "locks" / f"{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def piece(self, job: Job) -> Any:
        """Holds a piece, so that no other process does it.

        Raises:
            LibraryLocked: another one does.
        """
        return exclusive(self._lock(job.name))


def _proposed(bench: Bench, first: Job, segments: int) -> Run:
    """What a stage 1 proposes for the queries of all splits, as one run."""
    answering, world = bench.answering(first, segments), bench.world(first.world)
    runs = [answering.run(world.split(name, first.top)) for name in ("train", "val", "test")]
    return Run.from_dict({query: rows for run in runs for query, rows in run.rows().items()})
