"""A question: a query with its options, and its one form in JSON.

Saved searches, the last answer, links of the page, HTTP and agents have this JSON::

    {"query": {"terms": [{"text": "a dog runs"}, {"video_id": "beach", "time": 12.5, "weight": 0.5}],
               "then": [{"terms": [{"text": "it jumps"}], "gap": 30}], "without": ["snow"]},
     "top_k": 5, "filter": {"taken": "2023"}}

A query is a text, or an object: ``terms`` are summed by weight; then come later steps of ``then``, then what
is excluded by ``without``; marks (``right``, ``wrong``) and a ``concept`` are on all of that, and are the
query where there are no terms. A step may have exclusions and marks of its own, an exclusion marks. Where the
first part of a query has them, it stands in ``first`` instead of ``terms``. In a text ``@name`` is a concept
where the library has one of that name, else a word, and so with ``"plain": true`` beside it.

What :func:`query_to_json` writes :func:`query_from_json` reads as an equal query, whatever the query.

Examples:
    >>> from moviola.search.asked import Asked
    >>> row = {"query": {"terms": [{"text": "a dog"}], "without": ["snow"]}, "filter": {"taken": "2023"}}
    >>> question = Asked.from_json(row)
    >>> print(question.query)
    a dog; not snow
    >>> question.to_json() == row
    True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Self

from moviola.errors import InvalidValue, MoviolaError
from moviola.search.filters import FILTERS, Filter
from moviola.search.options import OPTIONS, SearchOptions
from moviola.search.queries import (
    GAP,
    KeptPicture,
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    SearchQuery,
    Steps,
    Text,
    WeightedSum,
    Without,
    as_query,
    terms_of,
)
from moviola.types import require_kind

__all__ = ["Asked", "picture_name", "picture_of", "query_from_json", "query_to_json", "renamed"]

Picture = LikePicture | KeptPicture
Row = dict[str, Any]

_MARKS, _BASE, _MOMENT = ("right", "wrong", "concept"), {"terms", "first"}, ("video_id", "start", "end")
_PART = {*_BASE, "without", *_MARKS}
_TERMS: dict[str, set[str]] = {
    "text": {"text", "plain", "weight"}, "picture": {"picture", "weight"},
    "video_id": {"video_id", "time", "weight"},
}  # fmt: skip


def picture_name(picture: Picture) -> str:
    """What JSON has of a picture: the name of one that is kept, the path of another one's file."""
    # Absolute, since the next command may run in another folder.
    return picture.picture if isinstance(picture, KeptPicture) else str(picture.path.absolute())


def picture_of(name: str) -> Picture:
    """The picture of such a name."""
    return KeptPicture(name) if KeptPicture.is_name(name) else LikePicture(Path(name))


@dataclass(frozen=True, slots=True)
class Asked:
    """A question.

    Attributes:
        query: what is looked for; a ``str`` becomes its query.
        options: how.

    Raises:
        InvalidValue: neither a text nor a query, or other options.
    """

    query: SearchQuery
    options: SearchOptions = SearchOptions()  # noqa: RUF009 - immutable

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", as_query(self.query))
        require_kind("options", self.options, SearchOptions, "SearchOptions")

    @property
    def unchecked(self) -> Self:
        """The same without a model that looks: what is kept is asked again by no look of anybody's."""
        return replace(self, options=self.options.with_changes(check=None))

    def to_json(self, picture: Callable[[Picture], str] = picture_name) -> Row:
        """Its JSON, without what is not asked for; ``picture`` gives the name of a picture."""
        row = {"query": query_to_json(self.query, picture), **self.options.changed()}
        texts = self.options.filter.texts()
        return {**row, "filter": texts} if texts else row

    @classmethod
    def from_json(cls, row: Any, picture: Callable[[str], Picture] = picture_of) -> Self:
        """The question of some JSON; ``picture`` gives the picture of a name, by default one that is kept, or
        that of a path.

        Raises:
            InvalidValue: another form, or a part that means nothing; ``place`` of the error names it. So does
                that of any error of ``picture``.
        """
        given = _object(row, {"query", "filter", *OPTIONS})
        with _in("query"):
            query = query_from_json(_needed(given, "query"), picture)
        with _in("filter"):
            texts = given.get("filter") or {}
            filter = Filter.parse(**_object(texts, FILTERS, "filter {} does not exist; choose {}"))
        options = SearchOptions.parse({name: given[name] for name in OPTIONS if name in given})
        return cls(query, replace(options, filter=filter))


