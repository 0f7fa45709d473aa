"""Submitting moments to an evaluation server."""

from __future__ import annotations

from fastapi import APIRouter

from moviola.errors import InvalidValue, NotFound
from moviola.library import there
from moviola.server.dres_schemas import Submission, SubmissionOutcome
from moviola.server.service import ServiceOf

__all__ = ["router"]

router = APIRouter(prefix="/api/dres", tags=["evaluation"])


@router.post("/submissions")
async def submit(request: Submission, service: ServiceOf) -> SubmissionOutcome:
    """Submit a moment, or one picture of it, to the DRES server that this server was started with.

    The video goes by the last part of its id, which is the name that collections of VBS and LSC have for it.
    """
    if service.dres is None:
        raise NotFound("no evaluation server; start with --dres URL --dres-user NAME")
    catalogue = service.library.catalogue
    video = there(catalogue.video(request.video_id), catalogue)
    end = request.start if request.end is None else request.end
    if not request.start <= end or request.start > video.duration:
        raise InvalidValue(
            f"start {request.start:g}, end {end:g}: no part of the video's {video.duration:g} s; give one"
        )
    item = video.video_id.rpartition("/")[2]
    outcome = await service.media.run(service.dres.submit, item, request.start, end)
    return SubmissionOutcome(
        verdict=outcome.verdict, description=outcome.description, evaluation=outcome.evaluation
    )
