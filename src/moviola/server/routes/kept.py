"""Saved searches, collections, tags and ratings."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, ValidationError

from moviola.errors import DataError, InvalidValue, MoviolaError
from moviola.library.userdata.values import Entry, Kind, Name, SavedSearch
from moviola.server.problems import wrong_field
from moviola.server.schemas import RequestModel, ResponseModel, SearchRequest, raw_body
from moviola.server.service import ServiceOf

router = APIRouter(prefix="/api/kept", tags=["kept"])

LINES = "application/jsonl"

Named = Annotated[str, Query(min_length=1, max_length=4_096, examples=["beach days"])]


class KeptList(ResponseModel):
    """Entries by kind and name."""

    entries: list[Entry]


class Alerted(ResponseModel):
    """The latest video that each saved search was checked for by alerts."""

    alerted: dict[str, int] = Field(
        description="The `number` of a video, by the name of a search.",
        examples=[{"beach days": 17}],
    )


class Opened(ResponseModel):
    """The latest video that was there when each saved search was opened last."""

    opened: dict[str, int] = Field(
        description="The `number` of a video, by the name of a search.",
        examples=[{"beach days": 17}],
    )


class OpenedRequest(RequestModel):
    """A saved search that was opened."""

    name: Name = Field(examples=["beach days"])
    version: int = Field(
        ge=0,
        le=2**53,
        description="The `number` of the latest video that was there then.",
        examples=[17],
    )


class KeepRequest(RequestModel):
    """An entry to store."""

    kind: Kind = Field(examples=["search"])
    name: Name = Field(examples=["beach days"])
    value: dict[str, Any] = Field(
        description="Search: a question, as the body of `POST /api/search`. Collection: moments. Mark: "
        "video_id, start, end, tags, rating.",
        examples=[{"query": "a dog runs on a beach", "filter": {"taken": "2023"}}],
    )
    version: int | None = Field(
        default=None, ge=0, le=2**53, examples=[None],
        description="Version that the change is based on; 0: a new entry; null: any.",
    )  # fmt: skip


@router.get("")
def entries(
    service: ServiceOf, kind: Annotated[Kind | None, Query(description="Only these.")] = None
) -> KeptList:
    """Entries, by kind and name."""
    return KeptList(entries=service.library.userdata.entries(kind))


@router.get("/alerted")
def alerted(service: ServiceOf) -> Alerted:
    """The latest video that alerts have checked each saved search for; empty without alerts."""
    return Alerted(alerted=service.library.userdata.alerted())


@router.get("/opened")
def opened(service: ServiceOf) -> Opened:
    """The latest video that was there when each saved search was opened last: later ones are new."""
    return Opened(opened=service.library.userdata.opened())


@router.put("/opened")
def open_search(request: OpenedRequest, service: ServiceOf) -> Opened:
    """Note that a saved search was opened. An earlier video than is noted changes nothing."""
    service.library.userdata.open_to(request.name, request.version)
    return Opened(opened=service.library.userdata.opened())


@router.get("/entry")
def entry(service: ServiceOf, kind: Annotated[Kind, Query()], name: Named) -> Entry:
    """One entry."""
    return service.library.userdata.entry(kind, name)


@router.get(
    "/lines", response_class=Response,
    responses={200: {"content": {LINES: {}}, "description": "An entry a line"}},
)  # fmt: skip
def export(service: ServiceOf) -> Response:
    """All that people keep, as JSON lines."""
    return Response("".join(f"{line}\n" for line in service.library.userdata.export()), media_type=LINES)


@router.post("/lines", openapi_extra=raw_body("text/plain"))
async def take(request: Request, service: ServiceOf) -> KeptList:
    """Keep what JSON lines hold, all or nothing; of entries that are kept already the later one stays.

    Lines above the limit of a request are sent in parts: each line is an entry by itself.
    """
    try:
        lines = (await request.body()).decode().split("\n")
        return KeptList(entries=await run_in_threadpool(service.library.userdata.take, lines))
    except UnicodeDecodeError as error:
        raise InvalidValue(f"body: no UTF-8 ({error.reason}); send lines of `GET /api/kept/lines`") from error
    except DataError as error:
        raise InvalidValue(str(error)) from error


@router.put("")
def keep(request: KeepRequest, service: ServiceOf) -> Entry:
    """Store an entry. With a version, 409 if the entry has changed since.

    Pictures of a search are kept with it, large ones made smaller, and may get other names.
    """
    if request.kind != "search":
        return service.library.userdata.put(request.kind, request.name, request.value, request.version)
    question = _askable(request.value)
    try:
        return service.library.saved.save(request.name, question, request.version, service.picture)
    except MoviolaError as error:
        error.place = error.place and f"value.{error.place}"
        raise


def _askable(value: dict[str, Any]) -> dict[str, Any]:
    """A question without what is left out; refused where `POST /api/search` would refuse its form."""
    try:
        return SearchRequest.model_validate(value).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise wrong_field(error, "value") from error


@router.delete("", status_code=204)
def unkeep(
    service: ServiceOf,
    kind: Annotated[Kind, Query()],
    name: Named,
    version: Annotated[int | None, Query(ge=0, le=2**53, description="Stored version.", examples=[3])] = None,
) -> None:
    """Delete an entry. Pictures of a search can be asked with, and saved again, until the server ends."""
    userdata = service.library.userdata
    value = userdata.entry(kind, name).value
    for picture in value.pictures if isinstance(value, SavedSearch) else ():
        with suppress(MoviolaError):  # a damaged one cannot come back
            service.uploads.add(userdata.picture(picture))
    userdata.delete(kind, name, version)
