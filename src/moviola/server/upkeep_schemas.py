"""What requests and answers about looking after a library consist of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["DuplicateList", "Duplicates", "Removed", "RootInfo", "RootList", "UploadState"]


class _Answer(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class RootInfo(_Answer):
    """A folder of the library."""

    path: str = Field(examples=["videos/holiday"])
    videos: int = Field(description="Number of videos in it.", examples=[24])
    away: str = Field(description="Why it is not there now; empty where it is.", examples=[""])
    watched: bool = Field(description="Whether the server follows what is put there.", examples=[False])
    patterns: list[str] = Field(description="What is left out of it.", examples=[["*/proxies/*"]])


class RootList(_Answer):
    """The folders of the library."""

    roots: list[RootInfo]


class Duplicates(_Answer):
    """The same bytes at several paths."""

    video_ids: list[str] = Field(examples=[["holiday/beach"]])
    paths: list[str] = Field(examples=[["films/holiday/beach.mp4", "films/copy of beach.mp4"]])
    bytes: int = Field(description="Size of each file.", examples=[18_345_233])
    wasted: int = Field(description="Bytes that all but one of them take.", examples=[18_345_233])


class DuplicateList(_Answer):
    """Those first that take most room."""

    duplicates: list[Duplicates]


class Removed(_Answer):
    """A video that was taken out of the library, or is in again; its file is as it was."""

    video_id: str = Field(examples=["holiday/beach"])


class UploadState(_Answer):
    """A video that is being sent."""

    upload: str = Field(examples=["3f" * 16])
    name: str = Field(examples=["beach.mp4"])
    bytes: int = Field(description="Of the whole.", examples=[18_345_233])
    offset: int = Field(description="Bytes that are here.", examples=[9_000_000])
    path: str = Field(
        description="Where it lies, to be brought in; empty until it is whole.",
        examples=["/srv/videos/beach.mp4"],
    )
    expires: str = Field(
        description="When it is forgotten, unless more of it is sent.", examples=["2024-05-03T18:30:00+00:00"]
    )
