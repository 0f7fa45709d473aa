"""Request and response types: names, limits and examples of the OpenAPI document.

Times are seconds from the start of a video, scores are in [0, 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, create_model

from moviola.files.reasons import read_reason
from moviola.search.notes import NoteKind
from moviola.search.schema import (
    Filters,
    Name,
    Query,
    QueryObject,
    RequestModel,
    Seconds,
    options_for,
)
from moviola.types import Band, CueKind, ReasonKind

__all__ = [
    "Answer", "Code", "CueList", "CurveAnswer", "CurveRequest", "ExportFormat", "FieldInfo", "FieldList",
    "FoundMoment", "Job", "JobList", "LibraryInfo", "LimitsInfo", "LookerInfo", "ModelInUse", "Name",
    "PictureAnswer", "Problem", "ProblemAnswer", "Refusal", "RequestModel", "ResponseModel", "Score",
    "SearchRequest", "Seconds", "Shot", "ShotList", "SpokenCue", "State", "VideoList",
    "VideoSummary", "Why", "WorkProgress", "raw_body",
]  # fmt: skip

State = Literal["ready", "partial", "refused"]
Code = Literal[
    "invalid_value", "not_found", "method", "too_large", "unauthorised", "forbidden", "busy", "unavailable",
    "internal", "version", "media_type", "checksum", "range",
]  # fmt: skip

Score = Annotated[float, Field(ge=0, le=1, examples=[0.93])]


class ResponseModel(BaseModel):
    """A part of a response, also made of a value with attributes of these names."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


def raw_body(media_type: str, **schema: str) -> dict[str, Any]:
    """What the OpenAPI document says of a route that reads its body, a string, by itself."""
    content = {media_type: {"schema": {"type": "string", **schema}}}
    return {"requestBody": {"required": True, "content": content}}


# ---- errors --------------------------------------------------------------------------------------------


class WorkProgress(ResponseModel):
    """How far something is that takes longer than a request."""

    share: float | None = Field(description="Done, from 0 to 1; null while it waits.", examples=[0.43])
    seconds_left: float | None = Field(description="Null until that can be said.", examples=[95.0])


class Problem(ResponseModel):
    """An error."""

    code: Code = Field(examples=["not_found"])
    message: str = Field(examples=["beach2: no such video in this library; did you mean beach?"])
    field: str = Field(description="Of the request, if one alone is wrong.", examples=["filter.taken"])
    longest: int | None = Field(
        default=None,
        description="Maximum number of characters of the field, if it has more.",
        examples=[2000],
    )
    progress: WorkProgress | None = Field(
        default=None, description="Of what is waited for, with `busy`; null where it is not known."
    )


class ProblemAnswer(ResponseModel):
    """The body of every error response."""

    error: Problem


# ---- queries -------------------------------------------------------------------------------------------


if TYPE_CHECKING:
    _Options = RequestModel
else:
    _Options = create_model("_Options", __base__=RequestModel, **options_for("api"))


class SearchRequest(_Options):
    """A question: a query, and the fields that the table declares (`GET /api/fields`)."""

    query: Query
    filter: Filters = Field(default_factory=Filters)


class CurveRequest(RequestModel):
    """A query, and the video for its curve."""

    query: Query
    video_id: Name = Field(examples=["holiday/beach"])


class Reason(ResponseModel):
    """A reason for a moment."""

    kind: ReasonKind = Field(examples=["seen"])
    score: Score
    words: list[str] = Field(description="Matching words of the query.", examples=[[]])


class Stretch(ResponseModel):
    """A stretch of the same video."""

    start: float = Field(examples=[12.0])
    end: float = Field(examples=[19.5])


class Part(Stretch):
    """One step of a sequence."""

    score: Score


class CopiedStretch(Stretch):
    """A stretch of another video that shows the same."""

    video_id: str = Field(examples=["holiday/beach-small"])


class FoundMoment(ResponseModel):
    """A moment of an answer."""

    rank: int = Field(examples=[1])
    video_id: str = Field(examples=["holiday/beach"])
    start: float = Field(examples=[12.0])
    end: float = Field(examples=[19.5])
    score: Score
    source: str = Field(description="Evidence that found it.", examples=["visual"])
    snippet: str = Field(description="Matching speech or text.", examples=[""])
    snippet_kind: str = Field(description="subtitle, speech, text, sound or empty.", examples=[""])
    steps: list[Part] = Field(description="Steps of a sequence.", examples=[[]])
    band: Band = Field(
        description="How likely it is right: strong (score .5 or more), possible (.2 or more), weak.",
        examples=["strong"],
    )
    why: list[Reason] = Field(description="Reasons, the strongest first.", examples=[[]])
    folded: list[Stretch] = Field(
        description="Overlapping moments folded into it, best first.", examples=[[]]
    )
    copies: list[CopiedStretch] = Field(
        description="Moments of other videos that show the same, folded into it.", examples=[[]]
    )
    by_key_frames: bool = Field(
        description="Whether it was found by key frames alone, since the rest of its video is not in yet.",
        examples=[False],
    )
    duration: float = Field(description="Length of the whole video.", examples=[92.4])
    number: int = Field(description="Of its video; grows with each that comes in.", examples=[17])
    version: str = Field(
        description="Version of the video, for addresses of stills.", examples=["17-0645da6e8f6f"]
    )
    away: bool = Field(description="Whether its file is away.", examples=[False])


