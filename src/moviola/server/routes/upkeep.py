"""Looking after the library: its folders, what is there twice, videos taken out, back in, or read again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi import Path as PathParameter
from pydantic import Field

from moviola.errors import NotFound
from moviola.files.presence import is_file
from moviola.library import say_language as correct
from moviola.library.disk.root_states import roots_in
from moviola.library.near_copies import NearCopies, exact_copies, find_near_copies
from moviola.library.united_store import near_copies_in, removed_from
from moviola.search import Library
from moviola.server.inside import resolved
from moviola.server.problems import Forbidden
from moviola.server.routes.videos import summary_of
from moviola.server.schemas import Job, RequestModel, ResponseModel, VideoSummary, Why, WorkProgress
from moviola.server.service import Service, ServiceOf, VideoOf, decoded

router = APIRouter(prefix="/api", tags=["upkeep"])

_PATIENCE = 2.0  # seconds that a request waits for a comparison


class RootInfo(ResponseModel):
    """A folder of the library."""

    path: str = Field(examples=["videos/holiday"])
    videos: int = Field(description="Number of videos in it.", examples=[24])
    away: str = Field(description="Why it is not there now; empty where it is.", examples=[""])
    why: Why = Field(description="What that says.", examples=[{"code": "", "values": {}}])
    watched: bool = Field(description="Whether the server follows what is put there.", examples=[False])
    patterns: list[str] = Field(description="Patterns of files to leave out.", examples=[["*/proxies/*"]])


class RootList(ResponseModel):
    """The folders of the library."""

    roots: list[RootInfo]


class Duplicates(ResponseModel):
    """The same bytes at several paths."""

    video_ids: list[str] = Field(examples=[["holiday/beach"]])
    paths: list[str] = Field(examples=[["films/holiday/beach.mp4", "films/copy of beach.mp4"]])
    bytes: int = Field(description="Size of each file.", examples=[18_345_233])
    wasted: int = Field(description="Bytes that all but one of them take.", examples=[18_345_233])


class DuplicateList(ResponseModel):
    """Those first that take most room."""

    duplicates: list[Duplicates]


class SaidLanguage(RequestModel):
    """The right language of a track."""

    kind: Literal["subtitle", "speech", "text"] = Field(default="subtitle", examples=["subtitle"])
    before: str | None = Field(
        default=None, max_length=100, examples=["nl"],
        description="The one that it has, empty where it is not known; null: the only one.",
    )  # fmt: skip
    language: str = Field(
        max_length=100, description="A tag of BCP 47, a code of ISO 639 or a name.", examples=["de"]
    )


class Corrected(ResponseModel):
    """What a correction has changed."""

    cues: int = Field(description="Number of cues that have the language now.", examples=[412])


class Side(ResponseModel):
    """One of two videos that show the same."""

    video: VideoSummary
    start: float = Field(description="Of the stretch that the other one shows, too.", examples=[0.0])
    end: float = Field(examples=[92.4])


class NearCopiesOf(ResponseModel):
    """Two videos that show the same: in two encodings, or one a part of the other."""

    kind: Literal["same", "part"] = Field(
        description="same: nearly all of both; part: a stretch.", examples=["same"]
    )
    certainty: float = Field(description="Up to 1.", examples=[0.97])
    sides: list[Side] = Field(description="Both videos, the longer one first.")


class NearCopiesList(ResponseModel):
    """The surest first."""

    copies: list[NearCopiesOf]
    comparing: WorkProgress | None = Field(
        description="Of the comparison that runs; null: none does.", examples=[None]
    )
    error: str = Field(description="Why the last comparison failed.", examples=[""])


class Removed(ResponseModel):
    """A video that was removed from the library, or restored; its file is unchanged."""

    video_id: str = Field(examples=["holiday/beach"])


def require_changing(service: ServiceOf) -> None:
    """Raise Forbidden where this server changes no library."""
    if not service.options.allow_ingest:
        raise Forbidden("this server only reads; start it with --allow-ingest FOLDER to change the library")


Changing = Depends(require_changing)
"""What a route that changes the library depends on."""


@router.get("/roots")
async def roots(service: ServiceOf) -> RootList:
    """The folders of the library, and whether they are there now."""
    watched = {folder.resolve() for folder in service.options.watch}
    found = await service.media.run(roots_in, service.library.catalogue)
    return RootList(
        roots=[
            RootInfo(**asdict(one), why=Why.of(one.away), watched=Path(one.path) in watched) for one in found
        ]
    )


@router.get("/duplicates")
async def duplicates(service: ServiceOf) -> DuplicateList:
    """Videos whose bytes lie at several paths that are there now."""
    found = await service.media.run(exact_copies, service.library.store)
    rows = [
        Duplicates(video_ids=list(one.video_ids), paths=list(one.paths), bytes=one.size, wasted=one.wasted)
        for one in found
    ]
    return DuplicateList(duplicates=rows)


@router.get("/near-copies")
async def near_copies(service: ServiceOf) -> NearCopiesList:
    """Videos that show the same, as far as they were compared."""
    found = await service.media.run(near_copies_in, service.library.store)
    return await service.media.run(_described, service, found)


@router.post("/near-copies", dependencies=[Changing])
async def find(service: ServiceOf) -> NearCopiesList:
    """Compare the videos that were not compared yet; answers fold what is found from then on.

    A first request waits some seconds for it; `GET` says how far a longer one is. Several libraries are
    compared one after the other, each within itself.
    """

    async def compare(progress: Callable[[float], None]) -> None:
        every = len(service.homes)
        for place, home in enumerate(service.homes):

            def work(library: Library, place: int = place) -> None:
                find_near_copies(library.store, lambda share: progress((place + share) / every))

            await service.change(home, work, service.compare)

    await service.comparing.begin(compare, _PATIENCE)
    return await near_copies(service)


@router.delete("/near-copies/comparison", status_code=204, dependencies=[Changing])
async def end_comparison(service: ServiceOf) -> None:
    """End the comparison that runs; what it has found is kept, and the next one goes on from there."""
    service.comparing.cancel()


def _described(service: Service, found: list[NearCopies]) -> NearCopiesList:
    named = service.library.catalogue.videos_named({name for pair in found for name in pair.video_ids})
    copies = []
    for pair in found:
        if all(video_id in named for video_id in pair.video_ids):
            sides = [
                Side(video=summary_of(service, named[video_id]), start=span.start, end=span.end)
                for video_id, span in zip(pair.video_ids, pair.spans, strict=True)
            ]
            copies.append(NearCopiesOf(kind=pair.kind, certainty=pair.certainty, sides=sides))
    progress, error = service.comparing.progress, service.comparing.error
    return NearCopiesList(
        copies=copies, error="" if error is None else str(error),
        comparing=None if progress is None else WorkProgress.model_validate(progress),
    )  # fmt: skip


@router.delete("/videos/{video_id}", dependencies=[Changing])
async def remove(service: ServiceOf, video: VideoOf) -> Removed:
    """Take a video out of the library; its file stays. It can come back until the next compaction."""
    home, own = service.home_of(video)
    await service.change(home, lambda library: library.indexer.remove([own.video_id]))
    return Removed(video_id=video.video_id)


@router.post("/videos/{video_id}/restore", dependencies=[Changing])
async def restore(
    service: ServiceOf,
    video_id: Annotated[str, PathParameter(max_length=12_000, examples=["holiday%2Fbeach"])],
) -> Removed:
    """Bring a video back that was taken out, with all that is known of it."""
    name = decoded(video_id, "video")
    place, own = await service.media.run(removed_from, service.library.store, name)
    await service.change(service.homes[place], lambda library: library.indexer.restore([own]))
    return Removed(video_id=name)


@router.post("/videos/{video_id}/again", status_code=201)
async def again(
    service: ServiceOf,
    video: VideoOf,
    pictures: Annotated[
        bool, Query(description="Encode the pictures, too; false: read subtitles and text in pictures.")
    ] = True,
) -> Job:
    """Process a video again, as a job; it can be searched as it is until that is done.

    403: its file is not in a folder from which this server brings videos in. 404: it is not there.
    """
    file = service.library.store.file_of(video.video_id) or Path(video.path)
    allowed = service.receiving.folders
    if not any(resolved(file).is_relative_to(folder) for folder in allowed):
        raise Forbidden(
            f"{file}: not in a folder to bring videos in from ({', '.join(map(str, allowed)) or 'none'}); "
            "start the server with --allow-ingest FOLDER for it"
        )
    if not is_file(file):
        raise NotFound(f"{file}: not there; plug its drive in")
    service.jobs.require_room()  # before the video is marked, which would wait for a job that never comes
    home, own = service.home_of(video)
    await service.change(home, lambda library: library.indexer.again([own.video_id], pictures=pictures))
    return await service.jobs.add(home.folder, home.name, [str(file)])


@router.put("/videos/{video_id}/language", dependencies=[Changing])
async def say_language(service: ServiceOf, video: VideoOf, said: SaidLanguage) -> Corrected:
    """Correct the language of what is said or written in a video; later readings keep it.

    400: no language, or several, of which one must be named. 404: nothing of that kind is in that language.
    """
    home, own = service.home_of(video)
    name, language, before, kind = own.video_id, said.language, said.before, said.kind
    cues = await service.change(home, lambda library: correct(library.store, name, language, before, kind))
    return Corrected(cues=cues)
