"""Indexing jobs and their events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from fastapi.responses import Response, StreamingResponse
from pydantic import Field

from moviola.search.schema import Name as Source
from moviola.server.jobs import ENDED, Jobs
from moviola.server.routes.upkeep import require_changing
from moviola.server.schemas import Job, JobList, RequestModel
from moviola.server.service import ServiceOf

router = APIRouter(prefix="/api/jobs", tags=["jobs"])

Name = Annotated[str, Path(max_length=100, description="Of the job.", examples=["9f86d081884c7d65"])]
_RETRY = 2000  # milliseconds after which a browser reconnects


class JobRequest(RequestModel):
    """Files and folders to index."""

    sources: list[Source] = Field(min_length=1, max_length=1_000, examples=[["holiday"]])
    library: str | None = Field(
        default=None, max_length=4_096,
        description="Where to: one of `libraries` of the library; null: the only one.", examples=["films"],
    )  # fmt: skip
    ocr: bool | None = Field(
        default=None,
        description="Read text in pictures; null: if its packages are installed.",
        examples=[None],
    )


@router.post("", status_code=201)
async def start(request: JobRequest, service: ServiceOf) -> Job:
    """Index files and folders; jobs run one after the other.

    Sources are absolute, or relative to one of `ingest_folders` of the library; links are followed before the
    folder is checked. Of several libraries one must be named. Searches continue meanwhile, and find each
    video as soon as it is complete.
    """
    require_changing(service)
    home = service.home_named(request.library)
    return await service.jobs.add(home.folder, home.name, request.sources, request.ocr)


@router.get("")
async def jobs(service: ServiceOf) -> JobList:
    """All jobs since the server started, newest first."""
    return JobList(jobs=service.jobs.all())


@router.get("/{job}")
async def job(job: Name, service: ServiceOf) -> Job:
    """State of a job."""
    return service.jobs.get(job).job


@router.delete("/{job}")
async def cancel(job: Name, service: ServiceOf) -> Job:
    """End a job. Finished videos stay in the library."""
    return await service.jobs.cancel(job)


_EVENT = {"example": 'id: 3\nevent: progress\ndata: {"job": "9f86d081884c7d65", …}\n\n'}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": _EVENT},
        "description": "`progress`, `refused` and finally `done`, each with the job at that time",
    },
    204: {"description": "The job has ended, and all its events were received"},
}


@router.get("/{job}/events", response_class=Response, responses=_EVENTS)
async def events(
    job: Name,
    service: ServiceOf,
    last_event_id: Annotated[
        str, Header(max_length=100, description="Number of the last received event.", examples=["3"])
    ] = "",
) -> Response:
    """Events of a job as server-sent events: all of them, or those after the last received one."""
    after = int(last_event_id[:18]) if last_event_id.isascii() and last_event_id.isdecimal() else 0
    run = service.jobs.get(job)
    if run.job.state in ENDED and after >= run.events[-1].number:
        return Response(status_code=204)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_lines(service.jobs, job, after), 200, headers, "text/event-stream")


async def _lines(jobs: Jobs, name: str, after: int) -> AsyncIterator[str]:
    yield f"retry: {_RETRY}\n\n"
    async for event in jobs.events(name, after):
        if event is None:
            yield ": nothing new\n\n"
        else:
            yield f"id: {event.number}\nevent: {event.name}\ndata: {event.job.model_dump_json()}\n\n"
