"""Queries and their answers."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from fastapi import APIRouter, Request

from moviola.search import Filter, Library, SearchResult
from moviola.server.asking import as_search_query, require_within
from moviola.server.schemas import (
    Answer,
    CurveAnswer,
    CurveRequest,
    FoundMoment,
    Part,
    PictureAnswer,
    SearchRequest,
)
from moviola.server.service import ServiceOf
from moviola.timing import milliseconds

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["search"])


@router.post("/search")
async def search(request: SearchRequest, service: ServiceOf) -> Answer:
    """Moments that answer a query, best first."""
    arrived = perf_counter()
    require_within(request, service.options.limits)
    query = as_search_query(request.query, service.uploads)
    wanted: dict[str, Any] = {
        "top_k": request.top_k, "per_video": request.per_video, "videos": request.videos,
        "filter": Filter.parse(**request.filter.model_dump()), "min_score": request.min_score,
        "by": request.by, "refine": request.refine,
    }  # fmt: skip

    def work() -> tuple[float, SearchResult, list[FoundMoment], float]:
        began = perf_counter()
        service.library.store.refresh()
        found = service.library.search(query, **wanted)
        return began, found, _described(service.library, found), perf_counter()

    began, found, moments, ended = await service.searching.run(work)
    return Answer(
        query=service.uploads.named(str(query)),
        confident=found.confident,
        moments=moments,
        timings=milliseconds(
            {
                **found.timings,
                "waiting": began - arrived,
                "search": ended - began,
                "total": perf_counter() - arrived,
            }
        ),
    )


def _described(library: Library, found: SearchResult) -> list[FoundMoment]:
    videos = {video_id: library.catalogue.video(video_id) for video_id in {m.video_id for m in found}}
    return [
        FoundMoment(
            rank=m.rank,
            video_id=m.video_id,
            start=m.start,
            end=m.end,
            score=m.score,
            source=m.source,
            snippet=m.snippet,
            snippet_kind=m.snippet_kind,
            steps=[Part(start=step.start, end=step.end, score=step.score) for step in m.steps],
            duration=videos[m.video_id].duration,
            version=str(videos[m.video_id].row),
        )
        for m in found
    ]


@router.post("/curve")
async def curve(request: CurveRequest, service: ServiceOf) -> CurveAnswer:
    """How well each part of one video matches a query: its whole score curve."""
    require_within(request, service.options.limits)
    query = as_search_query(request.query, service.uploads)
    times, scores = await service.searching.run(service.library.curve, query, request.video_id)
    return CurveAnswer(times=times.tolist(), scores=scores.tolist())


@router.post(
    "/pictures",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def pictures(request: Request, service: ServiceOf) -> PictureAnswer:
    """Send a picture to search with: the bytes of a JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF as they are."""
    data = await request.body()
    name, width, height = await service.media.run(service.uploads.add, data)
    return PictureAnswer(picture=name, width=width, height=height)
