"""Response types of facets."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from moviola.search.options import By

__all__ = [
    "CameraCount",
    "CompletionList",
    "DayCount",
    "EvidenceCount",
    "Examples",
    "Facets",
    "FolderOf",
    "LengthCount",
    "NamedVideo",
    "Place",
    "TagCount",
]


class _Answer(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class FolderOf(_Answer):
    """A folder of videos."""

    path: str = Field(description="For the filter `folder`.", examples=["/srv/videos/holiday"])
    parent: str = Field(description="The folder of the list above it; empty at the top.", examples=[""])
    videos: int = Field(description="Number in it and below.", examples=[24])


class DayCount(_Answer):
    """A day on which videos were taken."""

    day: str = Field(description="Local, for the filter `taken`.", examples=["2024-05-01"])
    videos: int = Field(examples=[3])


class LengthCount(_Answer):
    """Videos of some lengths."""

    low: int = Field(description="Seconds, included.", examples=[60])
    high: int | None = Field(description="Seconds, excluded; null: no limit.", examples=[120])
    videos: int = Field(examples=[12])


class CameraCount(_Answer):
    """A camera."""

    camera: str = Field(
        description="Make and model; after `=` it is the filter `camera`.", examples=["Apple iPhone 15"]
    )
    videos: int = Field(examples=[8])


class Place(_Answer):
    """A place where videos were taken, to some hundred metres."""

    latitude: float = Field(description="Degrees north.", examples=[52.52])
    longitude: float = Field(description="Degrees east.", examples=[13.405])
    videos: int = Field(examples=[2])


class TagCount(_Answer):
    """A tag."""

    tag: str = Field(description="For the filter `tag`.", examples=["favourite"])
    videos: int = Field(description="That bear it, as a whole or on a moment.", examples=[5])


class EvidenceCount(_Answer):
    """A kind of evidence."""

    by: By = Field(examples=["subtitles"])
    videos: int = Field(examples=[17])


class Facets(_Answer):
    """How the searchable videos of the library are spread over what filters choose by."""

    videos: int = Field(description="All of them.", examples=[24])
    folders: list[FolderOf] = Field(description="By path.")
    days: list[DayCount] = Field(description="In order.")
    lengths: list[LengthCount] = Field(description="In order, all classes.")
    cameras: list[CameraCount] = Field(description="Most videos first.")
    places: list[Place] = Field(description="Most videos first.")
    tags: list[TagCount] = Field(description="Most videos first.")
    evidence: list[EvidenceCount] = Field(description="What the library has.")


class NamedVideo(_Answer):
    """A video by name."""

    video_id: str = Field(examples=["holiday/beach"])
    duration: float = Field(description="Seconds.", examples=[92.4])


class CompletionList(_Answer):
    """Videos and tags in whose name a word begins so."""

    videos: list[NamedVideo] = Field(description="Best first.")
    tags: list[TagCount]


class Examples(BaseModel):
    """Queries to try."""

    texts: list[str] = Field(examples=[["a cat", "coffee"]])
