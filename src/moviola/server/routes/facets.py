"""What the videos of the library can be narrowed down by."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from moviola.search import LENGTHS
from moviola.server.facet_schemas import (
    CameraCount,
    CompletionList,
    DayCount,
    EvidenceCount,
    Examples,
    Facets,
    FolderOf,
    LengthCount,
    NamedVideo,
    Place,
    TagCount,
)
from moviola.server.service import ServiceOf

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["library"])


@router.get("/facets")
async def facets(service: ServiceOf) -> Facets:
    """Numbers of videos by folder, day, length, camera, place, tag and evidence, whatever is asked."""
    found = await service.media.run(service.library.facets)
    ends = (*LENGTHS[1:], None)
    return Facets(
        videos=found.videos,
        folders=[FolderOf(path=one.path, parent=one.parent, videos=one.videos) for one in found.folders],
        days=[DayCount(day=day, videos=videos) for day, videos in found.days.items()],
        lengths=[
            LengthCount(low=low, high=high, videos=videos)
            for low, high, videos in zip(LENGTHS, ends, found.lengths, strict=True)
        ],
        cameras=[CameraCount(camera=camera, videos=videos) for camera, videos in found.cameras.items()],
        places=[
            Place(latitude=one.latitude, longitude=one.longitude, videos=one.videos) for one in found.places
        ],
        tags=[TagCount(tag=tag, videos=videos) for tag, videos in found.tags.items()],
        evidence=[EvidenceCount(by=by, videos=videos) for by, videos in found.evidence.items()],
    )


@router.get("/examples")
async def examples(
    service: ServiceOf, limit: Annotated[int, Query(ge=1, le=50, description="Number of queries.")] = 5
) -> Examples:
    """Queries to try: things that the pictures of the library show; none while they are being looked for."""
    return Examples(texts=list(await service.searching.run(service.library.examples, limit)))


@router.get("/completions")
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
