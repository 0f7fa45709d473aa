"""Pictures of a video: stills and strips, playback by byte ranges, clips."""

from __future__ import annotations

from functools import partial
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
from moviola.server.stills import write_still, write_strip
from moviola.types import Moment, Span

router = APIRouter(prefix="/api/videos/{video_id}")


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
    """Name of a converted video in the cache of its library; with a track if it is not the default one."""
    return f"{video.row}.mp4" if track is None else f"{video.row}-{track}.mp4"


@router.head("/stream", include_in_schema=False)
@router.get(
    "/stream", tags=["streams"], response_class=Response,
    responses={
        200: {**_VIDEO, "description": "The whole video"},
        206: {**_VIDEO, "description": "Partial content"},
        304: {"description": "As it was"},
        416: {"model": ProblemAnswer, "description": "Bytes past the end of the file"},
    },
)  # fmt: skip
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
    etag = f'"{video.version}-{status.st_mtime_ns:x}-{status.st_size:x}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if has_already(request, etag):
        return Response(status_code=304, headers=headers)
    return FileResponse(path, media_type=kind, headers=headers, stat_result=status)


async def _playable(service: Service, video: VideoRow, track: str | None) -> tuple[Path, str]:
    """A file that browsers play, and its type."""
    home, own = service.home_of(video)
    if track is None and (found := home.converted.files.find(converted_name(own))):
        return found, "video/mp4"
    source = _file(service, video)
    if not is_file(source):
        raise _gone(video)
    info = await service.media.run(probe, source)
    number = None
    if track is not None:
        chosen = track_among(info.sound_tracks, source, track)
        number = None if chosen.default else chosen.number
    if number is None and plays_in_browsers(info):
        return source, _TYPES.get(info.container, "video/mp4")
    name = converted_name(own, number)
    return await home.converted.get(source, name, video.duration, number), "video/mp4"


def _file(service: Service, video: VideoRow) -> Path:
    """The file of a video, also where it is gone, which opening it says; NotFound where only a link that
    leads elsewhere is there.
    """
    file = service.library.store.file_of(video.video_id)
    if file is None and is_file(video.path):
        raise _gone(video)
    return file or Path(video.path)


def _gone(video: VideoRow) -> NotFound:
    return NotFound(f"{video.video_id}: its file is not there; plug its drive in, or index its new place")


@router.get(
    "/clip", tags=["streams"], response_class=Response,
    responses={200: {"content": {"video/mp4": {}}, "description": "An MP4"}},
)  # fmt: skip
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
    file = _file(service, video)

    def make(folder: Path) -> Path:
        out = folder / clip_name(moment)
        export_clip(moment, file, out, mode=mode, track=track)
        return out

    return await made_file(service.media, make)


# A picture requested with the right version never changes.
_FOREVER = "private, max-age=31536000, immutable"
_ASK_AGAIN = "private, no-cache"
_TALLEST = 4096  # pixels; JPEG is limited to 65,535
_JPEG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/jpeg": {}}, "description": "A JPEG"},
    304: {"description": "As it was"},
}

Version = Annotated[
    str, Query(max_length=40, description="The video's version; with it the picture may be cached for ever.")
]


@router.get("/still", tags=["stills"], response_class=Response, responses=_JPEG)
async def still(
    request: Request,
    service: ServiceOf,
    video: VideoOf,
    time: Seconds = 0.0,
    width: Annotated[int, Query(ge=16, le=1920)] = 320,
    v: Version = "",
) -> Response:
    """The frame at a time, or the last one for later times, in the given width and its own aspect ratio."""
    width, _ = _still_size(video, width, tallest=_TALLEST)
    time = min(time, video.duration)  # after the end: the last frame
    make = partial(write_still, Path(video.path), round(time, 3), width)
    return await _picture(request, service, video, f"{round(time * 1000)}-{width}", make, v)


@router.get("/strip", tags=["stills"], response_class=Response, responses=_JPEG)
async def strip(
    request: Request,
    service: ServiceOf,
    video: VideoOf,
    start: Seconds = 0.0,
    end: Annotated[Seconds | None, Query(description="By default the end of the video.")] = None,
    count: Annotated[int, Query(ge=1, le=60)] = 12,
    width: Annotated[int, Query(ge=16, le=480)] = 160,
    v: Version = "",
) -> Response:
    """Stills of a span side by side in one picture: the middles of ``count`` equal parts."""
    end = min(video.duration, video.duration if end is None else end)
    if end <= start:
        raise InvalidValue(
            f"start {start:g}, end {end:g}: the end must come after the start, inside the video"
        )
    times = [start + (place + 0.5) * (end - start) / count for place in range(count)]
    size = _still_size(video, width, tallest=2 * width)
    name = f"{round(start * 1000)}-{round(end * 1000)}-{count}x{width}"
    make = partial(write_strip, Path(video.path), times, width, size)
    return await _picture(request, service, video, name, make, v)


def _still_size(video: VideoRow, width: int, *, tallest: int) -> tuple[int, int]:
    """Width and height in pixels of a still ``width`` wide; narrower where it would be too tall."""
    shape = video.height / video.width if video.width else 9 / 16
    width = max(1, min(width, round(tallest / shape)))
    return width, max(1, round(width * shape))


async def _picture(
    request: Request, service: Service, video: VideoRow, name: str, make: partial[None], version: str
) -> Response:
    """A picture of a video, by its name in the cache; of one that is away it is made of small stills."""
    home, own = service.home_of(video)
    small = partial(home.store.stills.nearest, video.hash)
    away = service.library.store.file_of(video.video_id) is None
    kept = small if away and small(0.0) is not None else None
    if kept is None:
        _file(service, video)  # which follows no link
    name = f"{own.row}{'-away' if kept else ''}/{name}.jpg"
    etag = f'"{video.version}/{name}"'
    cache = _FOREVER if version == video.version and not kept else _ASK_AGAIN
    headers = {"Cache-Control": cache, "ETag": etag}
    if has_already(request, etag):
        return Response(status_code=304, headers=headers)
    path = await home.stills.get(service.media, name, partial(make, kept=kept))
    return Response(path.read_bytes(), media_type="image/jpeg", headers=headers)
