"""Videos that show the same, side by side."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from moviola.library.near_copies import NearCopies, find_near_copies, known_pairs
from moviola.server.routes.upkeep import Changing
from moviola.server.routes.videos import summary_of
from moviola.server.schemas import ResponseModel, VideoSummary
from moviola.server.service import Service, ServiceOf

router = APIRouter(prefix="/api/near-copies", tags=["upkeep"])


class Side(ResponseModel):
    """One of two videos that show the same."""

    video: VideoSummary
    start: float = Field(description="Of the stretch that the other one shows, too.", examples=[0.0])
    end: float = Field(examples=[92.4])


class NearCopiesOf(ResponseModel):
    """Two videos that show the same: encoded otherwise, or one a part of the other."""

    kind: Literal["same", "part"] = Field(
        description="same: nearly all of both; part: a stretch.", examples=["same"]
    )
    certainty: float = Field(description="Up to 1.", examples=[0.97])
    sides: list[Side] = Field(description="Both videos, the longer one first.")


class NearCopiesList(ResponseModel):
    """The surest first."""

    copies: list[NearCopiesOf]


@router.get("")
async def near_copies(service: ServiceOf) -> NearCopiesList:
    """Videos that show the same, as far as they were compared."""
    found = await service.media.run(known_pairs, service.library.store)
    return await service.media.run(_described, service, found)


@router.post("", dependencies=[Changing])
async def find(service: ServiceOf) -> NearCopiesList:
    """Compare the videos that were not compared yet; answers fold what is found from then on."""
    found = await service.change(lambda library: find_near_copies(library.store), service.converting)
    return await service.media.run(_described, service, found)


def _described(service: Service, found: list[NearCopies]) -> NearCopiesList:
    named = service.library.catalogue.videos_named({name for pair in found for name in pair.video_ids})
    return NearCopiesList(
        copies=[
            NearCopiesOf(
                kind=pair.kind,
                certainty=pair.certainty,
                sides=[
                    Side(video=summary_of(service, named[video_id]), start=span.start, end=span.end)
                    for video_id, span in zip(pair.video_ids, pair.spans, strict=True)
                ],
            )
            for pair in found
            if all(video_id in named for video_id in pair.video_ids)
        ]
    )
