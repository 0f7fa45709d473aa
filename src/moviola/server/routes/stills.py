"""Stills and strips of videos, cached."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from moviola.errors import InvalidValue
from moviola.files.presence import is_file
from moviola.library import VideoRow
from moviola.server.file_headers import has_already
from moviola.server.schemas import Seconds
from moviola.server.service import Service, ServiceOf, VideoOf
from moviola.server.stills import write_still, write_strip

__all__ = ["router", "still_size"]

router = APIRouter(prefix="/api/videos/{video_id}", tags=["stills"])

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


@router.get("/still", response_class=Response, responses=_JPEG)
async def still(
    request: Request,
    service: ServiceOf,
    video: VideoOf,
    time: Seconds = 0.0,
    width: Annotated[int, Query(ge=16, le=1920)] = 320,
    v: Version = "",
) -> Response:
    """The frame at a time, or the last one for later times, in the given width and its own aspect ratio."""
    width, _ = still_size(video, width, tallest=_TALLEST)
    time = min(time, video.duration)  # after the end: the last frame
    make = partial(write_still, Path(video.path), round(time, 3), width)
    return await _picture(request, service, video, f"{round(time * 1000)}-{width}", make, v)


@router.get("/strip", response_class=Response, responses=_JPEG)
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
    size = still_size(video, width, tallest=2 * width)
    name = f"{round(start * 1000)}-{round(end * 1000)}-{count}x{width}"
    make = partial(write_strip, Path(video.path), times, width, size)
    return await _picture(request, service, video, name, make, v)


def still_size(video: VideoRow, width: int, *, tallest: int) -> tuple[int, int]:
    """Width and height in pixels of a still ``width`` wide; narrower where it would be too tall."""
    shape = video.height / video.width if video.width else 9 / 16
    width = max(1, min(width, round(tallest / shape)))
    return width, max(1, round(width * shape))


async def _picture(
    request: Request, service: Service, video: VideoRow, name: str, make: partial[None], version: str
) -> Response:
    """A picture of a video, by its name in the cache; of one that is away it is made of small stills."""
    small = partial(service.library.store.stills.nearest, video.hash)
    kept = None if is_file(video.path) or small(0.0) is None else small
    name = f"{video.row}{'-away' if kept else ''}/{name}.jpg"
    etag = f'"{name}"'
    cache = _FOREVER if version == str(video.row) and not kept else _ASK_AGAIN
    headers = {"Cache-Control": cache, "ETag": etag}
    if has_already(request, etag):
        return Response(status_code=304, headers=headers)
    path = await service.stills.get(service.media, name, partial(make, kept=kept))
    return Response(path.read_bytes(), media_type="image/jpeg", headers=headers)
