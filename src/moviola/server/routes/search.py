"""Queries and their answers."""

from __future__ import annotations

from time import perf_counter

from fastapi import APIRouter, Request

from moviola.search import Filter, Library, SearchOptions, SearchResult
from moviola.search.present import still_there
from moviola.server.asking import as_search_query, require_within
from moviola.server.schemas import (
    Answer,
    Concept,
    ConceptList,
    CopiedStretch,
    CurveAnswer,
    CurveRequest,
    FoundMoment,
    Part,
    PictureAnswer,
    Reason,
    SearchRequest,
    Stretch,
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
    options = SearchOptions(
        top_k=request.top_k, per_video=request.per_video, videos=request.videos,
        filter=Filter.parse(**request.filter.model_dump()), min_score=request.min_score,
        by=request.by, refine=request.refine, weak=request.weak,
    )  # fmt: skip

    def work() -> tuple[float, SearchResult, list[FoundMoment], float]:
        began = perf_counter()
        service.library.store.refresh()
        found = service.library.search(query, options)
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
    found, videos, away = still_there(found, library.catalogue)
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
            strong=m.strong,
            why=[Reason(kind=one.kind, score=one.score, words=list(one.words)) for one in m.why],
            folded=[Stretch(start=span.start, end=span.end) for span in m.folded],
            copies=[CopiedStretch(video_id=c.video_id, start=c.start, end=c.end) for c in m.copies],
            duration=videos[m.video_id].duration,
            version=str(videos[m.video_id].row),
            away=m.video_id in away,
        )
        for m in found
    ]


@router.get("/concepts")
async def concepts(service: ServiceOf) -> ConceptList:
    """What was taught to the library; `@name` stands for it in the text of a query."""
    found = await service.searching.run(service.library.concepts)
    return ConceptList(
        concepts=[
            Concept(name=one.name, title=one.title, right=len(one.right), wrong=len(one.wrong))
            for one in found
        ]
    )


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
