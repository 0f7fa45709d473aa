"""Judging by raters: sign in, judge batches, see progress and agreement; its page is ``/judge``."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from moviola.datasets.building.candidate_pairs import GUIDELINE
from moviola.errors import NotFound
from moviola.judging import EXPORTS, Batch, JudgingTask, export_task, progress_of
from moviola.server.judging_schemas import (
    BatchToJudge,
    GivenAnswer,
    JudgedForm,
    JudgingInfo,
    LevelMeaning,
    NextBatch,
    ProgressAnswer,
    QueryRow,
    Rater,
    RaterRow,
    SignedIn,
    TakenBack,
)
from moviola.server.service import ServiceOf

__all__ = ["router"]

router = APIRouter(prefix="/api/judging", tags=["judging"])


def _task(service: ServiceOf) -> JudgingTask:
    if service.task is None:
        raise NotFound("no judging task is served; start the server with --judge TASK")
    return service.task


TaskOf = Annotated[JudgingTask, Depends(_task)]
"""The judging task of this server."""


@router.get("")
def info(task: TaskOf) -> JudgingInfo:
    """The judging task and its guideline."""
    return JudgingInfo(
        queries=len({pair.query_id for pair in task.pairs}),
        moments=len(task.pairs),
        raters=task.settings.raters,  # type: ignore[arg-type]  # validated by TaskSettings
        names=task.raters(),
        levels=[LevelMeaning(level=level, meaning=GUIDELINE[level]) for level in sorted(GUIDELINE)[::-1]],
        export_formats=[
            JudgedForm(name=name, title=form.title, suffix=form.suffix) for name, form in EXPORTS.items()
        ],
    )


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
        kappa=_number(figures.kappa),
        weighted_kappa=_number(figures.weighted_kappa),
        levels=figures.histogram.tolist(),
        low_high=figures.low_high.tolist(),
    )


def _number(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return None if isnan(value) else value


@router.get(
    "/export",
    response_class=Response,
    responses={200: {"content": {"application/json": {}, "text/csv": {}}, "description": "The file"}},
)
def export(
    task: TaskOf,
    form: Annotated[
        Literal["tvr_ranking", "qrels", "ratings", "pairs"],
        Query(description="See `export_formats`.", examples=["tvr_ranking"]),
    ] = "tvr_ranking",
) -> Response:
    """What raters agreed on, as a file: for ``moviola evaluate``; every rating; or what is to be rated."""
    suffix = EXPORTS[form].suffix
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"judged{suffix}"
        export_task(task, path, form)
        content = path.read_bytes()
    kind = {".csv": "text/csv; charset=utf-8"}.get(suffix, "application/json")
    return Response(
        content,
        media_type=kind,
        headers={"Content-Disposition": f'attachment; filename="{task.path.stem}-{form}{suffix}"'},
    )
