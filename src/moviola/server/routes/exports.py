"""Exports of moments: tables, edit lists, clips, films, and all formats of :mod:`moviola.export`."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse, Response
from pydantic import Field
from starlette.types import Receive, Scope, Send

from moviola.errors import InvalidValue, MoviolaError, NotFound
from moviola.export import Selection, named_format, write_moments
from moviola.export.clips import file_stem
from moviola.files.presence import is_file
from moviola.library.userdata.values import Collection
from moviola.server import schemas
from moviola.server.exporting import Exporting, own_folder
from moviola.server.pools import Pool
from moviola.server.problems import Busy, WrongField, message_of
from moviola.server.service import Service, ServiceOf
from moviola.types import Band, Moment, SnippetKind, Span, band_of

router = APIRouter(prefix="/api", tags=["export"])

_MOST = 1_000  # moments of an export
_PATIENCE = 1.0  # seconds that a request waits for an export: most are done by then
Name = Annotated[str, PathParameter(max_length=100, description="Of the export.", examples=["3f" * 16])]

_TYPES = {
    ".mp4": "video/mp4", ".zip": "application/zip", ".csv": "text/csv", ".json": "application/json",
    ".vtt": "text/vtt", ".png": "image/png", ".otio": "application/json", ".fcpxml": "application/xml",
    ".edl": "text/plain",
}  # fmt: skip
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in _TYPES.values()}, "description": "The file"}
}


class ExportStep(schemas.RequestModel):
    """One step of a sequence to export."""

    start: schemas.Seconds
    end: schemas.Seconds
    score: schemas.Score


class ExportMoment(schemas.RequestModel):
    """A moment to export."""

    video_id: schemas.Name = Field(examples=["holiday/beach"])
    start: schemas.Seconds = Field(examples=[12.0])
    end: schemas.Seconds = Field(examples=[19.5])
    score: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    rank: int | None = Field(default=None, ge=1, le=1_000_000, examples=[1])
    band: Band | None = Field(
        default=None, description="How likely it is right; by default its score says that.",
        examples=["strong"],
    )  # fmt: skip
    source: str = Field(default="visual", max_length=40, examples=["visual"])
    snippet: str = Field(default="", max_length=100_000, examples=[""])
    snippet_kind: SnippetKind = Field(default="", examples=[""])
    steps: list[ExportStep] = Field(default_factory=list, max_length=20, examples=[[]])
    title: str = Field(default="", max_length=500, examples=["the dog"])
    note: str = Field(default="", max_length=5_000, examples=["take the second half"])


class ExportRequest(schemas.RequestModel):
    """Moments to export, or the name of a collection, and the format."""

    format: str = Field(max_length=40, examples=["csv"])
    title: str = Field(
        default="", max_length=200, description="By default the name of the collection.", examples=["my cut"]
    )
    moments: list[ExportMoment] = Field(default_factory=list, max_length=_MOST)
    collection: str | None = Field(
        default=None, min_length=1, max_length=4_096,
        description="Name of a kept collection, whose moments are exported; null: `moments`.",
        examples=[None],
    )  # fmt: skip
    options: dict[str, str | float | int | bool] = Field(
        default_factory=dict, max_length=20, examples=[{"rate": "25"}]
    )


class ExportState(schemas.WorkProgress):
    """How an export stands."""

    export: str = Field(examples=["3f" * 16])
    state: Literal["running", "done", "failed", "cancelled"] = Field(examples=["running"])
    file: str = Field(description="Its name; empty until it is done.", examples=["my_cut.mp4"])
    error: str = Field(description="Why it has failed.", examples=[""])


@router.post("/export", response_class=Response, responses=_FILE)
async def export(request: ExportRequest, service: ServiceOf) -> Response:
    """Moments in one of the library's `export_formats`, as an attachment; several files come as a ZIP."""
    return await made_file(service.exporting, partial(_written, service, request))


