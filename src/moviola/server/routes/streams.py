"""Playback: byte ranges of videos, converted where browsers cannot play them; clips."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, Response

from moviola.errors import InvalidValue, NotFound
from moviola.export import clip_name, export_clip
from moviola.files.presence import is_file
from moviola.library import VideoRow
from moviola.media import plays_in_browsers, probe, track_among
from moviola.server.file_headers import has_already
from moviola.server.problems import Busy
from moviola.server.routes.exports import made_file
from moviola.server.schemas import ProblemAnswer, Seconds
from moviola.server.service import Service, ServiceOf, VideoOf
from moviola.types import Moment, Span

__all__ = ["converted_name", "router"]

router = APIRouter(prefix="/api/videos/{video_id}", tags=["streams"])

_TYPES = {"webm": "video/webm"}
_VIDEO: dict[str, Any] = {"content": {"video/mp4": {}, "video/webm": {}}}


Track = Annotated[
    str | None,
    Query(
        description="Sound track: a number from 1 on, or a language; else the one that players choose.",
        max_length=40,
        examples=["de"],
    ),
]


def converted_name(video: VideoRow, track: int | None = None) -> str:
    """Name of a converted video in its cache; with a track if it is not the default one."""
    return f"{video.row}.mp4" if track is None else f"{video.row}-{track}.mp4"


@router.head("/stream", include_in_schema=False)
@router.get(
    "/stream",
    response_class=Response,
    responses={
        200: {**_VIDEO, "description": "The whole video"},
        206: {**_VIDEO, "description": "Partial content"},
        304: {"description": "As it was"},
        416: {"model": ProblemAnswer, "description": "Bytes past the end of the file"},
    },
)
async def stream(request: Request, service: ServiceOf, video: VideoOf, track: Track = None) -> Response:
    """The video for a player: its file, or, where browsers cannot play it, an MP4 converted once.

    A first request for such a video waits some seconds for it. If that is not enough, the response is 503
    `busy` with `Retry-After` and the progress, and the conversion continues; `/clip` gives a moment
    meanwhile. A conversion that has failed says why, and is not tried again until the file changes.
    """
    path, kind = await _playable(service, video, track)
    try:
        status = path.stat()
    except OSError as error:  # it went after it was found
        if path != Path(video.path):
            raise Busy(f"{video.video_id}: was deleted from the cache just now; ask again") from error
        raise _gone(video) from error
    etag = f'"{video.row}-{status.st_mtime_ns:x}-{status.st_size:x}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if has_already(request, etag):
        return Response(status_code=304, headers=headers)
    return FileResponse(path, media_type=kind, headers=headers, stat_result=status)


async def _playable(service: Service, video: VideoRow, track: str | None) -> tuple[Path, str]:
    """A file that browsers play, and its type."""
    source = Path(video.path)
    if track is None and (found := service.converted.files.find(converted_name(video))):
        return found, "video/mp4"
    if not is_file(source):
        raise _gone(video)
    info = await service.media.run(probe, source)
    number = None
    if track is not None:
        chosen = track_among(info.sound_tracks, source, track)
        number = None if chosen.default else chosen.number
    if number is None and plays_in_browsers(info):
        return source, _TYPES.get(info.container, "video/mp4")
    name = converted_name(video, number)
    return await service.converted.get(source, name, video.duration, number), "video/mp4"


def _gone(video: VideoRow) -> NotFound:
    return NotFound(f"{video.video_id}: its file is not there; plug its drive in, or index its new place")


@router.get(
    "/clip", response_class=Response, responses={200: {"content": {"video/mp4": {}}, "description": "An MP4"}}
)
async def clip(
    service: ServiceOf,
    video: VideoOf,
    start: Seconds,
    end: Seconds,
    mode: Annotated[
        Literal["exact", "key-frames"],
        Query(
            description="key-frames: never encoded, from the key frame before the start; 409 if that fails."
        ),
    ] = "exact",
    track: Track = None,
) -> Response:
    """A moment as an MP4 of its own."""
    span = Span(start, end).within(video.video_id, video.duration)
    most = service.options.limits.clip_seconds
    if span.duration > most:
        raise InvalidValue(f"start {start:g}, end {end:g}: this server cuts at most {most:g} s at once")
    moment = Moment(video.video_id, span.start, span.end, 0.0, 1)

    def make(folder: Path) -> Path:
        out = folder / clip_name(moment)
        export_clip(moment, Path(video.path), out, mode=mode, track=track)
        return out

    return await made_file(service.media, make)
