"""Queries: texts, moments and pictures, summed, put in order, excluded.

>>> dog = Text("a dog runs")
>>> str(dog + 0.5 * LikeMoment("beach", 12))
'a dog runs + 0.5 like beach@12'
>>> str(dog.then("it jumps into the water", gap=30).without("snow"))
'a dog runs, within 30 s then it jumps into the water; not snow'

Three kinds of values, one inside the other:

- *one part*: a :class:`Text`, a :class:`LikeMoment`, a :class:`LikePicture`, a :class:`KeptPicture`, or a
  :class:`WeightedSum` of these (``+`` and ``*``);
- :class:`Steps` of such parts (``then``);
- either of them :class:`Without` other parts (``without``).

Marks on an answer make a :class:`Marked` query of it. Saved in a library they are a concept; ``@name`` in a
text refers to it: ``"@our-logo on a shelf"``, beside words, and with ``then`` and ``without`` like any part.

Queries are immutable, and equal if they have the same parts: the order of terms and exclusions does not
matter.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from moviola.errors import InvalidValue
from moviola.search.concept_names import named_concepts
from moviola.search.times import is_number, parse_seconds
from moviola.types import Moment, Span, plain_seconds, require_kind, several

__all__ = [
    "GAP", "KeptPicture", "LikeMoment", "LikePicture", "Marked", "MarkedMoment", "Plain", "SearchQuery",
    "Simple", "Steps", "Term", "Text", "WeightedSum", "Without", "as_query", "parts_of", "terms_of",
]  # fmt: skip

_DIGEST = re.compile("[0-9a-f]{32}")

GAP = 60.0
"""Default for the most seconds between the end of one step of a sequence and the start of the next."""


LONGEST_TEXT = 100_000
"""Characters of a text at most: encoders read some hundred words, and work grows with the others."""


class SearchQuery:
    """A query of any kind. Wherever one is expected, a ``str`` stands for its :class:`Text`."""

    def __add__(self, other: SearchQuery | str) -> WeightedSum:
        """Both in one moment, summed by weight."""
        return WeightedSum.of((*terms_of(self), *terms_of(other)))

    def __radd__(self, other: str) -> WeightedSum:
        return WeightedSum.of((*terms_of(other), *terms_of(self)))

    def __mul__(self, weight: float) -> WeightedSum:
        """The same with another weight in a sum; alone, a weight changes nothing."""
        _require_weight(weight, self)
        return WeightedSum.of((term, weight * own) for term, own in terms_of(self))

    __rmul__ = __mul__

    def then(self, later: SearchQuery | str, *, gap: float = GAP) -> Steps:
        """This, then that in the same video, at most ``gap`` seconds later; ``math.inf`` is no limit.

        ``a.then(b).then(c)`` equals ``a.then(b.then(c))``.
        """
        own, others = _steps(as_query(self)), _steps(as_query(later))
        return Steps((*own.steps, *others.steps), (*own.gaps, gap, *others.gaps))

    def without(self, *excluded: SearchQuery | str) -> Without:
        """This, without any of that seen or said."""
        if isinstance(self, Without):
            return Without.of(self.query, (*self.excluded, *excluded))
        return Without.of(self, excluded)


@dataclass(frozen=True, slots=True)
class Text(SearchQuery):
    """Words for what is seen or said, in Unicode's normal form C, at most 100,000 characters.

    Raises:
        InvalidValue: no words, too many, or no text.
    """

    text: str

    def __post_init__(self) -> None:
        require_kind("query", self.text, str, "a text")
        object.__setattr__(self, "text", unicodedata.normalize("NFC", self.text))
        if not self.text.strip():
            raise InvalidValue("the text of a query is empty; say what to look for")
        if len(self.text) > LONGEST_TEXT:
            raise InvalidValue(
                f"query {self.text[:40]!r}…: {len(self.text):,} characters; give at most {LONGEST_TEXT:,}"
            )
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(f"query {self.text!r:.200}: not Unicode text; write it in UTF-8") from error

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class LikeMoment(SearchQuery):
    """Similar to the frame at a time of a video of the library, which is itself among the answers.

    Attributes:
        time: seconds from the start of the video, >= 0.

    Raises:
        InvalidValue: the time is negative or no finite number, or the id no text.
    """

    video_id: str
    time: float

    def __post_init__(self) -> None:
        require_kind("video_id", self.video_id, str, "the id of a video")
        if not (is_number(self.time, 0) and self.time < math.inf):
            raise InvalidValue(
                f"like {self.video_id}@{self.time!r:.200}: give seconds from the start, 0 or more"
            )

    @classmethod
    def parse(cls, text: str) -> LikeMoment:
        """``VIDEO@TIME``, the time in seconds or as ``m:ss`` or ``h:mm:ss``.

        Raises:
            InvalidValue: another form.
        """
        require_kind("moment", text, str, "a text, VIDEO@TIME")
        video_id, at, time = text.rpartition("@")
        if not (at and video_id):
            raise InvalidValue(
                f"{text!r}: write VIDEO@TIME, for instance beach@12.5 or beach@1:02:03; a picture file is "
                "given as picture"
            )
        return cls(video_id, parse_seconds(time, f"{text!r}: the time"))

    def __str__(self) -> str:
        return f"like {self.video_id}@{plain_seconds(self.time)}"


@dataclass(frozen=True, slots=True)
class LikePicture(SearchQuery):
    """Similar to the picture in a file; of a video, to its first frame."""

    path: Path

    def __post_init__(self) -> None:
        require_kind("picture", self.path, (str, PathLike), "the path of a file")
        object.__setattr__(self, "path", Path(self.path))

    def __str__(self) -> str:
        return f"like {self.path}"


@dataclass(frozen=True, slots=True)
class KeptPicture(SearchQuery):
    """Similar to a picture that the library keeps with a saved search (:mod:`moviola.library.userdata`).

    Attributes:
        picture: its name there, the first 32 hexadecimal digits of the SHA-256 of its bytes.

    Raises:
        InvalidValue: another form.
    """

    picture: str

    def __post_init__(self) -> None:
        require_kind("picture", self.picture, str, "the name of a picture")
        if not self.is_name(self.picture):
            raise InvalidValue(f"picture {self.picture!r:.200}: give 32 hexadecimal digits")

    @staticmethod
    def is_name(text: str) -> bool:
        """Whether a text is such a name, and not the path of a file."""
        return bool(_DIGEST.fullmatch(text))

    def __str__(self) -> str:
        return f"like picture {self.picture}"


Term = Text | LikeMoment | LikePicture | KeptPicture


@dataclass(frozen=True, slots=True)
class WeightedSum(SearchQuery):
    """Moments that match all terms, each by its weight, whatever its kind (:mod:`moviola.search.evidence`).

    Only the ratios of weights matter.

    Attributes:
        terms: with weights above 0, without duplicates, in a canonical order.
    """

    terms: tuple[tuple[Term, float], ...]

    @classmethod
    def of(cls, terms: Iterable[tuple[Any, float]]) -> WeightedSum:
        """From terms in any order; weights of equal terms are added.

        Raises:
            InvalidValue: no term, a weight that is not above 0, or weights whose sum no ``float`` can hold.
        """
        total: dict[Term, float] = {}
        for pair in several("terms", terms):
            if not (isinstance(pair, Sequence) and len(pair) == 2):
                raise InvalidValue(f"term {pair!r:.200}: give a pair, (query, weight)")
            term, weight = as_query(pair[0]), pair[1]
            if not isinstance(term, Term):
                raise InvalidValue(f"{str(term)!r}: a term of a sum must be a text, a moment or a picture")
            _require_weight(weight, term)
            total[term] = total.get(term, 0.0) + weight
        if not total:
            raise InvalidValue("a sum of nothing: give a text, a moment of a video, or a picture")
        if math.isinf(sum(total.values())):
            weights = ", ".join(f"{weight:g} {term}" for term, weight in total.items())
            raise InvalidValue(f"weights {weights:.200}: their sum is too large; only their ratios matter")
        return cls(tuple(sorted(total.items(), key=lambda item: _order(item[0]))))

    def __str__(self) -> str:
        return " + ".join(str(term) if weight == 1 else f"{weight:g} {term}" for term, weight in self.terms)


@dataclass(frozen=True, slots=True, order=True)
class MarkedMoment:
    """A marked moment: seconds of a video of the library, ``0 <= start < end``.

    Raises:
        InvalidValue: other bounds, or an id that is no text.
    """

    video_id: str
    start: float
    end: float

    def __post_init__(self) -> None:
        require_kind("video_id", self.video_id, str, "the id of a video")
        Span(self.start, self.end)

    @classmethod
    def parse(cls, text: str) -> MarkedMoment:
        """``VIDEO@START-END``, times in seconds or as ``m:ss`` or ``h:mm:ss``.

        Raises:
            InvalidValue: another form.
        """
        require_kind("moment", text, str, "a text, VIDEO@START-END")
        video_id, at, times = text.rpartition("@")
        start, dash, end = times.partition("-")
        if not (at and video_id and dash):
            raise InvalidValue(f"{text!r}: write VIDEO@START-END, for instance beach@12.5-20")
        what = f"{text!r}: the time"
        return cls(video_id, parse_seconds(start, what), parse_seconds(end, what))

    def __str__(self) -> str:
        return f"{self.video_id}@{plain_seconds(self.start)}-{plain_seconds(self.end)}"


@dataclass(frozen=True, slots=True)
class Marked(SearchQuery):
    """A query with moments marked as right and wrong answers.

    Attributes:
        query: the query; None if there are only marks. The marks of a marked query are added to those given,
            which replace older ones of the same moments.
        right, wrong: marked moments, without duplicates, in a canonical order; :class:`MarkedMoment` or
            moments of an answer.
        concept: name of a concept of the library, whose marks count as well; empty for none.
        written: the text in which the concept was named; empty where it was given by itself. Where the
            library has no such concept, the text is searched for.

    Raises:
        InvalidValue: neither marks nor a concept, two concepts, or a moment that is marked both right and
            wrong.
    """

    query: SearchQuery | None
    right: tuple[MarkedMoment, ...] = ()
    wrong: tuple[MarkedMoment, ...] = ()
    concept: str = ""
    written: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        require_kind("concept", self.concept, str, "the name of a concept")
        right, wrong = (_marked_moments(name, getattr(self, name)) for name in ("right", "wrong"))
        if both := right & wrong:
            raise InvalidValue(f"{min(both)}: marked both right and wrong; choose one")
        query, concept = None if self.query is None else as_query(self.query), self.concept.removeprefix("@")
        if isinstance(query, Marked):
            if concept and query.concept not in ("", concept):
                raise InvalidValue(f"@{query.concept}, @{concept}: name one concept at a time")
            again = right | wrong
            right, wrong = right | set(query.right) - again, wrong | set(query.wrong) - again
            if not concept:
                concept = query.concept
                object.__setattr__(self, "written", query.written)
            query = query.query
        if not (right or wrong or concept):
            raise InvalidValue("no marks: give moments that are right or wrong")
        values = (query, tuple(sorted(right)), tuple(sorted(wrong)), concept)
        for name, value in zip(("query", "right", "wrong", "concept"), values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, query: SearchQuery | str, right: Sequence[Moment], wrong: Sequence[Moment] = ()) -> Marked:
        """A query with marks on moments of its answer."""
        return cls(as_query(query), tuple(right), tuple(wrong))  # type: ignore[arg-type]

    def __str__(self) -> str:
        text = " ".join(filter(None, (f"@{self.concept}" if self.concept else "", str(self.query or ""))))
        marks = [f"{len(own)} {name}" for name, own in (("right", self.right), ("wrong", self.wrong)) if own]
        return f"{text} ({', '.join(marks)})".strip() if marks else text


Plain = Term | WeightedSum
"""One part without marks."""
Simple = Plain | Marked
"""One part; of a :class:`Marked` query the query must be one, too, or None."""


@dataclass(frozen=True, slots=True)
class Steps(SearchQuery):
    """Parts that follow each other in one video.

    Attributes:
        steps: two or more; each may have exclusions of its own.
        gaps: for each step but the first, most seconds between the end of the one before and its start.

    Raises:
        InvalidValue: a gap is negative, there are not as many gaps as later steps, or a step is a sequence.
    """

    steps: tuple[Simple | Without, ...]
    gaps: tuple[float, ...]

    def __post_init__(self) -> None:
        steps, gaps = tuple(map(_step, several("steps", self.steps))), several("gaps", self.gaps)
        if len(gaps) != len(steps) - 1:
            raise InvalidValue(
                f"steps {self.steps!r:.200}, gaps {gaps!r:.200}: give a gap for each step but the first"
            )
        for gap in gaps:
            if not is_number(gap, 0):
                raise InvalidValue(f"gap {gap!r:.200}: give seconds, 0 or more")
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "gaps", gaps)

    def __str__(self) -> str:
        within = ("" if gap == math.inf else f"within {gap:g} s " for gap in self.gaps)
        later = zip(within, self.steps[1:], strict=True)
        return str(self.steps[0]) + "".join(f", {near}then {step}" for near, step in later)


@dataclass(frozen=True, slots=True)
class Without(SearchQuery):
    """A query with exclusions.

    Attributes:
        excluded: each of these counts against a moment; without duplicates, in a canonical order.

    Raises:
        InvalidValue: a sequence cannot be excluded, nor a query with exclusions of its own.
    """

    query: Simple | Steps
    excluded: tuple[Simple, ...]

    def __post_init__(self) -> None:
        simple = {_simple(one, "what is excluded") for one in several("excluded", self.excluded)}
        object.__setattr__(self, "query", as_query(self.query))
        object.__setattr__(self, "excluded", tuple(sorted(simple, key=_order)))

    @classmethod
    def of(cls, query: SearchQuery | str, excluded: Iterable[SearchQuery | str]) -> Without:
        """From texts, too."""
        return cls(query, excluded)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return "; not ".join(map(str, (self.query, *self.excluded)))


def as_query(query: SearchQuery | str) -> SearchQuery:
    """A ``str`` as its :class:`Text`, a sum of one term as that term.

    Raises:
        InvalidValue: an empty text, or neither a text nor a query.
    """
    if isinstance(query, str):
        return _read(query)
    if isinstance(query, WeightedSum) and len(query.terms) == 1:
        return query.terms[0][0]
    if not isinstance(query, SearchQuery):
        raise InvalidValue(f"query {query!r:.200}: give a text, or a query of moviola.search.queries")
    return query


def _read(text: str) -> SearchQuery:
    """A text, in which ``@name`` refers to a concept; a library says later which of several names are
    concepts.
    """
    names = named_concepts(text)
    if not any(name for _, name in names):
        return Text(text)
    words = " ".join(word for word, name in names if not name)
    concept = next(name for _, name in names if name)
    return Marked(Text(words) if words else None, concept=concept, written=text)


def _order(query: Simple) -> tuple[bool, str]:
    """Sort key with words first; a picture that is kept stands where its file would."""
    return not isinstance(query, Text), repr(query).replace("KeptPicture(", "LikePicture(")


def parts_of(query: SearchQuery) -> tuple[Simple, ...]:
    """All parts of a query, exclusions included."""
    if isinstance(query, Without):
        return (*parts_of(query.query), *(thing for one in query.excluded for thing in parts_of(one)))
    if isinstance(query, Steps):
        return tuple(thing for step in query.steps for thing in parts_of(step))
    if isinstance(query, Marked):
        return () if query.query is None else parts_of(query.query)
    assert isinstance(query, Plain)
    return (query,)


def _simple(query: SearchQuery | str, role: str) -> Simple:
    checked = as_query(query)
    if isinstance(checked, Marked) and isinstance(checked.query, Simple | None):
        return checked
    if not isinstance(checked, Plain):
        raise InvalidValue(f"{str(checked)!r}: {role} must be a text, a moment, a picture or a sum of them")
    return checked


def _marked_moments(name: str, moments: Iterable[MarkedMoment | Moment]) -> set[MarkedMoment]:
    listed = several(name, moments)
    for one in listed:
        require_kind(name, one, (MarkedMoment, Moment), "a MarkedMoment, or a moment of an answer")
    return {MarkedMoment(one.video_id, one.start, one.end) for one in listed}


def _require_weight(weight: object, of: SearchQuery) -> None:
    if not (is_number(weight, 0) and 0 < weight < math.inf):  # type: ignore[operator]
        raise InvalidValue(
            f"weight {weight!r:.200} of {str(of)!r}: must be a number above 0; `without` excludes something"
        )


def terms_of(query: SearchQuery | str) -> tuple[tuple[Term, float], ...]:
    """The terms of one part with their weights; a part that is no sum is one term of weight 1.

    Raises:
        InvalidValue: a sequence, an exclusion or marks.
    """
    if isinstance(query, WeightedSum):
        return query.terms
    checked = _simple(query, "a term of a sum")
    if isinstance(checked, Marked):
        raise InvalidValue(f"{str(checked)!r}: marks apply to the whole sum; mark its answer")
    assert isinstance(checked, Term)
    return ((checked, 1.0),)


def _step(step: SearchQuery | str) -> SearchQuery:
    checked = as_query(step)
    if isinstance(checked.query if isinstance(checked, Without) else checked, Steps):
        raise InvalidValue(f"{str(checked)!r:.200}: a sequence is no step; join sequences with `then`")
    return checked


def _steps(query: SearchQuery) -> Steps:
    """A query as a sequence; one part is a sequence of one step."""
    if isinstance(query, Steps):
        return query
    if isinstance(query, Without) and isinstance(query.query, Steps):
        raise InvalidValue(f"{str(query)!r}: add the last step before excluding anything from the whole")
    return Steps((query,), ())  # type: ignore[arg-type]
