"""Where a video lies, and when, where and with what it was taken."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Whereabouts"]


class Whereabouts(BaseModel):
    """Where a video lies, and when, where and with what it was taken."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    paths: list[str] = Field(
        description="All at which its bytes lie.", examples=[["films/holiday/beach.mp4"]]
    )
    away: bool = Field(description="Whether its file is at none of them now.", examples=[False])
    taken: str = Field(
        description="When it was taken, as well as that is known; without a zone where none is.",
        examples=["2024-05-01T18:30:00+02:00"],
    )
    taken_from: Literal["tags", "container", "name", "file"] = Field(
        description="What says so: tags, the container's universal time, the file's name, or the time of its "
        "last change.",
        examples=["tags"],
    )
    taken_zone: Literal["recorded", "utc", "none"] = Field(
        description="Whether the zone is known, only universal time, or only what a clock showed.",
        examples=["recorded"],
    )
    latitude: float | None = Field(description="Degrees north; null: not known.", examples=[52.52])
    longitude: float | None = Field(description="Degrees east.", examples=[13.405])
    camera: str = Field(description="Make and model; empty: not known.", examples=["Apple iPhone 15"])
