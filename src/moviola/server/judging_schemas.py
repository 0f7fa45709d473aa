"""Request and response types of judging: task, batches, answers, progress."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from moviola.datasets.building.candidate_pairs import GUIDELINE
from moviola.datasets.building.consensus import LEVELS
from moviola.judging import EXPORTS
from moviola.server.schemas import Name

__all__ = [
    "BatchToJudge", "GivenAnswer", "JudgedForm", "JudgingInfo", "LevelMeaning", "MomentToJudge", "NextBatch",
    "ProgressAnswer", "QueryRow", "Rater", "RaterRow", "SignedIn", "TakenBack",
]  # fmt: skip

Level = Annotated[int, Field(ge=0, lt=LEVELS, examples=[3])]
Count = Annotated[int, Field(ge=0, examples=[20])]
RaterName = Annotated[Name, Field(max_length=200, examples=["Anna"])]


class LevelMeaning(BaseModel):
    """A level of relevance, with its meaning for raters."""

    level: Level
    meaning: str = Field(examples=[GUIDELINE[3]])


class JudgedForm(BaseModel):
    """A file format for judgements."""

    name: str = Field(examples=["tvr_ranking"])
    title: str = Field(examples=[EXPORTS["tvr_ranking"].title])
    suffix: str = Field(examples=[".json"])


class JudgingInfo(BaseModel):
    """A judging task and its guideline."""

    queries: Count
    moments: Count = Field(description="Moments to judge, including second batches that may not be due.")
    raters: Literal[1, 2, 4] = Field(description="Raters per moment; if 2 differ, 2 more judge it.")
    names: list[str] = Field(description="Names of the raters signed in.", examples=[["Anna", "Ben"]])
    levels: list[LevelMeaning] = Field(description="Levels from 4 to 0.")
    export_formats: list[JudgedForm]


class Rater(BaseModel):
    """A rater signing in."""

    model_config = ConfigDict(extra="forbid")
    rater: RaterName


class SignedIn(BaseModel):
    """The rater's name as it was first written."""

    rater: str = Field(examples=["Anna"])


class GivenAnswer(Rater):
    """A rater's answer on one moment."""

    pair_id: Name = Field(examples=["1:beach:12.000-19.500"])
    level: Level | None = Field(description="null skips the moment.")


class TakenBack(Rater):
    """A withdrawn answer."""

    pair_id: Name = Field(examples=["1:beach:12.000-19.500"])


class MomentToJudge(BaseModel):
    """A moment to judge, without rank, systems or other raters' levels."""

    model_config = ConfigDict(from_attributes=True)
    pair_id: str = Field(examples=["1:beach:12.000-19.500"])
    video_id: str = Field(examples=["beach"])
    start: float = Field(examples=[12.0])
    end: float = Field(examples=[19.5])
    level: Level | None = Field(description="This rater's.")
    passed: bool = Field(description="Whether this rater skipped it.", examples=[False])


class BatchToJudge(BaseModel):
    """Up to 20 moments of one query, in this rater's own order."""

    model_config = ConfigDict(from_attributes=True)
    query_id: str = Field(examples=["1"])
    query: str = Field(examples=["a dog runs on a beach"])
    moments: list[MomentToJudge]


class NextBatch(BaseModel):
    """The next batch."""

    batch: BatchToJudge | None = Field(description="null: nothing left for this rater.")
    open: Count = Field(description="Moments without agreement so far, for any rater.")


class RaterRow(BaseModel):
    """Progress of a rater."""

    model_config = ConfigDict(from_attributes=True)
    name: str = Field(examples=["Anna"])
    judged: Count
    passed: Count
    distance: float | None = Field(
        description="Mean distance from the median of all, in levels; null without shared moments.",
        examples=[0.25],
    )
    kappa: float | None = Field(description="Mean Cohen's kappa with the other raters.", examples=[0.61])


class QueryRow(BaseModel):
    """State of a query's moments."""

    model_config = ConfigDict(from_attributes=True)
    query_id: str = Field(examples=["1"])
    query: str = Field(examples=["a dog runs on a beach"])
    moments: Count
    agreed: Count
    discarded: Count
    set_aside: Count
    open: Count
    answers: Count = Field(description="Moments with an agreed level of 1 or above.")


class ProgressAnswer(BaseModel):
    """Progress of a task, and the agreement of its raters."""

    queries: list[QueryRow]
    raters: list[RaterRow]
    kappa: float | None = Field(
        description="Cohen's kappa of the first two ratings of each moment; null if undefined.",
        examples=[0.49],
    )
    weighted_kappa: float | None = Field(description="Kappa with squared weights.", examples=[0.7])
    levels: list[int] = Field(description="Agreed moments by level, 0 to 4.", examples=[[12, 5, 8, 10, 5]])
    low_high: list[list[int]] = Field(
        description="Moments by lowest and highest rating, from two ratings on.",
        examples=[[[5, 2, 0, 0, 0], [0, 4, 3, 0, 0], [0, 0, 6, 2, 1], [0, 0, 0, 3, 2], [0, 0, 0, 0, 4]]],
    )
