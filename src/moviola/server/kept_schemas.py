"""What requests and answers about what people keep consist of."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from moviola.library.kept.entries import Entry, Kind, Name

__all__ = ["KeepRequest", "KeptList"]


class KeptList(BaseModel):
    """Entries by kind and name."""

    entries: list[Entry]


class KeepRequest(BaseModel):
    """Something to keep."""

    model_config = ConfigDict(extra="forbid")

    kind: Kind = Field(examples=["search"])
    name: Name = Field(examples=["beach days"])
    value: dict[str, Any] = Field(
        description="Of a search: text, then, gap, without, filter, by. Of a collection: moments. Of a mark: "
        "video_id, start, end, tags, rating.",
        examples=[{"text": "a dog runs on a beach", "filter": {"taken": "2023"}}],
    )
    version: int | None = Field(
        default=None,
        ge=0,
        le=2**53,
        description="That the change is made to; 0: there must be none; null: whatever is there.",
        examples=[None],
    )
