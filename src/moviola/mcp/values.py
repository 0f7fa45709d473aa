"""Parameter and result types of the tools, with the schemas that an agent reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from moviola.types import Band, CueKind, shown_score

__all__ = [
    "CitedMoment", "CitingSentence", "Clip", "FilmAnswer", "FoundMoment", "FoundMoments", "ListedVideo",
    "ListedVideos", "Said", "Seconds", "Stills", "StretchOfTime", "VideoId", "Words",
]  # fmt: skip

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
VideoId = Annotated[str, Field(description="As in `video_id` of a response of this server.")]
Words = Annotated[str, Field(max_length=1000)]


# Three decimals are enough for times and scores, and shorter to read.
Rounded = Annotated[float, AfterValidator(lambda value: round(value, 3))]
Score = Annotated[float, AfterValidator(lambda value: float(shown_score(value)))]


class StretchOfTime(BaseModel):
    """From `start` to `end`, in seconds from the beginning of the video."""

    start: Rounded
    end: Rounded


class FoundMoment(StretchOfTime):
    """A stretch of a video that answers the query."""

    rank: int = Field(description="Rank from 1, the best; the number on the contact sheet.")
    video_id: str
    path: str = Field(description="The video's file.")
    score: Score = Field(description="Probability that it is right, from 0 to 1.")
    source: str = Field(
        description="Evidence: visual, subtitle, speech, text (in pictures), sound, named, both."
    )
    snippet: str = Field("", description="Matching words of the video, if any.")
    snippet_kind: str = Field(
        "",
        description="Kind of the snippet: subtitle, speech, text (in pictures), sound, or chapter, a title.",
    )
    steps: list[StretchOfTime] = Field([], description="With `then`: the time of each step.")
    band: Band = Field(
        description="strong: more likely right than not; possible: at worst one chance in five; weak."
    )
    why: str = Field("", description="Evidence, from 0 to 1 each: 'seen 0.87, said 0.64 (door)'.")
    folded: int = Field(0, description="Number of overlapping moments folded into it.")
    by_key_frames: bool = Field(
        False, description="Found by key frames alone so far; start and end are only as exact as these."
    )


class FoundMoments(BaseModel):
    """The moments of an answer, best first."""

    query: str = Field(description="The query as understood.")
    confident: bool = Field(
        description="Whether a strong moment exists. false: nothing is certain, `note` says what there is."
    )
    moments: list[FoundMoment]
    note: str = Field("", description="Hints about the answer, if any.")


class Said(StretchOfTime):
    """A cue of speech or text at a time."""

    text: str
    kind: CueKind
    language: str = Field("", description="A tag of BCP 47; empty where it is not known.")


class Stills(StretchOfTime):
    """Time of the pictures that follow, in a video."""

    video_id: str
    path: str = Field(description="The video's file.")
    duration: Rounded = Field(description="Length of the whole video, in seconds.")
    times: list[Rounded] = Field(description="Times of the pictures, in their order, in seconds.")
    words: list[Said] = Field(description="Speech and text meanwhile.")


class ListedVideo(BaseModel):
    """A video of the library."""

    video_id: str
    path: str
    duration: Rounded = Field(description="In seconds.")
    state: Literal["ready", "partial", "refused"] = Field(description="A refused one cannot be searched.")
    error: str = Field("", description="Why a video was refused, or is incomplete.")


class ListedVideos(BaseModel):
    """A page of the list of videos, by id."""

    total: int = Field(description="Number of videos that pass the filters, on all pages.")
    videos: list[ListedVideo]
    next_offset: int | None = Field(description="`offset` of the next page; null on the last one.")


class CitedMoment(StretchOfTime):
    """A moment that a sentence cites."""

    video_id: str
    path: str = Field(description="The video's file.")
    looked: bool = Field(description="Whether the model looked at several stills of it.")


class CitingSentence(BaseModel):
    """A sentence of a model, and the moments that it cites, one at least."""

    text: str
    cites: list[CitedMoment]


class FilmAnswer(BaseModel):
    """What a model answers to a question about the films."""

    sentences: list[CitingSentence] = Field(description="Empty without an answer; `note` says why.")
    untold: bool = Field(False, description="Whether the films do not say it.")
    searches: list[str] = Field([], description="What the model searched for.")
    stills: int = Field(0, description="Number of those that it was sent.")
    note: str = Field("", description="How far to trust the answer, and why it lacks something.")


class Clip(StretchOfTime):
    """A clip that was cut."""

    path: str = Field(description="The MP4.")
    video_id: str
    bytes: int
