"""The JSON of a question as pydantic models: what HTTP and agents check it by, and their schemas.

:mod:`moviola.search.asked` defines what the JSON means; the fields beside the query are those of the table
(:mod:`moviola.search.fields`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Tag,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic import Field as Described

from moviola.search.fields import Field, Part
from moviola.search.filters import FILTERS
from moviola.search.options import OPTIONS
from moviola.search.queries import GAP
from moviola.types import BANDS

__all__ = [
    "Filters", "Name", "Query", "QueryObject", "QueryText", "RequestModel", "Seconds", "options_for",
    "place_of",
]  # fmt: skip

_LONGEST_TEXT = 2_000
_LONGEST_NAME, _MOST_TERMS, _MOST_STEPS, _MOST_EXCLUDED, _MOST_MARKS, _MOST_NAMES = (
    4_096,
    16,
    8,
    16,
    500,
    10_000,
)
_MOST = 1_000_000
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")  # but tab, line feed and carriage return


def is_blank(value: object) -> bool:
    """Whether a value stands for none: null, or a text without letters."""
    return value is None or (isinstance(value, str) and not value.strip())


class RequestModel(BaseModel):
    """A part of a request; fields that it does not have are refused.

    What clients send for a field that they leave out, null or a text without letters, counts as left out, but
    for null where it is a value of its own.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _given(cls, sent: Any) -> Any:
        if not isinstance(sent, Mapping):
            return sent
        return {name: value for name, value in sent.items() if not cls._is_left_out(name, value)}

    @classmethod
    def _is_left_out(cls, name: object, value: object) -> bool:
        field = cls.model_fields.get(str(name))
        if not is_blank(value) or (field is not None and field.is_required()):
            return False
        return value is not None or field is None or type(None) not in get_args(field.annotation)


def _plain_text(text: str) -> str:
    if found := _CONTROL.search(text):
        raise ValueError(f"control character U+{ord(found[0]):04X} at {found.start()}; remove it")
    return text


_Plain = AfterValidator(_plain_text)
QueryText = Annotated[
    str, Described(min_length=1, max_length=_LONGEST_TEXT, examples=["a dog runs on a beach"]), _Plain
]
Name = Annotated[str, Described(min_length=1, max_length=_LONGEST_NAME), _Plain]
Seconds = Annotated[float, Described(ge=0, le=1e7, allow_inf_nan=False, examples=[12.5])]
Weight = Annotated[float, Described(gt=0, allow_inf_nan=False)]


# -- the query -----------------------------------------------------------------------------------------------


class TextTerm(RequestModel):
    """Words for what is seen or said."""

    text: QueryText
    weight: Weight = 1.0
    plain: bool = Described(default=False, description="True: @name in it is no concept.")


class MomentTerm(RequestModel):
    """An example: the frame at a time of a video of the library."""

    video_id: Name = Described(examples=["holiday/beach"])
    time: Seconds = Described(examples=[12.5])
    weight: Weight = 1.0


class PictureTerm(RequestModel):
    """An example: a picture."""

    picture: Name = Described(
        description="Its name, of one that was uploaded or that a saved search has; for agents also the path "
        "of a file in a folder of the library.",
        examples=["5d41402abc4b2a76b9719d911017c592"],
    )
    weight: Weight = 1.0


def _kind_of_term(term: Any) -> str | None:
    """Discriminator of terms, so that a validation error names the right field."""
    values = term if isinstance(term, Mapping) else vars(term) if isinstance(term, BaseModel) else {}
    kinds = [key for key in ("text", "picture", "video_id") if key in values]
    return next((key for key in kinds if not is_blank(values[key])), next(iter(kinds), None))


Term = Annotated[
    Annotated[TextTerm, Tag("text")]
    | Annotated[PictureTerm, Tag("picture")]
    | Annotated[MomentTerm, Tag("video_id")],
    Discriminator(_kind_of_term, "term", "a term has text, or video_id and time, or picture"),
]


def _text_or_object(value: Any) -> str | None:
    return "text" if isinstance(value, str) else "object" if isinstance(value, Mapping | BaseModel) else None


_TEXT_OR_OBJECT = Discriminator(_text_or_object, "query", "a query is a text, or an object with terms")


class Marked(RequestModel):
    """A marked moment."""

    video_id: Name = Described(examples=["holiday/beach"])
    start: Seconds = Described(examples=[12.0])
    end: Seconds = Described(examples=[19.5])