class AnswerNote(ResponseModel):
    """One thing to know about an answer."""

    kind: NoteKind = Field(examples=["unknown word"])
    about: str = Field(description="What it is about: a word, what is wanted, …", examples=["umbrela"])
    others: list[str] = Field(description="Excluded words, or words to try.", examples=[["umbrella"]])
    remedy: str = Field(description="A command that helps; empty without one.", examples=[""])
    text: str = Field(description="In plain English.", examples=["no “umbrela” here; umbrella?"])


class Answer(ResponseModel):
    """The answer to a query."""

    query: str = Field(description="The query as it was read.", examples=["a dog runs on a beach"])
    confident: bool = Field(
        description="Whether a strong moment exists. False: nothing is certain.", examples=[True]
    )
    moments: list[FoundMoment]
    notes: list[AnswerNote] = Field(description="On how it was read, and what is not known.", examples=[[]])
    timings: dict[str, float] = Field(
        description="Milliseconds: waiting for a thread, search, total; and each stage of the search that "
        "ran: opening, text, retrieval, proposals, refinement, calibration, cues, names, fusion.",
        examples=[
            {"text": 9.2, "retrieval": 5.1, "refinement": 6.3, "waiting": 0.1, "search": 21.4, "total": 21.8}
        ],
    )


class CurveAnswer(ResponseModel):
    """Score curve of a query in a video."""

    times: list[float] = Field(description="Middle of each part.", examples=[[0.5, 1.5, 2.5]])
    scores: list[float] = Field(description="In [0, 1].", examples=[[0.1, 0.8, 0.3]])


class PictureAnswer(ResponseModel):
    """An uploaded picture, to be used in queries."""

    picture: str = Field(examples=["5d41402abc4b2a76b9719d911017c592"])
    width: int = Field(examples=[640])
    height: int = Field(examples=[480])


class FieldInfo(ResponseModel):
    """A field of a question, beside its query."""

    name: str = Field(examples=["taken"])
    form: str = Field(
        description="Form of its values: texts of filters (lines, paths, seconds, times, place, positions), "
        "integer, score, flag, choice or names.",
        examples=["times"],
    )
    filter: bool = Field(description="Whether it stands in `filter`.", examples=[True])
    help: str = Field(examples=["Date of recording: 2021..2023-05."])
    label: str = Field(description="Title on the page, in English.", examples=["When it was taken"])
    short: str = Field(description="Name before its value, in English.", examples=["taken"])
    unit: str = Field(examples=["s"])
    default: Any = Field(description="The value where none is given.", examples=[None])
    choices: list[str] = Field(description="Its values, if there are few.", examples=[[]])
    example: Any = Field(description="A value.", examples=["2021..2023-05"])


class FieldList(ResponseModel):
    """The fields of a question beside its query, in order."""

    fields: list[FieldInfo]


class Concept(ResponseModel):
    """A concept, learnt from marks."""

    name: str = Field(description="Name; @name refers to it in a text.", examples=["our-logo"])
    title: str = Field(examples=["our logo"])
    right: int = Field(description="Number of right examples.", examples=[4])
    wrong: int = Field(description="Number of wrong examples.", examples=[1])


class TeachRequest(RequestModel):
    """Marks to keep under a name."""

    title: str = Field(min_length=1, max_length=60, examples=["our logo"])
    query: QueryObject = Field(
        examples=[{"terms": [{"text": "a logo"}], "right": [{"video_id": "beach", "start": 1, "end": 4}]}]
    )


class ConceptList(ResponseModel):
    """All concepts."""

    concepts: list[Concept]


# ---- library and videos --------------------------------------------------------------------------------


class ModelInUse(ResponseModel):
    """A trained model in use."""

    name: str = Field(examples=["reel-1a2b3c4d"])
    revision: str = Field(examples=["1a2b3c4d"])


