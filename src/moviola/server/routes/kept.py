"""Saved searches, collections, tags and ratings."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from moviola.library.kept.entries import Entry, Kind
from moviola.server.kept_schemas import KeepRequest, KeptList
from moviola.server.service import ServiceOf

__all__ = ["router"]

router = APIRouter(prefix="/api/kept", tags=["kept"])

Named = Annotated[str, Query(min_length=1, max_length=4_096, examples=["beach days"])]


@router.get("")
def entries(
    service: ServiceOf, kind: Annotated[Kind | None, Query(description="Only these.")] = None
) -> KeptList:
    """Entries, by kind and name."""
    return KeptList(entries=service.library.kept.entries(kind))


@router.get("/entry")
def entry(service: ServiceOf, kind: Annotated[Kind, Query()], name: Named) -> Entry:
    """One entry."""
    return service.library.kept.entry(kind, name)


@router.put("")
def keep(request: KeepRequest, service: ServiceOf) -> Entry:
    """Store an entry. With a version, 409 if the entry has changed since."""
    return service.library.kept.put(request.kind, request.name, request.value, request.version)


@router.delete("", status_code=204)
def unkeep(
    service: ServiceOf,
    kind: Annotated[Kind, Query()],
    name: Named,
    version: Annotated[int | None, Query(ge=0, le=2**53, description="Stored version.", examples=[3])] = None,
) -> None:
    """Delete an entry."""
    service.library.kept.delete(kind, name, version)
