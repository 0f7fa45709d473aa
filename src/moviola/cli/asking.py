"""Options that ask a question: those of its query, and those that the table of fields declares."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import BadParameter, Context, Option

from moviola.cli.options import refuse_given
from moviola.errors import InvalidValue
from moviola.search.fields import Field
from moviola.search.filters import absolute_folders
from moviola.search.options import FIELDS

if TYPE_CHECKING:
    from moviola.search import SearchQuery

_TYPES: dict[str, Any] = {"integer": int, "flag": bool, "names": list[str]}
"""Types of options by the form of their field; others are texts."""


def field_options(without: Collection[str] = ()) -> Sequence[Parameter]:
    """The fields of a question as options, but for some."""
    shown = [field for field in FIELDS.values() if "command line" in field.parts]
    return [_option(field) for field in shown if field.name not in without]


def _option(field: Field) -> Parameter:
    form, default = field.form.name, field.default_of("command line")
    kind: Any = Literal[field.choices] if field.choices else _TYPES.get(form, str)
    if form not in _TYPES and not field.choices:
        default = None
    limits: dict[str, Any] = {"min": 1} if form == "integer" else {}
    option: Any = Option(
        *(field.flags or (f"--{field.name.replace('_', '-')}",)), help=field.help,
        metavar=field.form.metavar or None, rich_help_panel=field.panel or None,
        callback=_from_here if form == "paths" else None, **limits,
    )  # fmt: skip
    kind = kind if default is not None else kind | None
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def _from_here(folder: str | None) -> str | None:
    """A folder as it is meant here: answers and searches are kept, and asked again elsewhere."""
    return None if folder is None else absolute_folders(folder)


def query_options(
    like: Annotated[
        list[str] | None,
        Option(metavar="VIDEO@TIME", help="More like this moment of the library; repeatable."),
    ] = None,
    picture: Annotated[
        list[Path] | None, Option(metavar="FILE", help="More like a picture; repeatable.")
    ] = None,
    weight: Annotated[
        float,
        Option(min=0, help="Weight of the text beside --like and --picture, which weigh 1 each; above 0."),
    ] = 1.0,
    then: Annotated[
        list[str] | None, Option(help="What comes later in the same video; repeatable, in order.")
    ] = None,
    gap: Annotated[
        float,
        Option(min=0, help="Largest gap in seconds between the end of a step and the next start; inf: any."),
    ] = 60.0,
    without: Annotated[list[str] | None, Option(help="What must not be seen or said; repeatable.")] = None,
) -> None:
    """Parts of a query beside its text."""


def query_of(
    context: Context,
    text: str | None,
    *,
    like: Sequence[str] = (),
    picture: Sequence[Path] = (),
    weight: float,
    then: Sequence[str] = (),
    gap: float,
    without: Sequence[str] = (),
) -> SearchQuery:
    """The query of a command's text and :func:`query_options`."""
    from moviola.search.queries import LikeMoment, LikePicture, Marked, WeightedSum, as_query

    alike: list[SearchQuery] = [*map(LikeMoment.parse, like), *map(LikePicture, picture)]
    words = [] if text is None else [(as_query(text), weight)]
    if not words and not alike:
        more = "; --then and --without only add to it" if then or without else ""
        raise BadParameter(f"give a text, --like or --picture{more}")
    if not words or not alike:
        refuse_given(
            context, ["weight"], "weighs a text beside --like or --picture; give both, or leave it out"
        )
    if alike and words and isinstance(words[0][0], Marked):
        raise InvalidValue(f"{text!r}: a concept goes with words only; search for pictures separately")
    query = WeightedSum.of([*words, *((one, 1.0) for one in alike)]) if alike else words[0][0]
    for later in then:
        query = query.then(later, gap=gap)
    return query.without(*without) if without else query
