"""Sending videos in parts, by tus 1.0 (https://tus.io/protocols/resumable-upload).

The core protocol with creation, termination, checksum and expiration.
"""

from __future__ import annotations

import base64
from email.utils import format_datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.responses import Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from moviola.errors import InvalidValue
from moviola.server.receiving import ALGORITHMS
from moviola.server.routes.upkeep import Changing
from moviola.server.schemas import ResponseModel, raw_body
from moviola.server.service import ServiceOf
from moviola.server.upload_state import Upload

VERSION = "1.0.0"
PATH = "/api/uploads"
_TYPE = "application/offset+octet-stream"


def _require_version(
    tus_resumable: Annotated[str, Header(max_length=20, description="Of tus.", examples=[VERSION])] = "",
) -> None:
    if tus_resumable != VERSION:
        raise HTTPException(
            412, f"Tus-Resumable {tus_resumable!r}: this server speaks tus {VERSION}",
            {"Tus-Version": VERSION},
        )  # fmt: skip


router = APIRouter(prefix=PATH, tags=["uploads"], dependencies=[Changing])
Tus = Depends(_require_version)
Name = Annotated[str, Path(max_length=100, description="Of the upload.", examples=["3f" * 16])]
_WRONG_VERSION: dict[int | str, dict[str, Any]] = {412: {"description": "Another version of tus"}}


class UploadState(ResponseModel):
    """A video that is being sent."""

    upload: str = Field(examples=["3f" * 16])
    name: str = Field(examples=["beach.mp4"])
    bytes: int = Field(description="Of the whole.", examples=[18_345_233])
    offset: int = Field(description="Bytes that are here.", examples=[9_000_000])
    path: str = Field(
        description="Path of the file, for a job; empty until it is complete.",
        examples=["/srv/videos/beach.mp4"],
    )
    expires: str = Field(
        description="Time at which it is deleted if no more of it is sent.",
        examples=["2024-05-03T18:30:00+00:00"],
    )


@router.options("", include_in_schema=False)
async def abilities(service: ServiceOf) -> Response:
    """Supported version and extensions of tus."""
    headers = {
        "Tus-Version": VERSION,
        "Tus-Extension": "creation,termination,checksum,expiration",
        "Tus-Max-Size": str(service.receiving.most_bytes),
        "Tus-Checksum-Algorithm": ",".join(ALGORITHMS),
    }
    return Response(status_code=204, headers=headers)


@router.post(
    "", status_code=201, dependencies=[Tus],
    responses={**_WRONG_VERSION, 201: {"description": "Begun; `Location` is where its bytes go"}},
)  # fmt: skip
async def begin(
    service: ServiceOf,
    upload_length: Annotated[
        int, Header(ge=0, lt=2**63, description="Bytes of the video.", examples=[18_345_233])
    ],
    upload_metadata: Annotated[
        str,
        Header(
            max_length=8_000,
            description="`filename` in base64, and `folder` where it is not the first of `ingest_folders`.",
            examples=["filename YmVhY2gubXA0"],
        ),
    ],
) -> Response:
    """Begin to send a video. When it is whole, it lies in a folder from which a job brings it in."""
    fields = _metadata(upload_metadata)
    upload = await run_in_threadpool(
        service.receiving.begin, fields.get("filename", ""), upload_length, fields.get("folder", "")
    )
    return Response(status_code=201, headers={**_headers(upload), "Location": f"{PATH}/{upload.upload}"})


@router.get("/{upload}")
async def state(service: ServiceOf, upload: Name) -> UploadState:
    """State of an upload: bytes received, and the path when it is complete."""
    found = await run_in_threadpool(service.receiving.find, upload)
    return UploadState(
        upload=found.upload, name=found.name, bytes=found.length, offset=found.offset,
        path=str(found.path or ""), expires=found.expires.isoformat(timespec="seconds"),
    )  # fmt: skip


@router.head("/{upload}", include_in_schema=False, dependencies=[Tus])
async def offset(service: ServiceOf, upload: Name) -> Response:
    """State of an upload, as headers."""
    found = await run_in_threadpool(service.receiving.find, upload)
    headers = {"Upload-Length": str(found.length), "Cache-Control": "no-store"}
    return Response(status_code=200, headers={**_headers(found), **headers})


@router.patch(
    "/{upload}", status_code=204, dependencies=[Tus], openapi_extra=raw_body(_TYPE, format="binary"),
    responses={
        **_WRONG_VERSION,
        204: {"description": "`Upload-Offset` bytes are here"},
        415: {"description": "Another type than " + _TYPE},
        460: {"description": "Another checksum; nothing of the part counts"},
    },
)  # fmt: skip
async def send(
    request: Request,
    service: ServiceOf,
    upload: Name,
    upload_offset: Annotated[int, Header(ge=0, lt=2**63, description="Where the bytes begin.", examples=[0])],
    upload_checksum: Annotated[
        str | None,
        Header(max_length=200, description="Algorithm, and digest in base64.", examples=["sha1 …"]),
    ] = None,
) -> Response:
    """Send bytes. 409 if they do not begin where those that are here end; 422 if the whole is no video."""
    if request.headers.get("content-type") != _TYPE:
        raise HTTPException(415, f"Content-Type: send {_TYPE}")
    try:
        found = await service.receiving.take(upload, upload_offset, request.stream(), upload_checksum)
    except ClientDisconnect:
        return Response(status_code=400)  # unheard; what has arrived stays
    return Response(status_code=204, headers=_headers(found))


@router.delete("/{upload}", status_code=204, dependencies=[Tus], responses=_WRONG_VERSION)
async def cancel(service: ServiceOf, upload: Name) -> Response:
    """Cancel an upload: its bytes are deleted. A video that is whole stays."""
    await run_in_threadpool(service.receiving.discard, upload)
    return Response(status_code=204)


def _headers(upload: Upload) -> dict[str, str]:
    expires = {} if upload.path else {"Upload-Expires": format_datetime(upload.expires, usegmt=True)}
    return {"Upload-Offset": str(upload.offset), **expires}


def _metadata(header: str) -> dict[str, str]:
    """Pairs of a key and a value in base64."""
    found = {}
    for pair in filter(None, (part.strip() for part in header.split(","))):
        key, _, value = pair.partition(" ")
        try:
            found[key] = base64.b64decode(value, validate=True).decode()
        except ValueError as error:  # of letters that are not ASCII, and of bytes that are not UTF-8, too
            raise InvalidValue(f"Upload-Metadata {key[:40]}: no base64 of UTF-8 ({error})") from error
    return found
