"""Place of a video's file, and when, where and with what it was taken."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Whereabouts"]


class Whereabouts(BaseModel):
    """Place of a video's file, and when, where and with what it was taken."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    paths: list[str] = Field(description="All paths of the file.", examples=[["films/holiday/beach.mp4"]])
    away: bool = Field(description="Whether no path exists now.", examples=[False])
    taken: str = Field(
        description="Best known time of capture; without a zone if unknown.",
        examples=["2024-05-01T18:30:00+02:00"],
    )
    taken_from: Literal["tags", "container", "name", "file"] = Field(
        description="Its source: tags, the container's universal time, the file's name, or the file's "
        "modification time.",
        examples=["tags"],
    )
    taken_zone: Literal["recorded", "utc", "none"] = Field(
        description="What is known of its zone: the offset, universal time, or only a local clock time.",
        examples=["recorded"],
    )
    latitude: float | None = Field(description="Degrees north; null: unknown.", examples=[52.52])
    longitude: float | None = Field(description="Degrees east.", examples=[13.405])
    camera: str = Field(description="Make and model; empty: unknown.", examples=["Apple iPhone 15"])
