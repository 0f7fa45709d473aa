"""Judging by raters: sign in, judge batches, see progress and agreement; its page is ``/judge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response
from pydantic import Field

from moviola.errors import NotFound
from moviola.server.routes.exports import made_file
from moviola.server.schemas import Name, RequestModel, ResponseModel
from moviola.server.service import ServiceOf
from moviola.study.datasets.building.candidate_pairs import GUIDELINE
from moviola.study.datasets.building.consensus import LEVELS
from moviola.study.judging import EXPORTS, Batch, JudgingTask, export_task, progress_of
from moviola.study.judging.progress import number_or_none

router = APIRouter(prefix="/api/judging", tags=["judging"])

Level = Annotated[int, Field(ge=0, lt=LEVELS, examples=[3])]
Count = Annotated[int, Field(ge=0, examples=[20])]
RaterName = Annotated[Name, Field(max_length=200, examples=["Anna"])]


class LevelMeaning(ResponseModel):
    """A level of relevance, with its meaning for raters."""

    level: Level
    meaning: str = Field(examples=[GUIDELINE[3]])


class JudgedForm(ResponseModel):
    """A file format for judgements."""

    name: str = Field(examples=["tvr_ranking"])
    title: str = Field(examples=[EXPORTS["tvr_ranking"].title])
    suffix: str = Field(examples=[".json"])


class JudgingInfo(ResponseModel):
    """A judging task and its guideline."""

    queries: Count
    moments: Count = Field(description="Moments to judge, including second batches that may not be due.")
    raters: Literal[1, 2, 4] = Field(description="Raters per moment; if 2 differ, 2 more judge it.")
    names: list[str] = Field(description="Names of the raters signed in.", examples=[["Anna", "Ben"]])
    levels: list[LevelMeaning] = Field(description="Levels from 4 to 0.")
    export_formats: list[JudgedForm]


class Rater(RequestModel):
    """A rater signing in."""

    rater: RaterName


class SignedIn(ResponseModel):
    """The rater's name as it was first written."""

    rater: str = Field(examples=["Anna"])


class GivenAnswer(Rater):
    """A rater's answer on one moment."""

    pair_id: Name = Field(examples=["1:beach:12.000-19.500"])
    level: Level | None = Field(description="null skips the moment.")


class TakenBack(Rater):
    """A withdrawn answer."""

    pair_id: Name = Field(examples=["1:beach:12.000-19.500"])


class MomentToJudge(ResponseModel):
    """A moment to judge, without rank, systems or other raters' levels."""

    pair_id: str = Field(examples=["1:beach:12.000-19.500"])
    video_id: str = Field(examples=["beach"])
    start: float = Field(examples=[12.0])
    end: float = Field(examples=[19.5])
    level: Level | None = Field(description="This rater's.")
    passed: bool = Field(description="Whether this rater skipped it.", examples=[False])


class BatchToJudge(ResponseModel):
    """Up to 20 moments of one query, in this rater's own order."""

    query_id: str = Field(examples=["1"])
    query: str = Field(examples=["a dog runs on a beach"])
    moments: list[MomentToJudge]


class NextBatch(ResponseModel):
    """The next batch."""

    batch: BatchToJudge | None = Field(description="null: nothing left for this rater.")
    open: Count = Field(description="Moments without agreement so far, for any rater.")


class RaterRow(ResponseModel):
    """Progress of a rater."""

    name: str = Field(examples=["Anna"])
    judged: Count
    passed: Count
    distance: float | None = Field(
        description="Mean distance from the median of all, in levels; null without shared moments.",
        examples=[0.25],
    )
    kappa: float | None = Field(description="Mean Cohen's kappa with the other raters.", examples=[0.61])


class QueryRow(ResponseModel):
    """State of a query's moments."""

    query_id: str = Field(examples=["1"])
    query: str = Field(examples=["a dog runs on a beach"])
    moments: Count
    agreed: Count
    discarded: Count
    set_aside: Count
    open: Count
    answers: Count = Field(description="Moments with an agreed level of 1 or above.")


