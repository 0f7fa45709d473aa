"""What is said over HTTP when people judge: a task, a rater's batches and answers, progress."""

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
    """A level of relevance, and what it means to a rater."""

    level: Level
    meaning: str = Field(examples=[GUIDELINE[3]])


class JudgedForm(BaseModel):
    """A file that judgements can be written to."""

    name: str = Field(examples=["tvr_ranking"])
    title: str = Field(examples=[EXPORTS["tvr_ranking"].title])
    suffix: str = Field(examples=[".json"])


class JudgingInfo(BaseModel):
    """What is judged, and how."""

    queries: Count
    moments: Count = Field(description="That may be judged, with second batches that may not be due.")
    raters: Literal[1, 2, 4] = Field(
        description="Who judge every moment; 2 are joined by 2 where they differ."
    )
    names: list[str] = Field(description="Of those who signed in.", examples=[["Anna", "Ben"]])
    levels: list[LevelMeaning] = Field(description="From 4 to 0.")
    export_formats: list[JudgedForm]


class Rater(BaseModel):
    """Who judges."""

    model_config = ConfigDict(extra="forbid")
    rater: RaterName


class SignedIn(BaseModel):
    """The name to go on with: as it was first written."""

    rater: str = Field(examples=["Anna"])


class GivenAnswer(Rater):
    """A rater's answer on one moment."""

    pair_id: Name = Field(examples=["1:beach:12.000-19.500"])
    level: Level | None = Field(description="null passes the moment over.")


class TakenBack(Rater):
    """A rater's answer that is taken back."""

    pair_id: Name = Field(examples=["1:beach:12.000-19.500"])


class MomentToJudge(BaseModel):
    """A moment as its rater sees it: nothing of its rank, its systems, or the others' levels."""

    model_config = ConfigDict(from_attributes=True)
    pair_id: str = Field(examples=["1:beach:12.000-19.500"])
    video_id: str = Field(examples=["beach"])
    start: float = Field(examples=[12.0])
    end: float = Field(examples=[19.5])
    level: Level | None = Field(description="This rater's.")
    passed: bool = Field(description="This rater passed it over.", examples=[False])


class BatchToJudge(BaseModel):
    """Up to 20 moments of one query, in this rater's own order."""

    model_config = ConfigDict(from_attributes=True)
    query_id: str = Field(examples=["1"])
    query: str = Field(examples=["a dog runs on a beach"])
    moments: list[MomentToJudge]


class NextBatch(BaseModel):
    """What to judge now."""

    batch: BatchToJudge | None = Field(description="null: nothing is left for this rater.")
    open: Count = Field(description="Moments on which there is no agreement yet, whoever may judge them.")


class RaterRow(BaseModel):
    """How far a rater is."""

    model_config = ConfigDict(from_attributes=True)
    name: str = Field(examples=["Anna"])
    judged: Count
    passed: Count
    distance: float | None = Field(
        description="Mean distance from the median of all, in levels; null where nobody shares a moment.",
        examples=[0.25],
    )
    kappa: float | None = Field(description="Mean of Cohen's with each other rater.", examples=[0.61])


class QueryRow(BaseModel):
    """Where the moments of a query are."""

    model_config = ConfigDict(from_attributes=True)
    query_id: str = Field(examples=["1"])
    query: str = Field(examples=["a dog runs on a beach"])
    moments: Count
    agreed: Count
    discarded: Count
    set_aside: Count
    open: Count
    answers: Count = Field(description="Agreed at level 1 or above.")


class ProgressAnswer(BaseModel):
    """How far a task is, and how well its raters agree."""

    queries: list[QueryRow]
    raters: list[RaterRow]
    kappa: float | None = Field(
        description="Cohen's, of the first two ratings of each moment; null where it is not defined.",
        examples=[0.49],
    )
    weighted_kappa: float | None = Field(description="Weighted by squared difference.", examples=[0.7])
    levels: list[int] = Field(description="Agreed moments by level, 0 to 4.", examples=[[12, 5, 8, 10, 5]])
    low_high: list[list[int]] = Field(
        description="Moments by the lowest and the highest of their ratings, from two on.",
        examples=[[[5, 2, 0, 0, 0], [0, 4, 3, 0, 0], [0, 0, 6, 2, 1], [0, 0, 0, 3, 2], [0, 0, 0, 0, 4]]],
    )
