"""What requests and answers about submissions to an evaluation consist of."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from moviola.server.schemas import Name, Seconds

__all__ = ["Submission", "SubmissionOutcome"]


class Submission(BaseModel):
    """A moment to submit."""

    model_config = ConfigDict(extra="forbid")

    video_id: Name = Field(examples=["v3c/00123"])
    start: Seconds
    end: Seconds | None = Field(default=None, description="By default the start: one picture.")


class SubmissionOutcome(BaseModel):
    """The verdict on a submission."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    verdict: Literal["correct", "wrong", "undecided", "pending"] = Field(
        description="pending: no judge has seen it yet."
    )
    description: str = Field(description="In the words of the evaluation.", examples=["Submission correct!"])
    evaluation: str = Field(examples=["VBS 2026"])
