"""The table of a question's fields.

:class:`moviola.search.SearchOptions` and :class:`moviola.search.Filter` declare their fields with
:func:`declared`. From what is said there options of the command line, parameters of HTTP and of agents, their
schemas, and the page's fields are made: a new filter is one declaration (``docs/howto/extend.md``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from moviola.errors import InvalidValue, MoviolaError
from moviola.search.forms import Form
from moviola.types import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from moviola.library import Facts

__all__ = ["PARTS", "Field", "Part", "declared", "fields_of"]

Part = Literal["command line", "api", "agents", "page"]
"""A part of the product that asks questions."""

PARTS: frozenset[Part] = frozenset(get_args(Part))

_WHERE = "Where to look"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a question.

    Attributes:
        name: in Python and in JSON.
        form: its values.
        help: a sentence, for all who ask; what is between backticks is an example.
        label, short: on the page its title, and the name before its value on a chip; in English, which the
            page's languages translate.
        unit: of its values; empty without one.
        panel: group in the help of the command line.
        flags: names on the command line; empty: ``--name``.
        example: a value as JSON has it.
        default: the value that is meant where none is given.
        defaults, most: other defaults, and largest values, by the part of the product.
        choices: the values of a choice.
        parts: parts of the product that show it.
        of, kept, version: for a filter of videos: what it asks of each, made of
            :class:`moviola.library.disk.columns.Facts`; the kind of column that the library keeps of that
            (:data:`moviola.library.disk.kinds.KINDS`); and a number to raise when ``of`` is changed.
        passes: which videos pass ``(value, column)``, (V,) bool, by the column as it is read.
        moment: for a filter of moments: whether one passes ``(value, span)``, without its place in the video.
    """

    name: str = ""
    form: Form
    help: str
    label: str = ""
    short: str = ""
    unit: str = ""
    panel: str = _WHERE
    flags: tuple[str, ...] = ()
    example: Any = None
    default: Any = None
    defaults: Mapping[Part, Any] = dataclasses.field(default_factory=dict)
    most: Mapping[Part, int] = dataclasses.field(default_factory=dict)
    choices: tuple[str, ...] = ()
    parts: frozenset[Part] = PARTS
    of: Callable[[Facts], Any] = lambda _: ()
    kept: Literal["texts", "numbers", "integers", "tags", "places"] = "texts"
    version: int = 1
    passes: Callable[[Any, Any], NDArray[np.bool_]] | None = None
    moment: Callable[[Any, Span], bool] | None = None

    def value(self, given: Any) -> Any:
        """The value of what JSON or a command line has.

        Raises:
            InvalidValue: it means nothing; its ``place`` is the name.
        """
        try:
            return self.checked(self.form.read(given, self.name.replace("_", " ")))
        except MoviolaError as error:
            error.place = self.name
            raise

    def checked(self, value: Any) -> Any:
        """The value as it is kept; :class:`InvalidValue` for one that cannot be."""
        if value is None and self.default is None:
            return None
        if self.choices and value not in self.choices:
            raise InvalidValue(f"{self.name}={value!r:.200}: choose {', '.join(self.choices)}")
        return self.form.checked(self.name, value)

    def default_of(self, part: Part) -> Any:
        """What a part of the product means where no value is given."""
        return self.defaults.get(part, self.default)


def declared(form: Form, help: str, **about: Any) -> Any:
    """A dataclass's field that is in the table; ``about`` are attributes of :class:`Field`."""
    about.setdefault("default", form.nothing)
    return dataclasses.field(
        default=about["default"], metadata={"field": Field(form=form, help=help, **about)}
    )


def fields_of(owner: type) -> dict[str, Field]:
    """The fields that a dataclass declares, by name, in order."""
    return {
        one.name: replace(one.metadata["field"], name=one.name)
        for one in dataclasses.fields(owner)
        if "field" in one.metadata
    }
