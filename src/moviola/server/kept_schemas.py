"""Request and response types of saved searches, collections, tags and ratings."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from moviola.library.kept.values import Entry, Kind, Name

__all__ = ["Alerted", "KeepRequest", "KeptList"]


class KeptList(BaseModel):
    """Entries by kind and name."""

    entries: list[Entry]


class Alerted(BaseModel):
    """Up to which video saved searches were checked for what is new."""

    alerted: dict[str, int] = Field(
        description="The `version` of a video, by the name of a search.", examples=[{"beach days": 17}]
    )


class KeepRequest(BaseModel):
    """An entry to store."""

    model_config = ConfigDict(extra="forbid")

    kind: Kind = Field(examples=["search"])
    name: Name = Field(examples=["beach days"])
    value: dict[str, Any] = Field(
        description="Search: text, then, gap, without, filter, by. Collection: moments. Mark: "
        "video_id, start, end, tags, rating.",
        examples=[{"text": "a dog runs on a beach", "filter": {"taken": "2023"}}],
    )
    version: int | None = Field(
        default=None,
        ge=0,
        le=2**53,
        description="Version that the change is based on; 0: a new entry; null: any.",
        examples=[None],
    )
