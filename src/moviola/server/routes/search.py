"""Search, concepts, curves and uploaded pictures; requests as queries of the library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Path, Request
from numpy.typing import NDArray

from moviola.errors import InvalidValue, NotFound
from moviola.files.moments import moment_row
from moviola.library import Concept
from moviola.search import (
    Filter,
    Library,
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    SearchOptions,
    SearchQuery,
    SearchResult,
    Text,
    WeightedSum,
)
from moviola.search.found import still_there
from moviola.search.queries import as_query
from moviola.server import schemas
from moviola.server.options import Limits
from moviola.server.problems import WrongField
from moviola.server.service import ServiceOf, decoded
from moviola.server.uploads import Uploads
from moviola.timing import milliseconds

router = APIRouter(prefix="/api", tags=["search"])


@router.post("/search")
async def search(request: schemas.SearchRequest, service: ServiceOf) -> schemas.Answer:
    """The answer to a query: moments, best first."""
    arrived = perf_counter()
    _require_within(request, service.options.limits)
    query = _query(request.query, service.uploads)
    given = request.model_dump(exclude={"query", "filter"})
    options = SearchOptions(**given, filter=_filter(request.filter))

    def work() -> tuple[float, SearchResult, list[schemas.FoundMoment], float]:
        began, library = perf_counter(), service.library
        library.store.refresh()
        answer = library.search(query, options)
        moments, videos, away = still_there(answer, library.catalogue)
        described = [
            schemas.FoundMoment(
                **moment_row(m), duration=videos[m.video_id].duration, version=str(videos[m.video_id].row),
                away=m.video_id in away,
            )
            for m in moments
        ]  # fmt: skip
        return began, answer, described, perf_counter()

    began, found, moments, ended = await service.searching.run(work)
    whole = {"waiting": began - arrived, "search": ended - began, "total": perf_counter() - arrived}
    return schemas.Answer(
        query=service.uploads.named(str(query)),
        confident=found.confident,
        moments=moments,
        timings=milliseconds(found.timings | whole),
    )


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
    query = _query(only_marks, service.uploads)
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
    _require_within(request, service.options.limits)
    query = _query(request.query, service.uploads)

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


def _filter(asked: schemas.Filters) -> Filter:
    """What a filter's texts mean; WrongField names one that means nothing."""
    given = asked.model_dump(exclude_none=True)
    for name, text in given.items():
        try:
            Filter.parse(**{name: text})
        except InvalidValue as error:
            raise WrongField(f"filter.{name}", error) from error
    return Filter.parse(**given)


def _query(request: str | schemas.AskedQuery, uploads: Uploads) -> SearchQuery:
    """The query of a request; steps and exclusions follow the marks and the concept where it has no terms."""
    if isinstance(request, str):
        return as_query(request)
    right, wrong = (
        tuple(MarkedMoment(m.video_id, m.start, m.end) for m in own) for own in (request.right, request.wrong)
    )
    marks = None
    if right or wrong or request.concept:
        marks = Marked(None, right, wrong, request.concept)
    query = _terms(request.terms, uploads, "query") if request.terms else marks
    if query is None:
        raise InvalidValue("empty query: give terms, marked moments or a concept")
    for number, step in enumerate(request.then, 1):
        terms = _terms(step.terms, uploads, f"query.then.{number}")
        query = query.then(terms, gap=math.inf if step.gap is None else step.gap)
    excluded = [
        one if isinstance(one, str) else _terms(one.terms, uploads, f"query.without.{number}")
        for number, one in enumerate(request.without, 1)
    ]
    query = query.without(*excluded) if excluded else query
    return Marked(query, right, wrong, request.concept) if marks and request.terms else query


def _terms(terms: Sequence[schemas.Term], uploads: Uploads, place: str) -> SearchQuery:
    """A sum of the terms at a place of the request; a single text may name a concept."""
    if len(terms) == 1 and isinstance(terms[0], schemas.TextTerm):
        return as_query(terms[0].text)
    return WeightedSum.of([
        (_term(term, uploads, f"{place}.terms.{number}"), term.weight) for number, term in enumerate(terms, 1)
    ])  # fmt: skip


def _term(term: schemas.Term, uploads: Uploads, place: str) -> SearchQuery:
    if isinstance(term, schemas.TextTerm):
        if isinstance(as_query(term.text), Marked):
            raise InvalidValue(
                f"{term.text!r}: a concept is no term among others; put words beside it into its own text"
            )
        return Text(term.text)
    if isinstance(term, schemas.MomentTerm):
        return LikeMoment(term.video_id, term.time)
    try:
        return LikePicture(uploads.path(term.picture))
    except NotFound as error:
        raise WrongField(f"{place}.picture", error) from error


def _require_within(request: schemas.SearchRequest | schemas.CurveRequest, limits: Limits) -> None:
    """Refuse a request that exceeds this server's limits; WrongField names the limit."""
    letters = sum(map(len, _texts(request.query)))
    if letters > limits.query_characters:
        most = limits.query_characters
        raise WrongField(
            "query",
            InvalidValue(f"query: {letters} characters of text, at most {most} are allowed; shorten it"),
            longest=most,
        )
    if isinstance(request, schemas.SearchRequest) and request.top_k > limits.top_k:
        raise WrongField(
            "top_k",
            InvalidValue(f"top_k {request.top_k}: this server gives at most {limits.top_k} moments"),
        )


def _texts(query: str | schemas.AskedQuery) -> Iterator[str]:
    for part in [query] if isinstance(query, str) else [query, *query.then, *query.without]:
        if isinstance(part, str):
            yield part
        else:
            yield from (term.text for term in part.terms if isinstance(term, schemas.TextTerm))
