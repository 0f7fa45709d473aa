"""State of the server and its library, and what its videos can be narrowed down by."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import Field

from moviola.export import all_formats
from moviola.files.names import name_now
from moviola.looker import LONGEST_SIDE, MOST_LETTERS, MOST_STILLS, MOST_STILLS_OF_ALL, Endpoint
from moviola.plugins import server_additions
from moviola.search import LENGTHS
from moviola.search.options import By
from moviola.server.options import is_loopback
from moviola.server.schemas import (
    ExportFormat,
    LibraryInfo,
    LimitsInfo,
    LookerInfo,
    ModelInUse,
    ResponseModel,
)
from moviola.server.service import ServiceOf
from moviola.types import BANDS

router = APIRouter(tags=["library"])


class FolderOf(ResponseModel):
    """A folder of videos."""

    path: str = Field(description="For the filter `folder`.", examples=["/srv/videos/holiday"])
    parent: str = Field(description="The folder of the list above it; empty at the top.", examples=[""])
    videos: int = Field(description="Number in it and below.", examples=[24])


class DayCount(ResponseModel):
    """A day on which videos were taken."""

    day: str = Field(description="Local, for the filter `taken`.", examples=["2024-05-01"])
    videos: int = Field(examples=[3])


class LengthCount(ResponseModel):
    """Videos of some lengths."""

    low: int = Field(description="Seconds, included.", examples=[60])
    high: int | None = Field(description="Seconds, excluded; null: no limit.", examples=[120])
    videos: int = Field(examples=[12])


class CameraCount(ResponseModel):
    """A camera."""

    camera: str = Field(
        description="Make and model; after `=` it is the filter `camera`.", examples=["Apple iPhone 15"]
    )
    videos: int = Field(examples=[8])


class Place(ResponseModel):
    """A place where videos were taken, to some hundred metres."""

    latitude: float = Field(description="Degrees north.", examples=[52.52])
    longitude: float = Field(description="Degrees east.", examples=[13.405])
    videos: int = Field(examples=[2])


class TagCount(ResponseModel):
    """A tag."""

    tag: str = Field(description="For the filter `tag`.", examples=["favourite"])
    videos: int = Field(description="That bear it, as a whole or on a moment.", examples=[5])


class EvidenceCount(ResponseModel):
    """A kind of evidence."""

    by: By = Field(examples=["subtitles"])
    videos: int = Field(examples=[17])


class Facets(ResponseModel):
    """How the searchable videos of the library are spread over what filters choose by."""

    videos: int = Field(description="All of them.", examples=[24])
    folders: list[FolderOf] = Field(description="By path.")
    days: list[DayCount] = Field(description="In order.")
    lengths: list[LengthCount] = Field(description="In order, all classes.")
    cameras: list[CameraCount] = Field(description="Most videos first.")
    places: list[Place] = Field(description="Most videos first.")
    tags: list[TagCount] = Field(description="Most videos first.")
    evidence: list[EvidenceCount] = Field(description="What the library has.")


class NamedVideo(ResponseModel):
    """A video by name."""

    video_id: str = Field(examples=["holiday/beach"])
    duration: float = Field(description="Seconds.", examples=[92.4])


class CompletionList(ResponseModel):
    """Videos and tags in whose name a word begins so."""

    videos: list[NamedVideo] = Field(description="Best first.")
    tags: list[TagCount]


class Examples(ResponseModel):
    """Queries to try."""

    texts: list[str] = Field(examples=[["a cat", "coffee"]])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", response_class=PlainTextResponse)
async def healthz() -> str:
    """Whether the server runs: ``ok``. Needs no token."""
    return "ok"


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses={503: {"description": "Not ready; the body has the reason"}})
async def readyz(service: ServiceOf) -> Response:
    """Whether queries can be answered: the encoder is in memory."""
    why = service.unready
    return JSONResponse({"ready": not why, "reason": why}, 503 if why else 200)


@router.get("/api/library")
def library(service: ServiceOf, request: Request) -> LibraryInfo:
    """Contents of the library, and what this server lets this client do."""
    lib, right, options = service.library, request.scope["right"], service.options
    settings, catalogue = lib.settings, lib.catalogue
    rows = [video for video in catalogue.videos() if video.state != "refused"]
    length = settings.frames_per_segment
    names = ((video.video_id, name_now(video.video_id, video.path, suffix=False)) for video in rows)
    cues = catalogue.cue_counts()
    models = lib.indexer.models_in_use()
    may_write = right == "change" and all(os.access(home.folder, os.W_OK) for home in service.homes)
    formats = [
        ExportFormat(name=one.name, title=one.title, suffix=one.suffix or ".zip", options=sorted(one.options))
        for one in all_formats().values()
    ]
    return LibraryInfo(
        name=service.name, libraries=[home.name for home in service.homes], version=version("moviola"),
        videos=len(rows),
        seconds=sum(video.duration for video in rows),
        segments=sum(-(-video.frames.count // length) for video in rows if video.frames),
        renamed={own: name.rpartition("/")[2] for own, name in names if name != own},
        frame_seconds=1 / settings.frame_rate, segment_seconds=settings.segment_seconds,
        encoder=settings.encoder, sentence_encoder=settings.sentence_encoder,
        models={role: ModelInUse(**model) if model else None for role, model in models.items()},
        evidence=[*(["visual"] if settings.encoder else []), *(kind for kind, n in cues.items() if n)],
        additions=[name for name in service.additions if right in ("change", server_additions()[name].right)],
        right=right, writable=may_write and len(service.homes) == 1, can_tag=may_write,
        opens_folders=right == "change" and is_loopback(options.host),
        is_open=not (options.token or options.read_token),
        can_ingest=bool(options.allow_ingest) and may_write,
        ingest_folders=[*map(str, service.receiving.folders)],
        looker=_looker(options.looker) if right == "change" else None, clip_formats=["exact", "key-frames"],
        export_formats=formats, limits=LimitsInfo.model_validate(options.limits), bands=BANDS,
    )  # fmt: skip


def _looker(endpoint: Endpoint | None) -> LookerInfo | None:
    """A model that looks, without its key."""
    if endpoint is None:
        return None
    return LookerInfo(
        model=endpoint.model, host=endpoint.host, stills=MOST_STILLS, longest_side=LONGEST_SIDE,
        letters=MOST_LETTERS, question_stills=MOST_STILLS_OF_ALL,
    )  # fmt: skip


@router.get("/api/facets")
async def facets(service: ServiceOf) -> Facets:
    """Numbers of videos by folder, day, length, camera, place, tag and evidence, whatever is asked."""
    found = await service.media.run(service.library.facets)
    lengths = zip(LENGTHS, (*LENGTHS[1:], None), found.lengths, strict=True)
    return Facets.model_validate({
        "videos": found.videos,
        "folders": found.folders,
        "days": _counts("day", found.days),
        "lengths": [{"low": low, "high": high, "videos": videos} for low, high, videos in lengths],
        "cameras": _counts("camera", found.cameras),
        "places": found.places,
        "tags": _counts("tag", found.tags),
        "evidence": _counts("by", found.evidence),
    })  # fmt: skip


def _counts(name: str, videos_by_value: Mapping[Any, int]) -> list[dict[str, Any]]:
    """Rows of a value, under a name, and its number of videos."""
    return [{name: value, "videos": videos} for value, videos in videos_by_value.items()]


@router.get("/api/examples")
async def examples(
    service: ServiceOf, limit: Annotated[int, Query(ge=1, le=50, description="Number of queries.")] = 5
) -> Examples:
    """Queries to try: things that the pictures of the library show; none while they are being looked for."""
    return Examples(texts=list(await service.searching.run(service.library.examples, limit)))


@router.get("/api/completions")
async def completions(
    service: ServiceOf,
    text: Annotated[
        str, Query(min_length=1, max_length=200, description="What was typed.", examples=["bea"])
    ],
    limit: Annotated[int, Query(ge=1, le=50, description="Number of videos, and of tags.")] = 5,
) -> CompletionList:
    """Videos and tags in whose name a word begins with a text."""
    found = await service.media.run(service.library.complete, text, limit)
    return CompletionList(
        videos=[NamedVideo(video_id=video_id, duration=seconds) for video_id, seconds in found.videos],
        tags=[TagCount(tag=tag, videos=videos) for tag, videos in found.tags],
    )
