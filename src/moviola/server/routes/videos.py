"""The videos of the library, with their shots and cues."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query

from moviola.errors import MediaError, NotFound
from moviola.export import folder_command, play
from moviola.files.names import folded
from moviola.library import Recording, VideoRow
from moviola.media import MediaInfo, plays_in_browsers, probe
from moviola.search.found import whereabouts
from moviola.search.library import Order
from moviola.server import schemas
from moviola.server.options import is_loopback
from moviola.server.problems import Forbidden
from moviola.server.routes.streams import converted_name
from moviola.server.service import Service, ServiceOf, VideoOf
from moviola.types import HELD_AS, Holding

router = APIRouter(prefix="/api/videos", tags=["videos"])


@router.get("")
def videos(
    service: ServiceOf,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    state: Annotated[schemas.State | None, Query(description="Filter by state.")] = None,
    text: Annotated[
        str, Query(max_length=500, description="Filter by part of the id or path.", examples=["beach"])
    ] = "",
    sort: Annotated[
        Order, Query(description="name, date on which they were taken, length, or when they came in.")
    ] = "name",
    descending: Annotated[bool, Query(description="The other way round.")] = False,
) -> schemas.VideoList:
    """Videos in an order, refused ones with the reason."""
    wanted = folded(text)
    matching = [
        video
        for video in service.library.ordered(sort)
        if state in (None, video.state) and wanted in folded(f"{video.video_id}\n{video.path}")
    ]
    if descending:
        matching.reverse()
    shown = [summary_of(service, video) for video in matching[offset : offset + limit]]
    return schemas.VideoList(total=len(matching), videos=shown)


@router.get("/{video_id}")
async def video(service: ServiceOf, video: VideoOf) -> schemas.VideoDetails:
    """One video, with properties of its file."""
    about = await service.media.run(_probed, service.library.store.file_of(video.video_id))
    summary = await service.media.run(summary_of, service, video)
    account = service.library.catalogue.account(video.row)
    said = service.library.catalogue.sayings(video.row).get(video.row, ())
    playable = about is not None and plays_in_browsers(about)
    return schemas.VideoDetails(
        **summary.model_dump(),
        says=[schemas.FileSaying(kind=one.kind, text=one.text) for one in said],
        holds=[_held(one) for one in account.holdings or ()],
        subtitles=[*account.problems, *account.notes],
        unread=_unread(service, video),
        fps=about.frame_rate if about else None,
        audio_codec=about.audio_codec if about else None,
        playable=playable,
        stream_ready=playable or service.converted.files.find(converted_name(video)) is not None,
    )


def _unread(service: Service, video: VideoRow) -> list[str]:
    readings = service.library.catalogue.readings(video.row)
    return [f"{kind}: {one.unread}" for kind, one in readings.items() if one.unread]


def _held(one: Holding) -> schemas.HeldPart:
    return schemas.HeldPart(
        stream=one.stream, about=one.about, held_as=one.held_as, used=one.used, said=HELD_AS[one.held_as]
    )


@router.post("/{video_id}/folder", status_code=204)
def folder(service: ServiceOf, video: VideoOf) -> None:
    """Open the folder of a video on the server's machine.

    403: the server can be reached from elsewhere. 404: the file is away, or no program opens folders.
    """
    if not is_loopback(service.options.host):
        raise Forbidden(
            f"host {service.options.host}: only a server for this machine opens folders; copy the path"
        )
    file = service.library.store.file_of(video.video_id)
    if file is None:
        raise NotFound(f"{video.path}: not there; plug its drive in")
    play(folder_command(file))


@router.get("/{video_id}/shots")
def shots(service: ServiceOf, video: VideoOf) -> schemas.ShotList:
    """The shots of a video."""
    stored = service.library.catalogue.shots(video.row)
    ends = [*(shot.start for shot in stored[1:]), video.duration]
    rows = zip(stored, ends, strict=True) if stored else ()
    return schemas.ShotList(
        shots=[schemas.Shot(start=shot.start, end=end, kind=shot.opening) for shot, end in rows]
    )


@router.get("/{video_id}/cues")
def cues(
    service: ServiceOf, video: VideoOf, start: schemas.Seconds = 0.0, end: schemas.Seconds | None = None
) -> schemas.CueList:
    """The cues of a video between two times."""
    stored = [
        schemas.SpokenCue.model_validate(cue)
        for cue in service.library.catalogue.cues(video.row)
        if cue.end > start and (end is None or cue.start < end)
    ]
    return schemas.CueList(cues=sorted(stored, key=lambda cue: (cue.start, cue.end)))


def summary_of(service: Service, video: VideoRow) -> schemas.VideoSummary:
    """A video of the library, for the API."""
    catalogue = service.library.catalogue
    recording = service.library.recordings.get(video.video_id)
    return schemas.VideoSummary(
        **whereabouts(video, catalogue), video_id=video.video_id, path=video.path, duration=video.duration,
        state=video.state, error=video.error, why=schemas.Why.of(video.error),
        bytes=video.size,
        modified=datetime.fromtimestamp(video.mtime_ns / 1e9, UTC).isoformat(timespec="seconds"),
        shots=len(catalogue.shots(video.row)), width=video.width, height=video.height,
        video_codec=video.codec, version=str(video.row),
        recording=_parts(recording, video.video_id) if recording else None,
    )  # fmt: skip


def _parts(recording: Recording, video_id: str) -> schemas.RecordingParts:
    return schemas.RecordingParts(video_ids=[*recording.video_ids], part=recording.part(video_id))


def _probed(file: Path | None) -> MediaInfo | None:
    """Properties of a file; None where it is not there, or cannot be read."""
    try:
        return None if file is None else probe(file)
    except MediaError:
        return None
