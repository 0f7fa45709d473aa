"""The videos of the library, with their shots and cues."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

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
from moviola.types import HELD_AS, CueKind, HeldAs, Holding

router = APIRouter(prefix="/api/videos", tags=["videos"])


class HeldPart(schemas.ResponseModel):
    """A part of a file, and what becomes of it."""

    stream: int | None = Field(description="Number of its stream; null: no stream.", examples=[2])
    about: str = Field(description="Type, codec, language, title.", examples=["subtitle, dvd_subtitle, ger"])
    held_as: HeldAs = Field(examples=["pictures of text"])
    used: bool = Field(description="Whether it is used.", examples=[False])
    said: str = Field(description="What becomes of it.", examples=["pictures of text, not read"])


class FileSaying(schemas.ResponseModel):
    """What a file says of its film as a whole."""

    kind: str = Field(description="title, keywords, description, people or series.", examples=["title"])
    text: str = Field(examples=["Summer at the harbour"])


class Track(schemas.ResponseModel):
    """Cues of one kind and one language, of any form."""

    kind: CueKind = Field(examples=["subtitle"])
    language: str = Field(description="A tag of BCP 47; empty: unknown.", examples=["en"])
    cues: int = Field(examples=[412])


class VideoDetails(schemas.VideoSummary):
    """One video, with properties of its file."""

    says: list[FileSaying] = Field(description="What its file says of the film.")
    tracks: list[Track] = Field(description="Speech and text, by track, each with its language.")
    holds: list[HeldPart] = Field(description="What its file holds, empty where it was not looked at.")
    subtitles: list[str] = Field(
        description="Missing parts of its subtitles, and how they were read.",
        examples=[["2 damaged cues skipped (00:00:xx)"]],
    )
    unread: list[str] = Field(
        description="What readers of speech and of text could not read.",
        examples=[["speech: 1:05 of 4:00 of speech, in a language that tiny.en does not know, is not kept"]],
    )
    fps: float | None = Field(examples=[25.0])
    audio_codec: str | None = Field(examples=["aac"])
    playable: bool = Field(description="Whether browsers play the file as it is.", examples=[True])
    stream_ready: bool = Field(
        description="Whether the converted video is ready; if not, the first request of /stream makes it.",
        examples=[True],
    )


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
async def video(service: ServiceOf, video: VideoOf) -> VideoDetails:
    """One video, with properties of its file."""
    about = await service.media.run(_probed, service.library.store.file_of(video.video_id))
    summary = await service.media.run(summary_of, service, video)
    account = service.library.catalogue.account(video.row)
    said = service.library.catalogue.sayings([video.row]).get(video.row, ())
    playable = about is not None and plays_in_browsers(about)
    home, own = service.home_of(video)
    return VideoDetails(
        **summary.model_dump(),
        says=[FileSaying(kind=one.kind, text=one.text) for one in said],
        tracks=_tracks(service, video),
        holds=[_held(one) for one in account.holdings or ()],
        subtitles=[*account.problems, *account.notes],
        unread=_unread(service, video),
        fps=about.frame_rate if about else None,
        audio_codec=about.audio_codec if about else None,
        playable=playable,
        stream_ready=playable or home.converted.files.find(converted_name(own)) is not None,
    )


def _tracks(service: Service, video: VideoRow) -> list[Track]:
    counts: Counter[tuple[CueKind, str]] = Counter()
    for one in service.library.catalogue.tracks([video.row]).get(video.row, ()):
        counts[one.kind, one.language] += one.cues
    return [Track(kind=kind, language=tag, cues=cues) for (kind, tag), cues in counts.items()]


def _unread(service: Service, video: VideoRow) -> list[str]:
    readings = service.library.catalogue.readings(video.row)
    return [f"{kind}: {one.unread}" for kind, one in readings.items() if one.unread]


def _held(one: Holding) -> HeldPart:
    return HeldPart(
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
    home, _ = service.home_of(video)
    return schemas.VideoSummary(
        **whereabouts(video, catalogue), video_id=video.video_id, library=home.name, path=video.path,
        duration=video.duration,
        state=video.state, error=video.error, why=schemas.Why.of(video.error),
        bytes=video.size,
        modified=datetime.fromtimestamp(video.mtime_ns / 1e9, UTC).isoformat(timespec="seconds"),
        shots=len(catalogue.shots(video.row)), width=video.width, height=video.height,
        video_codec=video.codec, number=video.row, version=video.version,
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