class ExportFormat(ResponseModel):
    """An export format."""

    name: str = Field(examples=["csv"])
    title: str = Field(examples=["Table (CSV)"])
    suffix: str = Field(examples=[".csv"])
    options: list[str] = Field(description="Its options.", examples=[["title", "rate"]])


class LimitsInfo(ResponseModel):
    """Limits of a request."""

    query_characters: int = Field(examples=[2000])
    top_k: int = Field(examples=[500])
    body_bytes: int = Field(examples=[1048576])
    picture_bytes: int = Field(examples=[20971520])
    clip_seconds: float = Field(examples=[3600.0])
    jobs: int = Field(examples=[8])


class LookerInfo(ResponseModel):
    """A model that looks where `check` or a question asks for it, and what it gets of each moment."""

    model: str = Field(examples=["qwen2.5vl"])
    host: str = Field(description="Where it is sent.", examples=["localhost:11434"])
    stills: int = Field(description="Of a moment, at most.", examples=[5])
    longest_side: int = Field(description="Pixels of a still, at most.", examples=[512])
    letters: int = Field(description="Of what is said or written, at most.", examples=[1500])
    question_stills: int = Field(description="For one question, at most.", examples=[48])


class LibraryInfo(ResponseModel):
    """Contents and abilities of the library and its server."""

    name: str = Field(examples=["films"])
    libraries: list[str] = Field(
        description="Names of the libraries that are served as one; the name of the only one.",
        examples=[["films"]],
    )
    version: str = Field(description="Of moviola.", examples=["0.1.0"])
    videos: int = Field(examples=[24])
    seconds: float = Field(description="Of all videos.", examples=[5400.0])
    segments: int = Field(description="Indexed.", examples=[1350])
    renamed: dict[str, str] = Field(
        description="By id: the names, without suffix, of files that are no longer called as their ids.",
        examples=[{"holiday/VID_0042": "beach"}],
    )
    frame_seconds: float = Field(description="Seconds between two encoded frames.", examples=[1.0])
    segment_seconds: float = Field(examples=[4.0])
    encoder: str = Field(description="Visual encoder; empty without one.", examples=["demo"])
    sentence_encoder: str = Field(description="Sentence encoder; empty without one.", examples=["minilm"])
    models: dict[str, ModelInUse | None] = Field(examples=[{"stage1": None, "refiner": None}])
    evidence: list[str] = Field(examples=[["visual", "subtitle"]])
    additions: list[str] = Field(
        description="What plug-ins add to this server, for this client: judging, dres.",
        examples=[["judging"]],
    )
    right: Literal["read", "change"] = Field(description="Of this client.", examples=["change"])
    writable: bool = Field(
        description="Whether this client can keep collections, saved searches and concepts; not in several "
        "libraries.",
        examples=[True],
    )
    can_tag: bool = Field(
        description="Whether this client can give tags and ratings, which are kept in the library of their "
        "video.",
        examples=[True],
    )
    is_open: bool = Field(description="Whether everybody may read, without a token.", examples=[True])
    opens_folders: bool = Field(
        description="Whether folders can be opened, by this client, on the server's machine.", examples=[True]
    )
    can_ingest: bool = Field(description="By this client.", examples=[False])
    ingest_folders: list[str] = Field(examples=[[]])
    looker: LookerInfo | None = Field(
        description="The model that looks, for this client; null: there is none."
    )
    clip_formats: list[str] = Field(examples=[["exact", "key-frames"]])
    export_formats: list[ExportFormat]
    limits: LimitsInfo
    bands: dict[Band, float] = Field(
        description="Least score of each band of moments.",
        examples=[{"strong": 0.5, "possible": 0.2, "weak": 0.0}],
    )


class RecordingParts(ResponseModel):
    """The recording of which a video is a part: a camera has written it into several files."""

    video_ids: list[str] = Field(description="In order.", examples=[["GX010123", "GX020123"]])
    part: int = Field(description="Place of this video, from 1 on.", examples=[2])


class Why(ResponseModel):
    """What an English reason says, to say it in another language."""

    code: str = Field(description="Empty for a reason of another kind.", examples=["text"])
    values: dict[str, str] = Field(description="What the reason names.", examples=[{"suffix": ".mp4"}])

    @classmethod
    def of(cls, words: str) -> Self:
        """What a reason says."""
        return cls(**read_reason(words)._asdict())