# -- writing -------------------------------------------------------------------------------------------------


def query_to_json(query: SearchQuery | str, picture: Callable[[Picture], str] = picture_name) -> str | Row:
    """The JSON of a query: a text, or an object; ``picture`` gives the name of a picture."""
    return _Writer(picture).short(as_query(query))


class _Writer:
    def __init__(self, picture: Callable[[Picture], str]) -> None:
        self._picture = picture

    def short(self, query: SearchQuery) -> str | Row:
        """A text where that says it all."""
        if isinstance(query, Marked) and query.written and not (query.right or query.wrong):
            return query.written
        return query.text if isinstance(query, Text) and _reads_as_text(query) else self.part(query)

    def part(self, query: SearchQuery) -> Row:
        """Any query as an object."""
        match query:
            case Marked(inner, right, wrong, concept, written):
                lists = [
                    [dict(zip(_MOMENT, astuple(one), strict=True)) for one in own] for own in (right, wrong)
                ]
                named = "" if written else concept
                marks = {name: said for name, said in zip(_MARKS, (*lists, named), strict=True) if said}
                if written:
                    # A library decides which names in a text are concepts, so that the text is kept.
                    return {"terms": [{"text": written}], **marks}
                if inner is None:
                    return marks
                row = self.part(inner)
                # Marks beside those that are the query itself would be taken for more of these.
                return {**(row if row.keys() & _BASE else {"first": row}), **marks}
            case Without(inner, excluded):
                return {**self._open(inner, {"without"}), "without": [self.short(one) for one in excluded]}
            case Steps(steps, gaps):
                later = zip(steps[1:], gaps, strict=True)
                then = [{**self.part(step), **_written_gap(gap)} for step, gap in later]
                return {**self._open(steps[0], {"without", "then"}), "then": then}
            case _:
                return {"terms": [self.term(*one) for one in terms_of(query)]}

    def _open(self, query: SearchQuery, after: set[str]) -> Row:
        """A query as the first part of one that goes on: in its place where it has what comes after that."""
        row = self.part(query)
        closed = row.keys() & after or (row.keys() & _BASE and row.keys() & set(_MARKS))
        return {"first": row} if closed else row

    def term(self, term: SearchQuery, weight: float) -> Row:
        row: Row
        match term:
            case Text(text):
                row = {"text": text} if _reads_as_text(term) else {"text": text, "plain": True}
            case LikeMoment(video_id, time):
                row = {"video_id": video_id, "time": float(time)}
            case LikePicture() | KeptPicture():
                row = {"picture": self._picture(term)}
            case _:
                raise AssertionError(f"{type(term).__name__} is no kind of term")
        return row if weight == 1 else {**row, "weight": float(weight)}


def _reads_as_text(text: Text) -> bool:
    """Whether the words of a text name no concept."""
    try:
        return as_query(text.text) == text
    except InvalidValue:
        return False


def _written_gap(gap: float) -> Row:
    return {} if gap == GAP else {"gap": None if gap == math.inf else float(gap)}


# -- reading -------------------------------------------------------------------------------------------------


def query_from_json(row: Any, picture: Callable[[str], Picture] = picture_of) -> SearchQuery:
    """The query of some JSON; ``picture`` gives the picture of a name.

    Raises:
        InvalidValue: another form, or an invalid part; ``place`` of the error names it. So does that of any
            error of ``picture``.
    """
    try:
        return _Reader(picture).query(row)
    except RecursionError as error:
        raise InvalidValue("query: nested too deep; make it simpler") from error


