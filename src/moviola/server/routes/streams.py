"""Playing videos: their bytes in ranges, made playable where browsers don't play them as they are; clips."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from moviola.errors import InvalidValue, NotFound
from moviola.export import clip_name, export_clip
from moviola.library import VideoRow
from moviola.media import make_playable, plays_in_browsers, probe, track_among
from moviola.server.ranges import ranged_file
from moviola.server.refusals import Busy
from moviola.server.schemas import Seconds
from moviola.server.service import Service, ServiceOf, VideoOf
from moviola.types import Moment, Span

__all__ = ["converted_name", "router"]

router = APIRouter(prefix="/api/videos/{video_id}", tags=["streams"])

_TYPES = {"webm": "video/webm"}
# A first request waits so many seconds for a video to be converted; later ones find it there.
_PATIENCE = 20.0
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
    """The name of a video that was made playable, in its cache; with another sound track than the default."""
    return f"{video.row}.mp4" if track is None else f"{video.row}-{track}.mp4"


@router.head("/stream", include_in_schema=False)
@router.get(
    "/stream",
    response_class=Response,
    responses={
        200: {**_VIDEO, "description": "The whole video"},
        206: {**_VIDEO, "description": "A part of it"},
        304: {"description": "As it was"},
        416: {"description": "There are no such bytes"},
    },
)
async def stream(request: Request, service: ServiceOf, video: VideoOf, track: Track = None) -> Response:
    """The video for a player: its file, or where browsers don't play that an MP4 that is made once.

    A first request for such a video waits for it for some seconds. Where that takes longer, the answer is
    503 `busy` with `Retry-After`, and the work goes on; `/clip` gives a moment meanwhile.
    """
    path, kind = await _playable(service, video, track)
    return ranged_file(path, kind, request.method, request.headers)


async def _playable(service: Service, video: VideoRow, track: str | None) -> tuple[Path, str]:
    """A file that browsers play, and its type."""
    source = Path(video.path)
    if track is None and (found := service.converted.find(converted_name(video))):
        return found, "video/mp4"
    if not source.is_file():
        raise NotFound(f"{video.video_id}: its file is gone; index its folder again")
    info = await service.media.run(probe, source)
    number = None
    if track is not None:
        chosen = track_among(info.sound_tracks, source, track)
        number = None if chosen.default else chosen.number
    if number is None and plays_in_browsers(info):
        return source, _TYPES.get(info.container, "video/mp4")
    name = converted_name(video, number)
    making = service.converted.get(service.converting, name, partial(make_playable, source, track=number))
    try:
        return await asyncio.wait_for(making, _PATIENCE), "video/mp4"
    except TimeoutError:
        raise Busy(f"{video.video_id}: is being converted for browsers; try again") from None


@router.get(
    "/clip",
    response_class=Response,
    responses={200: {"content": {"video/mp4": {}}, "description": "An MP4"}},
)
async def clip(
    service: ServiceOf,
    video: VideoOf,
    start: Seconds,
    end: Seconds,
    mode: Annotated[
        Literal["exact", "copy"],
        Query(
            description="copy: never encoded again, from the key frame before the start; 409 if that fails."
        ),
    ] = "exact",
    track: Track = None,
) -> Response:
    """A moment as an MP4 of its own."""
    span = Span(start, min(end, max(video.duration, start)))
    most = service.options.limits.clip_seconds
    if span.duration > most:
        raise InvalidValue(f"start {start:g}, end {end:g}: at most {most:g} s are cut at once")
    moment = Moment(video.video_id, span.start, span.end, 0.0, 1)
    folder = Path(mkdtemp(prefix="moviola-clip-"))
    out = folder / clip_name(moment)
    try:
        how: Literal["exact", "key-frames"] = "exact" if mode == "exact" else "key-frames"
        await service.media.run(export_clip, moment, Path(video.path), out, mode=how, track=track)
    except BaseException:
        _discard(folder)
        raise
    return FileResponse(
        out, media_type="video/mp4", filename=out.name, background=BackgroundTask(_discard, folder)
    )


def _discard(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink(missing_ok=True)
    folder.rmdir()
