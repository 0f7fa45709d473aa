"""Submitting moments to an evaluation server."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from moviola.addons.dres.dres import Dres, Verdict
from moviola.errors import InvalidValue, NotFound
from moviola.library import there
from moviola.server.schemas import Name, RequestModel, ResponseModel, Seconds
from moviola.server.service import ServiceOf

router = APIRouter(prefix="/api/dres", tags=["evaluation"])


class Submission(RequestModel):
    """A moment to submit."""

    video_id: Name = Field(examples=["v3c/00123"])
    start: Seconds
    end: Seconds | None = Field(default=None, description="By default the start: one picture.")


class SubmissionOutcome(ResponseModel):
    """The verdict on a submission."""

    verdict: Verdict = Field(description="pending: no judge has seen it yet.")
    description: str = Field(description="In the words of the evaluation.", examples=["Submission correct!"])
    evaluation: str = Field(examples=["VBS 2026"])


@router.post("/submissions")
async def submit(request: Submission, service: ServiceOf) -> SubmissionOutcome:
    """Submit a moment, or one picture of it, to the DRES server that this server was started with.

    The video goes by the last part of its id, which is the name that collections of VBS and LSC have for it.
    """
    dres: Dres | None = service.additions.get("dres")
    if dres is None:
        raise NotFound("no evaluation server; start with --dres https://USER@HOST")
    catalogue = service.library.catalogue
    video = there(catalogue.video(request.video_id), catalogue)
    end = request.start if request.end is None else request.end
    if not request.start <= end or request.start > video.duration:
        raise InvalidValue(
            f"start {request.start:g}, end {end:g}: no part of the video's {video.duration:g} s; give one"
        )
    item = video.video_id.rpartition("/")[2]
    outcome = await service.media.run(dres.submit, item, request.start, end)
    return SubmissionOutcome.model_validate(outcome)