class _OnlyCopy(FileResponse):
    """A file that goes with its folder, sent or not: a wrong range would leave a background task undone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            shutil.rmtree(Path(self.path).parent, ignore_errors=True)


async def made_file(pool: Pool, make: Callable[[Path], Path]) -> FileResponse:
    """A file that a thread makes right in a folder of its own, as an attachment; both go when it is sent."""
    folder = own_folder()
    try:
        path = await pool.run(make, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return _attachment(path, _OnlyCopy)


def _attachment(path: Path, response: type[FileResponse] = FileResponse) -> FileResponse:
    return response(path, media_type=_TYPES.get(path.suffix, "application/octet-stream"), filename=path.name)


@router.post("/exports", status_code=201)
async def begin(request: ExportRequest, service: ServiceOf) -> ExportState:
    """Begin an export that may take long: its state says how far it is, and its file follows."""
    begun = await service.exports.begin(partial(_written, service, request), _PATIENCE)
    return _state(begun, service)


@router.get("/exports/{export}")
async def state(export: Name, service: ServiceOf) -> ExportState:
    """Progress of an export."""
    return _state(service.exports.get(export), service)


@router.get("/exports/{export}/file", response_class=Response, responses=_FILE)
async def file(export: Name, service: ServiceOf) -> Response:
    """The file of an export that is done, as an attachment."""
    one = service.exports.get(export)
    if one.state == "failed":
        raise one.error or MoviolaError("the export has failed; the server's log says more")
    if one.path is None:
        raise Busy("the export is not done yet; ask for its state")
    return _attachment(one.path)


@router.delete("/exports/{export}", status_code=204)
async def cancel(export: Name, service: ServiceOf) -> None:
    """End an export, or delete its file."""
    service.exports.cancel(export)


def _state(one: Exporting, service: Service) -> ExportState:
    return ExportState(
        export=one.name, state=one.state, file=one.path.name if one.path else "",
        error=service.without_paths(message_of(one.error)) if one.error else "",
        share=one.progress.share, seconds_left=one.progress.seconds_left,
    )  # fmt: skip


def _written(
    service: Service, request: ExportRequest, folder: Path, progress: Callable[[float], None] = lambda _: None
) -> Path:
    """Write the file; returns its path, below ``folder``."""
    format = named_format(request.format)
    format.require_heeded(request.options)  # before they are arguments among others
    title = request.title or request.collection or "moments"
    name = file_stem(title, "moments")[:100]
    chosen = _chosen(service, request)
    ids = {one.moment.video_id for one in chosen}
    videos = {video_id: service.library.catalogue.video(video_id) for video_id in ids}
    durations = {video_id: video.duration for video_id, video in videos.items()}
    most = service.options.limits.clip_seconds
    for moment in (one.moment for one in chosen):
        span = Span(moment.start, moment.end).within(moment.video_id, durations[moment.video_id])
        if span.duration > most:
            raise InvalidValue(
                f"{moment.video_id}: {span.duration:g} s; this server exports at most {most:g} s at once"
            )
    titled: dict[str, Any] = {"title": title} if "title" in format.options else {}
    paths, away = service.library.store.paths_of(videos)
    for video_id in away:
        if is_file(paths[video_id]):
            raise NotFound(f"{video_id}: a link has come to stand where its file was; index its folder again")
    try:
        written = write_moments(
            chosen, paths, folder / f"{name}{format.suffix}", request.format,
            durations=durations, kept=service.library.store.kept_still, progress=progress,
            **titled | request.options,
        )  # fmt: skip
    except InvalidValue as error:  # names the file, whose folder is the server's own
        raise InvalidValue(str(error).replace(f"{folder}{os.sep}", "")) from error
    if format.kind == "file":
        return written.files[0]
    with zipfile.ZipFile(out := folder / f"{name}.zip", "w", zipfile.ZIP_STORED) as archive:
        for path in written.files:
            archive.write(path, path.name)
        if written.refused:
            missing = (f"{name}: {why}\n" for name, why in written.refused.items())
            archive.writestr("missing.txt", "".join(missing))
    return out


def _chosen(service: Service, request: ExportRequest) -> list[Selection]:
    """The moments of a request, or of the collection that it names."""
    if (request.collection is None) != bool(request.moments):
        raise WrongField("moments", InvalidValue("moments: give some, or the name of a collection"))
    if request.collection is None:
        return [
            Selection(_moment(one, one.rank or place), one.title, one.note)
            for place, one in enumerate(request.moments, 1)
        ]
    kept = service.library.userdata.entry("collection", request.collection).value
    assert isinstance(kept, Collection)
    if not 0 < len(kept.moments) <= _MOST:
        raise WrongField("collection", InvalidValue(
            f"collection {request.collection}: {len(kept.moments)} moments; this server exports 1 to "
            f"{_MOST:,} at once"
        ))  # fmt: skip
    return [Selection.by_hand(rank, **one.model_dump()) for rank, one in enumerate(kept.moments, 1)]


def _moment(one: ExportMoment, rank: int) -> Moment:
    """What was found, as it was; a moment without a score was chosen by hand."""
    band = one.band
    if band is None:
        band = band_of(one.score) if "score" in one.model_fields_set else "strong"
    return Moment(
        one.video_id, one.start, one.end, one.score, rank, one.source, one.snippet,
        tuple(Moment(one.video_id, step.start, step.end, step.score, rank) for step in one.steps),
        one.snippet_kind, band,
    )  # fmt: skip