class VideoSummary(ResponseModel):
    """A video of the library."""

    paths: list[str] = Field(description="All paths of the file.", examples=[["films/holiday/beach.mp4"]])
    away: bool = Field(description="Whether no path exists now.", examples=[False])
    taken: str = Field(
        description="Best known time of capture; without a zone if unknown.",
        examples=["2024-05-01T18:30:00+02:00"],
    )
    taken_from: Literal["tags", "satellites", "container", "name", "zone", "file"] = Field(
        description="Its source: tags or telemetry, satellites, the container's universal time, the file's "
        "name, one of these in the zone that was given for its camera, or the file's modification time.",
        examples=["tags"],
    )
    taken_zone: Literal["recorded", "utc", "none"] = Field(
        description="Kind of its zone: a recorded offset, universal time, or none (a local clock time).",
        examples=["recorded"],
    )
    latitude: float | None = Field(description="Degrees north; null: unknown.", examples=[52.52])
    longitude: float | None = Field(description="Degrees east.", examples=[13.405])
    camera: str = Field(description="Make and model; empty: unknown.", examples=["Apple iPhone 15"])
    video_id: str = Field(examples=["holiday/beach"])
    library: str = Field(description="Name of its library.", examples=["films"])
    path: str = Field(examples=["films/holiday/beach.mp4"])
    duration: float = Field(examples=[92.4])
    state: State = Field(examples=["ready"])
    error: str = Field(description="Why it was refused, or its damage.", examples=[""])
    why: Why = Field(description="What that says.", examples=[{"code": "", "values": {}}])
    bytes: int = Field(examples=[18_345_233])
    modified: str = Field(description="Last change of the file.", examples=["2024-05-01T18:30:00+00:00"])
    shots: int = Field(description="Number of shots; 0 if unknown.", examples=[12])
    width: int = Field(examples=[1920])
    height: int = Field(examples=[1080])
    video_codec: str = Field(examples=["h264"])
    recording: RecordingParts | None = Field(description="null: a recording of its own.")
    number: int = Field(description="Grows with each video that comes in.", examples=[17])
    version: str = Field(
        description="For addresses of stills, which change with it.", examples=["17-0645da6e8f6f"]
    )


class VideoList(ResponseModel):
    """A page of the videos."""

    total: int = Field(description="Number that pass the filter.", examples=[24])
    videos: list[VideoSummary]


class Shot(ResponseModel):
    """A shot, and how it begins."""

    start: float = Field(examples=[0.0])
    end: float = Field(examples=[4.2])
    kind: str = Field(description="start, cut, dissolve, fade or wipe.", examples=["cut"])


class ShotList(ResponseModel):
    """The shots of a video in order; empty if they were never searched for."""

    shots: list[Shot]


class SpokenCue(ResponseModel):
    """A cue of speech or text."""

    start: float = Field(examples=[1.0])
    end: float = Field(examples=[3.0])
    text: str = Field(examples=["The umbrella is gone."])
    kind: CueKind = Field(examples=["subtitle"])
    language: str = Field(description="A tag of BCP 47; empty: unknown.", examples=["en"])
    form: str = Field(description="Empty, forced, hearing impaired, or a track's name.", examples=[""])


class CueList(ResponseModel):
    """Cues by time."""

    cues: list[SpokenCue]


# ---- jobs ----------------------------------------------------------------------------------------------


class Refusal(ResponseModel):
    """A refused file, and the reason."""

    video: str = Field(examples=["broken"])
    reason: str = Field(
        examples=["broken.mp4: a text file, not a video, whatever its name says (.mp4); skipped"]
    )
    why: Why


class Job(ResponseModel):
    """An indexing job."""

    job: str = Field(examples=["9f86d081884c7d65"])
    state: Literal["queued", "running", "done", "failed", "cancelled"] = Field(examples=["running"])
    library: str = Field(description="Name of the library.", examples=["films"])
    sources: list[str] = Field(examples=[["films/holiday"]])
    done: int = Field(description="Finished videos of this step.", examples=[3])
    total: int = Field(examples=[24])
    share: float = Field(description="Done of all steps, from 0 to 1; never falls.", examples=[0.125])
    seconds_left: float | None = Field(
        description="To the end of all steps; null until that can be said.", examples=[95.0]
    )
    step: str = Field(description="key frames, pictures, text or speech.", examples=["pictures"])
    video: str = Field(description="In flight.", examples=["holiday/beach"])
    seconds: float = Field(description="Finished seconds of the current video.", examples=[31.0])
    refused: list[Refusal]
    added: int = Field(description="Videos added or updated.", examples=[3])
    copies: int = Field(description="Files with the content of a video that is in already.", examples=[0])
    started: str | None = Field(examples=["2024-05-01T18:30:00+00:00"])
    finished: str | None = Field(examples=[None])
    error: str = Field(examples=[""])


class JobList(ResponseModel):
    """All jobs since the server started, newest first."""

    jobs: list[Job]
