"""Search, concepts, curves and uploaded pictures; requests as queries of the library."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.files.moments import moment_row
from moviola.library import Concept
from moviola.media import small_picture
from moviola.search import Asked, Library, LikePicture, Marked, SearchResult
from moviola.search.filters import FILTERS
from moviola.search.found import still_there
from moviola.search.options import FIELDS
from moviola.server import schemas
from moviola.server.problems import Forbidden, WrongField
from moviola.server.service import Service, ServiceOf, decoded
from moviola.timing import milliseconds

router = APIRouter(prefix="/api", tags=["search"])

_TEXTS = {"text", "terms", "first", "then", "without"}
_ABOUT = ("name", "help", "label", "short", "unit", "example")
_SHOWN = 256  # pixels of the longer side of a picture that is shown


@router.post("/search")
async def search(request: schemas.SearchRequest, service: ServiceOf, http: Request) -> schemas.Answer:
    """The answer to a query: moments, best first. `check` needs the right to change: it sends stills away."""
    arrived = perf_counter()
    question = _question(request.model_dump(), service)
    looked_at = question.options.check is not None
    if looked_at and http.scope["right"] != "change":
        raise Forbidden("check: stills are sent to another server only for clients that may change something")

    def work() -> tuple[float, SearchResult, list[schemas.FoundMoment], float]:
        began, library = perf_counter(), service.library
        library.store.refresh()
        answer = library.search(question.query, question.options)
        moments, videos, away = still_there(answer, library.catalogue)
        described = [
            schemas.FoundMoment(
                **moment_row(m), duration=videos[m.video_id].duration, number=videos[m.video_id].row,
                version=videos[m.video_id].version, away=m.video_id in away,
            )
            for m in moments
        ]  # fmt: skip
        return began, answer, described, perf_counter()

    began, found, moments, ended = await (service.looking if looked_at else service.searching).run(work)
    whole = {"waiting": began - arrived, "search": ended - began, "total": perf_counter() - arrived}
    return schemas.Answer(
        query=service.uploads.named(str(found.query)),
        confident=found.confident,
        moments=moments,
        notes=[
            schemas.AnswerNote(
                kind=note.kind, about=note.about, others=[*note.others], remedy=note.remedy, text=str(note)
            )
            for note in found.notes
        ],
        timings=milliseconds(found.timings | whole),
    )


@router.get("/concepts")
async def concepts(service: ServiceOf) -> schemas.ConceptList:
    """What was taught to the library; `@name` stands for it in the text of a query."""
    found = await service.searching.run(service.library.concepts.all)
    return schemas.ConceptList(concepts=[_concept(one) for one in found])


def _concept(one: Concept) -> schemas.Concept:
    return schemas.Concept(name=one.name, title=one.title, right=len(one.right), wrong=len(one.wrong))


@router.post("/concepts", status_code=201)
async def teach(request: schemas.TeachRequest, service: ServiceOf) -> schemas.Concept:
    """Keep what a query's marks teach, of which one at least is right.

    409: the library cannot be changed, or several are served.
    """
    only_marks = request.query.model_copy(update={"then": [], "without": []})  # nothing else is kept
    query = _question({"query": only_marks.model_dump()}, service).query
    if not isinstance(query, Marked):
        raise InvalidValue("query: nothing is marked; give moments that are right")

    def work(library: Library) -> schemas.Concept:
        name = library.concepts.teach(request.title, query)
        return _concept(next(one for one in library.concepts.all() if one.name == name))

    return await service.change(service.only_home("concepts"), work, service.searching)


@router.delete("/concepts/{name}", status_code=204)
async def forget(
    service: ServiceOf, name: Annotated[str, Path(max_length=1_000, examples=["our-logo"])]
) -> None:
    """Delete what was taught under a name."""
    concept = decoded(name, "concept")
    home = service.only_home("concepts")
    await service.change(home, lambda library: library.concepts.forget(concept), service.searching)


@router.post("/curve")
async def curve(request: schemas.CurveRequest, service: ServiceOf) -> schemas.CurveAnswer:
    """Score curve of one video: how well each part of it matches a query."""
    query = _question(request.model_dump(include={"query"}), service).query

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


@router.get(
    "/pictures/{picture}", response_class=Response,
    responses={200: {"content": {"image/webp": {}}, "description": "The picture"}},
)  # fmt: skip
async def picture(
    service: ServiceOf,
    picture: Annotated[str, Path(max_length=100, examples=["5d41402abc4b2a76b9719d911017c592"])],
) -> Response:
    """A small picture of one that was uploaded, or that a saved search has."""

    def work() -> bytes:
        found = service.picture(picture)
        source = (
            found.path if isinstance(found, LikePicture) else service.library.userdata.picture(found.picture)
        )
        return small_picture(source, longest=_SHOWN, most=0)

    # A name is a digest of what it names.
    headers = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(await service.media.run(work), media_type="image/webp", headers=headers)


@router.get("/fields")
async def fields() -> schemas.FieldList:
    """The fields of a question beside its query, as a page draws them."""
    return schemas.FieldList(
        fields=[
            schemas.FieldInfo.model_validate({
                **{about: getattr(field, about) for about in _ABOUT},
                "form": field.form.name, "filter": name in FILTERS, "choices": list(field.choices),
                "default": None if name in FILTERS else field.default_of("page"),
            })
            for name, field in FIELDS.items()
            if "page" in field.parts
        ]
    )  # fmt: skip


def _question(row: Any, service: Service) -> Asked:
    """The question in a request; errors name the field that is wrong, or exceeds this server's limits."""
    question, limits = Asked.from_json(row, service.picture), service.options.limits
    letters = _letters(row["query"])
    if letters > limits.query_characters:
        most = limits.query_characters
        raise WrongField(
            "query",
            InvalidValue(f"query: {letters} characters of text, at most {most} are allowed; shorten it"),
            longest=most,
        )
    if question.options.top_k > limits.top_k:
        raise WrongField(
            "top_k",
            InvalidValue(f"top_k {question.options.top_k}: this server gives at most {limits.top_k} moments"),
        )
    return question


def _letters(query: Any) -> int:
    """Characters of all texts in the JSON of a query."""
    if isinstance(query, str):
        return len(query)
    parts = (
        query if isinstance(query, list) else [query[name] for name in _TEXTS & query.keys() if query[name]]
    )
    return sum(map(_letters, parts))