class _Reader:
    def __init__(self, picture: Callable[[str], Picture]) -> None:
        self._picture = picture

    def query(self, row: Any) -> SearchQuery:
        return as_query(row) if isinstance(row, str) else self.part(_object(row, {*_PART, "then"}))

    def part(self, row: Row) -> SearchQuery:
        marks = self.marks(row)
        query: SearchQuery | None = None
        if row.get("first") is not None:
            if row.get("terms"):
                raise InvalidValue("query: give terms or first, not both")
            with _in("first"):
                query = self.query(row["first"])
        elif row.get("terms"):
            query = self.sum(_list(row, "terms"))
        base = query or marks
        if base is None:
            raise InvalidValue("empty query: give terms, marked moments or a concept")
        if later := _list(row, "then"):
            base = self.steps(base, later)
        if excluded := _list(row, "without"):
            base = Without.of(base, [self.excluded(one, number) for number, one in enumerate(excluded, 1)])
        return (
            base if marks is None or query is None else Marked(base, marks.right, marks.wrong, marks.concept)
        )

    def marks(self, row: Row) -> Marked | None:
        right, wrong = (
            tuple(self.moment(one, f"{name}.{number}") for number, one in enumerate(_list(row, name), 1))
            for name in ("right", "wrong")
        )
        concept = row.get("concept") or ""
        return Marked(None, right, wrong, concept) if right or wrong or concept else None

    def moment(self, row: Any, place: str) -> MarkedMoment:
        with _in(place):
            given = _object(row, _MOMENT)
            return MarkedMoment(*(_needed(given, name) for name in _MOMENT))

    def steps(self, first: SearchQuery, later: Sequence[Any]) -> Steps:
        steps, gaps = [first], []
        for number, row in enumerate(later, 1):
            with _in(f"then.{number}"):
                given = _object(row, {*_PART, "gap"})
                steps.append(self.part(given))
                gap = given.get("gap", GAP)
                gaps.append(math.inf if gap is None else gap)
        return Steps(tuple(steps), tuple(gaps))  # type: ignore[arg-type]  # which checks them

    def excluded(self, row: Any, number: int) -> SearchQuery:
        with _in(f"without.{number}"):
            return as_query(row) if isinstance(row, str) else self.part(_object(row, {"terms", *_MARKS}))

    def sum(self, rows: Sequence[Any]) -> SearchQuery:
        """A sum of terms; a single text may name a concept."""
        terms = []
        for number, row in enumerate(rows, 1):
            with _in(f"terms.{number}"):
                terms.append((self.term(row, alone=len(rows) == 1), row.get("weight", 1.0)))
        return terms[0][0] if len(terms) == 1 else WeightedSum.of(terms)

    def term(self, row: Any, *, alone: bool) -> SearchQuery:
        kinds = [kind for kind in _TERMS if isinstance(row, Mapping) and kind in row]
        if len(kinds) != 1:
            raise InvalidValue(f"term {row!r:.200}: give text, or video_id and time, or picture")
        kind, given = kinds[0], _object(row, _TERMS[kinds[0]])
        if kind == "video_id":
            return LikeMoment(given["video_id"], _needed(given, "time"))
        if kind == "picture":
            require_kind("picture", given["picture"], str, "its name")
            with _in("picture"):
                return self._picture(given["picture"])
        if given.get("plain"):
            return Text(given["text"])
        require_kind("text", given["text"], str, "a text")
        query = as_query(given["text"])
        if not alone and isinstance(query, Marked):
            raise InvalidValue(
                f"{given['text']!r}: a concept is no term among others; put words beside it into its own text"
            )
        return query


def renamed(row: Any, names: Mapping[str, str]) -> Any:
    """The JSON of a question with other names of its pictures."""
    if isinstance(row, Mapping):
        return {
            key: names.get(value, value) if key == "picture" else renamed(value, names)
            for key, value in row.items()
        }
    return [renamed(one, names) for one in row] if isinstance(row, list) else row


def _object(row: Any, known: Any, unknown: str = "{}: no such field; there are {}") -> Row:
    require_kind("query", row, Mapping, "a text, or an object")
    for name in row:
        if name not in known:
            listed = ", ".join(sorted(known) if isinstance(known, set) else known)
            raise InvalidValue(unknown.format(f"{name!r:.100}", listed))
    return dict(row)


def _list(row: Row, name: str) -> Sequence[Any]:
    values = row.get(name) or ()
    require_kind(name, values, (list, tuple), "a list")
    return values


def _needed(row: Row, name: str) -> Any:
    if name not in row:
        raise InvalidValue(f"{name}: is missing; give it")
    return row[name]


@contextmanager
def _in(place: str) -> Iterator[None]:
    """Errors inside are of a place of the question."""
    try:
        yield
    except MoviolaError as error:
        error.place = f"{place}.{error.place}".removesuffix(".")
        raise
