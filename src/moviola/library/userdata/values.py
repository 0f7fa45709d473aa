"""Values that people keep in a library, checked: saved searches, collections of moments, tags and ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, model_validator

from moviola.errors import InvalidValue
from moviola.types import Span, plain_seconds, require_known

__all__ = [
    "KINDS", "Collection", "Entry", "KeptMoment", "Kind", "Mark", "Name", "SavedSearch", "checked_kind",
    "complaint", "entry_of", "spans_of",
]  # fmt: skip

Kind = Literal["search", "collection", "mark"]

_LONGEST = 500
_LATEST = 1e7

Name = Annotated[str, Field(min_length=1, max_length=4_096, examples=["holiday/beach"])]
Seconds = Annotated[float, Field(ge=0, le=_LATEST, allow_inf_nan=False, examples=[12.5])]
Tag = Annotated[str, Field(min_length=1, max_length=100, examples=["favourite"])]


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The value, checked; :class:`InvalidValue` names a wrong or missing field."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise InvalidValue(complaint(error)) from error


class SavedSearch(RootModel[dict[str, Any]]):
    """A saved question as JSON (:mod:`moviola.search.asked`); its pictures are kept beside it."""

    model_config = ConfigDict(frozen=True)

    @property
    def pictures(self) -> set[str]:
        """Names of its pictures."""
        return {str(name) for name in _under("picture", self.root)}


def _under(key: str, value: Any) -> Iterator[Any]:
    """The values under a key, anywhere in some JSON."""
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        value = [*value.values()]
    if isinstance(value, list):
        for one in value:
            yield from _under(key, one)


def _require_span(start: float, end: float) -> None:
    if end <= start:
        times = f"{plain_seconds(start)}-{plain_seconds(end)}"
        raise ValueError(f"{times}: the end must come after the start")


class KeptMoment(_Value):
    """A moment of a collection, with a note."""

    video_id: Name
    start: Seconds
    end: Seconds
    title: str = Field(default="", max_length=_LONGEST, examples=["the dog"])
    note: str = Field(default="", max_length=5_000, examples=["take the second half"])

    @model_validator(mode="after")
    def _is_a_span(self) -> Self:
        _require_span(self.start, self.end)
        return self


class Collection(_Value):
    """An ordered list of moments."""

    moments: list[KeptMoment] = Field(default_factory=list, max_length=100_000)


class Mark(_Value):
    """Tags and a rating of a video, or of one of its moments.

    Attributes:
        start, end: of the moment; None for the whole video.
        tags: as entered.
        rating: 1 to 5; 0 for none.
    """

    video_id: Name
    start: Seconds | None = None
    end: Seconds | None = None
    tags: list[Tag] = Field(default_factory=list, max_length=1_000)
    rating: int = Field(default=0, ge=0, le=5, examples=[4])

    @model_validator(mode="after")
    def _is_a_span(self) -> Mark:
        if (self.start is None) != (self.end is None):
            raise ValueError("give both start and end of a moment, or neither for the whole video")
        if self.start is not None and self.end is not None:
            _require_span(self.start, self.end)
        return self

    @property
    def name(self) -> str:
        """Name of its entry: the video's id, for a moment with its times after ``@``."""
        if self.start is None or self.end is None:
            return self.video_id
        return f"{self.video_id}@{plain_seconds(self.start)}-{plain_seconds(self.end)}"


def spans_of(value: SavedSearch | Collection | Mark) -> set[tuple[str, Span]]:
    """The moments of a value: ids of their videos, and their times."""
    if isinstance(value, Collection):
        return {(moment.video_id, Span(moment.start, moment.end)) for moment in value.moments}
    if isinstance(value, Mark) and value.start is not None and value.end is not None:
        return {(value.video_id, Span(value.start, value.end))}
    return set()


KINDS: Mapping[Kind, type[BaseModel]] = {"search": SavedSearch, "collection": Collection, "mark": Mark}
"""The type of the value of each kind."""


class Entry(_Value):
    """An entry.

    Attributes:
        kind, name: its kind, and its name, unique within the kind.
        version: from 1.
        changed: time of the last change, UTC, ISO 8601.
        value: one of :data:`KINDS`.
    """

    kind: Kind
    name: Name
    version: int = Field(default=1, ge=1, examples=[1])
    changed: str = Field(default="", examples=["2024-05-01T18:30:00+00:00"])
    value: SavedSearch | Collection | Mark

    def at(self, version: int) -> Self:
        """The entry as a version that is made now."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return self.model_copy(update={"version": version, "changed": now})

    @model_validator(mode="before")
    @classmethod
    def _of_its_kind(cls, values: Any) -> Any:
        """Validate the value as its kind, so that errors name the kind's fields."""
        if isinstance(values, Mapping) and values.get("kind") in KINDS:
            value = values.get("value")
            if not isinstance(value, BaseModel):
                try:
                    values = {**values, "value": KINDS[values["kind"]].model_validate(value)}
                except ValidationError as error:
                    raise ValueError(complaint(error)) from error
        return values

    @model_validator(mode="after")
    def _bears_its_name(self) -> Entry:
        if not isinstance(self.value, KINDS[self.kind]):
            raise ValueError(f"a {self.kind} holds no {type(self.value).__name__}")
        if isinstance(self.value, Mark) and self.name != self.value.name:
            raise ValueError(f"name {self.name!r}: the name of this mark is {self.value.name!r}")
        return self


def complaint(error: ValidationError) -> str:
    """The first thing that is wrong with a value, after its place."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place + ': ' if place else ''}{first['msg'].removeprefix('Value error, ')}"


def entry_of(kind: Kind, name: str, value: Mapping[str, Any] | BaseModel) -> Entry:
    """An entry that was never stored; :class:`InvalidValue` for an unknown kind, or a value of another."""
    checked_kind(kind)
    plain = value.model_dump() if isinstance(value, BaseModel) else value
    try:
        return Entry.model_validate({"kind": kind, "name": name, "value": plain})
    except ValidationError as error:
        raise InvalidValue(f"{kind} {name!r}: {complaint(error)}") from error


def checked_kind(kind: Kind) -> Kind:
    """The kind; :class:`InvalidValue` where it is none of :data:`KINDS`."""
    require_known("kind", kind, KINDS)
    return kind
