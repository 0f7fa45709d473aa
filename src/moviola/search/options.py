"""Search options, the same for Python, the command line, HTTP, agents and the page."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypedDict, Unpack, get_args

from moviola.errors import InvalidValue
from moviola.files.names import nearest
from moviola.search.fields import PARTS, Field, declared, fields_of
from moviola.search.filters import FILTERS, Filter
from moviola.search.forms import CHOICE, FLAG, INTEGER, NAMES, SCORE
from moviola.types import CUE_KINDS, POSSIBLE, Band, CueKind, require_kind

__all__ = ["FIELDS", "KINDS", "OPTIONS", "By", "OptionChanges", "SearchOptions"]

By = Literal["all", "visual", "subtitles", "speech", "said", "text", "sound", "chapters", "named"]
"""Kinds of evidence."""

KINDS: dict[By, tuple[CueKind, ...]] = {
    "all": CUE_KINDS,
    "visual": (),
    "subtitles": ("subtitle",),
    "speech": ("speech",),
    "said": ("subtitle", "speech"),
    "text": ("text",),
    "sound": (),
    "chapters": ("chapter",),
    "named": (),
}
"""Kinds of cues that belong to each kind of evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Search options.

    Raises:
        InvalidValue: a number outside its range, a value of another type, unknown evidence, or one text as
            ``videos``.
    """

    filter: Filter = Filter()  # noqa: RUF009 - immutable
    """Which videos to search, and which of their moments count. Where few moments pass, up to 12,800
    segments are retrieved to find ``top_k``."""
    top_k: int = declared(
        INTEGER, "Number of moments.", flags=("--top-k", "-k"), panel="", default=10,
        defaults={"api": 24, "agents": 8}, most={"agents": 20}, parts=PARTS - {"page"},
    )  # fmt: skip
    """At least 1."""
    per_video: int | None = declared(
        INTEGER, "Number of moments per video.", panel="", example=3, parts=PARTS - {"page"},
    )  # fmt: skip
    """At least 1; None for no limit."""
    videos: Collection[str] | None = declared(
        NAMES, "Search only this video; repeatable.", flags=("--video",), panel="",
        label="Only this video", example=["holiday/beach"],
    )  # fmt: skip
    """Ids of the videos to search; None for all."""
    min_score: float | Band = declared(
        SCORE, "Least score, from 0 to 1: the probability of being right; or strong (0.5), possible (0.2).",
        panel="", label="Score at least", example="possible", default=0.0,
    )  # fmt: skip
    """In [0, 1]; a band becomes the least score that it has (:data:`moviola.types.BANDS`)."""
    by: By = declared(
        CHOICE, "Evidence: all; visual (pictures); subtitles; speech (recognised); said (both of these); "
        "text (in pictures); sound (what is heard); chapters (by their titles); named (whole videos, by "
        "names and what their files say of them).",
        panel="", label="Found by", default="all", choices=get_args(By),
    )  # fmt: skip
    """Evidence to use."""
    refine: bool = declared(
        FLAG, "Refine coarse proposals.", flags=("--refine/--no-refine",), panel="", default=True,
        label="Refined ends (slower)",
    )  # fmt: skip
    """False returns the coarse proposals of stage 2 (visual evidence)."""
    weak: bool = declared(
        FLAG, "Weak moments too.", panel="", default=True,
        parts=PARTS - {"command line", "page"},
    )  # fmt: skip
    """False omits weak moments, see :data:`moviola.types.BANDS`."""

    check: int | None = declared(
        INTEGER, "A model that is named for it looks at the best N moments, and they are ranked again by its "
        "verdicts: stills and words of them are sent to it.",
        panel="", example=10, most={"api": 50, "agents": 20}, parts=PARTS - {"page"},
    )  # fmt: skip
    """At least 1; None: nothing is sent anywhere. See :mod:`moviola.search.checking`."""

    def __post_init__(self) -> None:
        require_kind("filter", self.filter, Filter, "a Filter; `Filter.parse` reads texts")
        for name, field in OPTIONS.items():
            object.__setattr__(self, name, field.checked(getattr(self, name)))

    def with_changes(self, **changes: Unpack[OptionChanges]) -> SearchOptions:
        """The options with other values.

        Raises:
            InvalidValue: as above, and for a name that is none of theirs.
        """
        names = {"filter", *OPTIONS}
        for unknown in changes.keys() - names:
            raise InvalidValue(f"{unknown!r:.100}: no such option; {_meant(unknown, names)}")
        return replace(self, **changes)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """From values by name as JSON and a command line have them, the filter's among them; None is nothing.

        Raises:
            InvalidValue: no such field, or a value that means nothing. Its ``place`` is the name.
        """
        if unknown := given.keys() - FIELDS.keys():
            raise InvalidValue(f"{min(unknown)!r:.100}: no such field; there are {', '.join(FIELDS)}")
        values = {name: FIELDS[name].value(one) for name, one in given.items() if one is not None}
        conditions = {name: values.pop(name) for name in FILTERS.keys() & values.keys()}
        return cls(**values, filter=Filter(**conditions))

    def changed(self) -> dict[str, Any]:
        """The options that ask for something, by name, as JSON has them; without the filter."""
        given = {name: getattr(self, name) for name in OPTIONS}
        return {
            name: OPTIONS[name].form.written(value)
            for name, value in given.items()
            if value != OPTIONS[name].default
        }

    @property
    def least_score(self) -> float:
        """The score from which on moments are in the answer, in [0, 1]."""
        least = float(self.min_score)
        return least if self.weak else max(least, POSSIBLE)


class OptionChanges(TypedDict, total=False):
    """Single fields of :class:`SearchOptions`, by name."""

    filter: Filter
    top_k: int
    per_video: int | None
    videos: Collection[str] | None
    min_score: float | Band
    by: By
    refine: bool
    weak: bool
    check: int | None


def _meant(name: str, names: Collection[str]) -> str:
    if name in FILTERS:
        return f"filter videos by filter=Filter.parse({name}=…)"
    near = nearest(name, names)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(names))}"


OPTIONS: dict[str, Field] = fields_of(SearchOptions)
"""The options but for the filter, by name."""
FIELDS: dict[str, Field] = FILTERS | OPTIONS
"""The table: all fields of a question beside its query, by name."""
