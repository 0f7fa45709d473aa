"""State of the server and its library."""

from __future__ import annotations

import os
from importlib.metadata import version

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from moviola.export import all_formats
from moviola.server.options import is_loopback
from moviola.server.schemas import ExportFormat, LibraryInfo, LimitsInfo, ModelInUse
from moviola.server.service import ServiceOf

router = APIRouter(tags=["library"])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", response_class=PlainTextResponse)
async def healthz() -> str:
    """Whether the server runs: ``ok``. Needs no token."""
    return "ok"


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses={503: {"description": "Not ready; the body has the reason"}})
async def readyz(service: ServiceOf) -> Response:
    """Whether queries can be answered: the encoder is in memory."""
    if service.unready:
        return JSONResponse({"ready": False, "reason": service.unready}, 503)
    return JSONResponse({"ready": True, "reason": ""})


@router.get("/api/library")
def library(service: ServiceOf, request: Request) -> LibraryInfo:
    """Contents of the library, and what this server lets this client do."""
    lib, right, options = service.library, request.scope["right"], service.options
    settings, catalogue = lib.settings, lib.catalogue
    rows = [video for video in catalogue.videos() if video.state != "refused"]
    length = settings.frames_per_segment
    cues = catalogue.cue_counts()
    models = lib.models_in_use()
    may_write = right == "change" and os.access(lib.folder, os.W_OK)
    return LibraryInfo(
        name=lib.folder.resolve().name,
        version=version("moviola"),
        videos=len(rows),
        seconds=sum(video.duration for video in rows),
        segments=sum(-(-video.frames.count // length) for video in rows if video.frames),
        frame_seconds=1 / settings.frame_rate,
        segment_seconds=settings.segment_seconds,
        encoder=settings.encoder,
        sentence_encoder=settings.sentence_encoder,
        models={role: ModelInUse(**model) if model else None for role, model in models.items()},
        evidence=[*(["visual"] if settings.encoder else []), *(kind for kind, n in cues.items() if n)],
        judging=service.task is not None,
        dres=service.dres is not None and right == "change",
        right=right,
        writable=may_write,
        opens_folders=right == "change" and is_loopback(options.host),
        can_ingest=bool(options.allow_ingest) and may_write,
        ingest_folders=[*map(str, service.receiving.folders)],
        clip_formats=["exact", "key-frames"],
        export_formats=[
            ExportFormat(
                name=one.name, title=one.title, suffix=one.suffix or ".zip", options=sorted(one.options)
            )
            for one in all_formats().values()
        ],
        limits=LimitsInfo.model_validate(options.limits),
    )