class Excluded(RequestModel):
    """Weighted sum of words, moments and pictures, with marks on its answer; these alone are a query, too."""

    terms: list[Term] = Described(
        default_factory=list, max_length=_MOST_TERMS, description="Summed by their weights."
    )
    right: list[Marked] = Described(
        default_factory=list, max_length=_MOST_MARKS, description="Moments marked as right."
    )
    wrong: list[Marked] = Described(
        default_factory=list, max_length=_MOST_MARKS, description="Moments marked as wrong."
    )
    concept: str = Described(
        default="", max_length=60, description="Name of a concept, without @.", examples=["our-logo"]
    )


AnyExcluded = Annotated[
    Annotated[QueryText, Tag("text")] | Annotated[Excluded, Tag("object")], _TEXT_OR_OBJECT
]


class QueryPart(Excluded):
    """A part of a query, with exclusions of its own. Its marks are on all of it."""

    first: QueryObject | None = Described(
        default=None, description="In place of terms: a first part with exclusions or marks of its own."
    )
    without: list[AnyExcluded] = Described(
        default_factory=list, max_length=_MOST_EXCLUDED, description="What must not be seen or said."
    )


class Step(QueryPart):
    """A later step in the same video."""

    gap: Annotated[float, Described(ge=0, allow_inf_nan=False)] | None = Described(
        default=GAP, description="Maximum seconds since the end of the previous step; null for no limit."
    )


class QueryObject(QueryPart):
    """A query: terms, later steps, exclusions, and marks on an answer.

    Without terms, the marks and the concept are the query.
    """

    then: list[Step] = Described(default_factory=list, max_length=_MOST_STEPS)


Query = Annotated[
    Annotated[QueryText, Tag("text")] | Annotated[QueryObject, Tag("object")],
    _TEXT_OR_OBJECT,
    Described(
        description="The query: words, or an object with terms, steps, exclusions and marks.",
        examples=[
            "a dog runs on a beach",
            {
                "terms": [{"text": "a dog runs"}, {"video_id": "holiday/beach", "time": 12.5, "weight": 0.5}],
                "then": [{"terms": [{"text": "it jumps into the water"}], "gap": 30}],
                "without": ["snow"],
            },
        ],
    ),
]


# -- the other fields ----------------------------------------------------------------------------------------


def _described(field: Field, part: Part, kind: Any, **limits: Any) -> tuple[Any, Any]:
    default = field.default_of(part)
    examples = None if field.example is None else [field.example]
    about = Described(default=default, description=field.help, examples=examples, **limits)
    return kind if default is not None else kind | None, about


# In place of a union, in whose errors the place of a value has the names of its kinds, too.
_Score = Annotated[
    float,
    BeforeValidator(lambda given: BANDS.get(given, given) if isinstance(given, str) else given),
    Described(ge=0, le=1, allow_inf_nan=False),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"enum": [*BANDS]}]}),
]

_KINDS: dict[str, Callable[[Field, Part], tuple[Any, Any]]] = {
    "integer": lambda field, part: _described(field, part, int, ge=1, le=field.most.get(part, _MOST)),
    "score": lambda field, part: _described(field, part, _Score),
    "flag": lambda field, part: _described(field, part, bool),
    "choice": lambda field, part: _described(field, part, Literal[field.choices]),
    "names": lambda field, part: _described(
        field, part, list[Name], min_length=int(part == "agents"), max_length=_MOST_NAMES
    ),
}


def options_for(part: Part) -> dict[str, tuple[Any, Any]]:
    """The options of a part of the product as fields of a pydantic model."""
    return {
        name: _KINDS[field.form.name](field, part) for name, field in OPTIONS.items() if part in field.parts
    }


_FilterText = Annotated[str, Described(max_length=_LONGEST_TEXT), _Plain]

if TYPE_CHECKING:

    class Filters(RequestModel):
        """Filters, each a text."""

else:
    Filters = create_model(
        "Filters", __base__=RequestModel, __doc__="Filters, each a text.",
        **{
            name: (
                _FilterText | None,
                Described(default=None, description=field.help, examples=[field.example]),
            )
            for name, field in FILTERS.items()
        },
    )  # fmt: skip


def place_of(place: Sequence[object]) -> str:
    """Where a value stands in some JSON, by pydantic's place of it: with dots, items numbered from 1."""
    kept: list[str] = []
    for before, part in zip([None, *place], place, strict=False):
        if isinstance(part, int):
            kept.append(str(part + 1))
        elif part not in ("object", before) and not (part == "text" and before == "query"):
            kept.append(str(part))
    return ".".join(kept)
