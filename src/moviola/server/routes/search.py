"""Search, concepts, curves and uploaded pictures."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Path, Request
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.files.moments import moment_row
from moviola.library import Concept
from moviola.search import Library, Marked, SearchOptions, SearchResult
from moviola.search.found import still_there
from moviola.server import schemas
from moviola.server.asking import as_filter, as_search_query, require_within
from moviola.server.service import ServiceOf, decoded
from moviola.timing import milliseconds

router = APIRouter(prefix="/api", tags=["search"])


@router.post("/search")
async def search(request: schemas.SearchRequest, service: ServiceOf) -> schemas.Answer:
    """The answer to a query: moments, best first."""
    arrived = perf_counter()
    require_within(request, service.options.limits)
    query = as_search_query(request.query, service.uploads)
    given = request.model_dump(exclude={"query", "filter"})
    options = SearchOptions(**given, filter=as_filter(request.filter))

    def work() -> tuple[float, SearchResult, list[schemas.FoundMoment], float]:
        began = perf_counter()
        service.library.store.refresh()
        answer = service.library.search(query, options)
        return began, answer, _described(service.library, answer), perf_counter()

    began, found, moments, ended = await service.searching.run(work)
    whole = {"waiting": began - arrived, "search": ended - began, "total": perf_counter() - arrived}
    return schemas.Answer(
        query=service.uploads.named(str(query)),
        confident=found.confident,
        moments=moments,
        timings=milliseconds(found.timings | whole),
    )


def _described(library: Library, moments: SearchResult) -> list[schemas.FoundMoment]:
    moments, videos, away = still_there(moments, library.catalogue)
    return [
        schemas.FoundMoment(
            **moment_row(m),
            duration=videos[m.video_id].duration,
            version=str(videos[m.video_id].row),
            away=m.video_id in away,
        )
        for m in moments
    ]


@router.get("/concepts")
async def concepts(service: ServiceOf) -> schemas.ConceptList:
    """What was taught to the library; `@name` stands for it in the text of a query."""
    found = await service.searching.run(service.library.concepts)
    return schemas.ConceptList(concepts=[_concept(one) for one in found])


def _concept(one: Concept) -> schemas.Concept:
    return schemas.Concept(name=one.name, title=one.title, right=len(one.right), wrong=len(one.wrong))


@router.post("/concepts", status_code=201)
async def teach(request: schemas.TeachRequest, service: ServiceOf) -> schemas.Concept:
    """Keep what a query's marks teach, of which one at least is right. 409: the library cannot be changed."""
    only_marks = request.query.model_copy(update={"then": [], "without": []})  # nothing else is kept
    query = as_search_query(only_marks, service.uploads)
    if not isinstance(query, Marked):
        raise InvalidValue("query: nothing is marked; give moments that are right")

    def work(library: Library) -> schemas.Concept:
        name = library.teach(request.title, query)
        return _concept(next(one for one in library.concepts() if one.name == name))

    return await service.change(work, service.searching)


@router.delete("/concepts/{name}", status_code=204)
async def forget(
    service: ServiceOf, name: Annotated[str, Path(max_length=1_000, examples=["our-logo"])]
) -> None:
    """Delete what was taught under a name."""
    concept = decoded(name, "concept")
    await service.change(lambda library: library.forget(concept), service.searching)


@router.post("/curve")
async def curve(request: schemas.CurveRequest, service: ServiceOf) -> schemas.CurveAnswer:
    """Score curve of one video: how well each part of it matches a query."""
    require_within(request, service.options.limits)
    query = as_search_query(request.query, service.uploads)

    def work() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        service.library.store.refresh()
        return service.library.curve(query, request.video_id)

    times, scores = await service.searching.run(work)
    return schemas.CurveAnswer(times=times.tolist(), scores=scores.tolist())


@router.post("/pictures", openapi_extra=schemas.raw_body("image/*", format="binary"))
async def pictures(request: Request, service: ServiceOf) -> schemas.PictureAnswer:
    """Upload a picture to search with: a JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF file as the body."""
    data = await request.body()
    name, width, height = await service.media.run(service.uploads.add, data)
    return schemas.PictureAnswer(picture=name, width=width, height=height)
