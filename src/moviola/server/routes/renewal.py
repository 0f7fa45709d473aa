"""Videos that are encoded or read again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from moviola.search import Library
from moviola.server.inside import resolved
from moviola.server.refusals import Forbidden
from moviola.server.schemas import Job
from moviola.server.service import ServiceOf, VideoOf

__all__ = ["router"]

router = APIRouter(prefix="/api/videos", tags=["upkeep"])


@router.post("/{video_id}/again", status_code=201)
async def again(
    service: ServiceOf,
    video: VideoOf,
    pictures: Annotated[
        bool, Query(description="Encode the pictures, too; false: read subtitles and text in pictures.")
    ] = True,
) -> Job:
    """Process a video again, as a job; it can be searched as it is until that is done.

    403: its file is not in a folder from which this server brings videos in.
    """
    file = service.library.file_of(video.video_id)
    path = str(file or video.path)
    allowed = [folder.resolve() for folder in service.options.allow_ingest]
    if file is None or not any(resolved(file).is_relative_to(folder) for folder in allowed):
        raise Forbidden(
            f"{path}: not in a folder to bring videos in from ({', '.join(map(str, allowed)) or 'none'}); "
            "start the server with --allow-ingest FOLDER for it"
        )

    def work() -> None:
        with Library(service.library.folder) as library:
            library.again([video.video_id], pictures=pictures)

    await service.media.run(work)
    return await service.jobs.add([path])
