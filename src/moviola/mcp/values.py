"""What the tools take and give, as the schemas that an agent reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

__all__ = [
    "Clip", "FoundMoment", "FoundMoments", "ListedVideo", "ListedVideos", "Said", "Seconds", "Stills",
    "StretchOfTime", "VideoId", "Words",
]  # fmt: skip

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
VideoId = Annotated[str, Field(description="As in `video_id` of an answer of this server.")]
Words = Annotated[str, Field(max_length=1000)]


# Thousandths are enough for times and scores, and shorter to read.
Rounded = Annotated[float, AfterValidator(lambda value: round(value, 3))]


class StretchOfTime(BaseModel):
    """From `start` to `end`, in seconds from the beginning of the video."""

    start: Rounded
    end: Rounded


class FoundMoment(StretchOfTime):
    """A stretch of a video that answers the query."""

    rank: int = Field(description="From 1, the best; the number on the contact sheet.")
    video_id: str
    path: str = Field(description="The video's file.")
    score: Rounded = Field(description="From 0 to 1; comparable within one answer.")
    source: str = Field(
        description="What speaks for it: visual, subtitle, speech, text (in the picture), both."
    )
    snippet: str = Field("", description="Words of the video that match, if any.")
    snippet_kind: str = Field("", description="Whether these are a subtitle, speech or text in the picture.")
    steps: list[StretchOfTime] = Field([], description="Where `then` was used: when each step happens.")
    strong: bool = Field(description="Whether it is a good answer; strong ones come first.")
    why: str = Field("", description="What speaks for it, from 0 to 1 each: 'seen 0.87, said 0.64 (door)'.")
    folded: int = Field(0, description="Number of overlapping moments for which it stands.")


class FoundMoments(BaseModel):
    """The moments of an answer, best first."""

    query: str = Field(description="What was looked for, as it was understood.")
    confident: bool = Field(
        description="false: probably nothing in the library matches, and these are only the nearest moments."
    )
    moments: list[FoundMoment]
    note: str = Field("", description="What to make of the answer, if there is more to say.")


class Said(StretchOfTime):
    """What is said, or written in the picture, at that time."""

    text: str
    kind: Literal["subtitle", "speech", "text"]


class Stills(StretchOfTime):
    """Where in a video the pictures that follow were taken."""

    video_id: str
    path: str = Field(description="The video's file.")
    duration: Rounded = Field(description="Of the whole video, in seconds.")
    times: list[Rounded] = Field(description="Of the pictures, in their order, in seconds.")
    words: list[Said] = Field(description="What is said or written meanwhile.")


class ListedVideo(BaseModel):
    """A video of the library."""

    video_id: str
    path: str
    duration: Rounded = Field(description="In seconds.")
    state: Literal["ready", "partial", "refused"] = Field(description="A refused one cannot be searched.")
    error: str = Field("", description="Why a video was refused, or is there in part.")


class ListedVideos(BaseModel):
    """A page of the list of videos, by id."""

    total: int = Field(description="Of the videos that pass the filters, on all pages.")
    videos: list[ListedVideo]
    next_offset: int | None = Field(description="`offset` of the next page; null on the last one.")


class Clip(StretchOfTime):
    """A clip that was cut."""

    path: str = Field(description="The MP4.")
    video_id: str
    bytes: int