class ProgressAnswer(ResponseModel):
    """Progress of a task, and the agreement of its raters."""

    queries: list[QueryRow]
    raters: list[RaterRow]
    kappa: float | None = Field(
        description="Cohen's kappa of the first two ratings of each moment; null if undefined.",
        examples=[0.49],
    )
    weighted_kappa: float | None = Field(description="Kappa with squared weights.", examples=[0.7])
    levels: list[int] = Field(description="Agreed moments by level, 0 to 4.", examples=[[12, 5, 8, 10, 5]])
    low_high: list[list[int]] = Field(
        description="Moments by lowest and highest rating, from two ratings on.",
        examples=[[[5, 2, 0, 0, 0], [0, 4, 3, 0, 0], [0, 0, 6, 2, 1], [0, 0, 0, 3, 2], [0, 0, 0, 0, 4]]],
    )


def _task(service: ServiceOf) -> JudgingTask:
    task: JudgingTask | None = service.additions.get("judging")
    if task is None:
        raise NotFound("no judging task is served; start the server with --judge TASK")
    return task


TaskOf = Annotated[JudgingTask, Depends(_task)]
"""The judging task of this server."""


@router.get("")
def info(task: TaskOf) -> JudgingInfo:
    """The judging task and its guideline."""
    forms = [JudgedForm(name=name, title=form.title, suffix=form.suffix) for name, form in EXPORTS.items()]
    levels = [LevelMeaning(level=level, meaning=GUIDELINE[level]) for level in sorted(GUIDELINE)[::-1]]
    return JudgingInfo(
        queries=len({pair.query_id for pair in task.pairs}), moments=len(task.pairs),
        raters=task.settings.raters,  # type: ignore[arg-type]  # validated by TaskSettings
        names=task.raters(), levels=levels, export_formats=forms,
    )  # fmt: skip


@router.post("/sign-in")
def sign_in(rater: Rater, task: TaskOf) -> SignedIn:
    """Sign in under a name; a known name continues its work, in any spelling of case."""
    return SignedIn(rater=task.sign_in(rater.rater))


@router.post("/next")
def next_batch(rater: Rater, task: TaskOf) -> NextBatch:
    """The batch to judge: the rater's own, else another that needs a rater."""
    batch: Batch | None = task.next_batch(rater.rater)
    outcome = task.outcome()
    return NextBatch(
        batch=BatchToJudge.model_validate(batch) if batch else None,
        open=sum(outcome.standing[pair.pair_id] == "open" for pair in task.due(outcome)),
    )


@router.post("/answers")
def answer(given: GivenAnswer, task: TaskOf) -> GivenAnswer:
    """Rate a moment, or change the rating; saved on disk when this responds. 409: others have rated it."""
    task.answer(given.rater, given.pair_id, given.level)
    return given


@router.post("/undo")
def undo(taken_back: TakenBack, task: TaskOf) -> TakenBack:
    """Withdraw an answer; the moment stays with its rater."""
    task.undo(taken_back.rater, taken_back.pair_id)
    return taken_back


@router.get("/progress")
def progress(task: TaskOf) -> ProgressAnswer:
    """Progress of all raters, and their agreement."""
    rated = progress_of(task)
    figures = rated.agreement
    return ProgressAnswer(
        queries=[QueryRow.model_validate(query) for query in rated.queries],
        raters=[RaterRow.model_validate(rater) for rater in rated.raters],
        kappa=number_or_none(figures.kappa), weighted_kappa=number_or_none(figures.weighted_kappa),
        levels=figures.histogram.tolist(), low_high=figures.low_high.tolist(),
    )  # fmt: skip


@router.get(
    "/export", response_class=Response,
    responses={200: {"content": {"application/json": {}, "text/csv": {}}, "description": "The file"}},
)  # fmt: skip
async def export(
    service: ServiceOf,
    task: TaskOf,
    form: Annotated[
        Literal["tvr_ranking", "qrels", "ratings", "pairs"],
        Query(description="See `export_formats`.", examples=["tvr_ranking"]),
    ] = "tvr_ranking",
) -> Response:
    """What raters agreed on, as a file: for ``moviola evaluate``; every rating; or what is to be rated."""

    def make(folder: Path) -> Path:
        path = folder / f"{task.path.stem}-{form}{EXPORTS[form].suffix}"
        export_task(task, path, form)
        return path

    return await made_file(service.media, make)
