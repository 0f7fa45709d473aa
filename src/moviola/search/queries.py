"""What can be asked of a library: texts, moments and pictures, summed, put in order, excluded.

>>> dog = Text("a dog runs")
>>> str(dog + 0.5 * LikeMoment("beach", 12))
'a dog runs + 0.5 like beach@12'
>>> str(dog.then("it jumps into the water", gap=30).without("snow"))
'a dog runs, within 30 s then it jumps into the water; not snow'

Three kinds of values, one inside the other:

- *one thing to look for*: a :class:`Text`, a :class:`LikeMoment`, a :class:`LikePicture`, or a
  :class:`WeightedSum` of these (``+`` and ``*``);
- a :class:`Steps` of such things (``then``);
- one of both :class:`Without` other things (``without``).

Values are immutable and equal where they ask the same in the same words: the order of what is summed or
excluded does not matter. How they are answered stands in :mod:`moviola.search.searcher`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moviola.errors import InvalidValue
from moviola.search.times import parse_seconds

__all__ = [
    "GAP", "LikeMoment", "LikePicture", "SearchQuery", "Simple", "Steps", "Term", "Text", "WeightedSum",
    "Without", "as_query", "compose", "texts_of",
]  # fmt: skip

GAP = 60.0
"""Most seconds between the end of one step of a sequence and the start of the next, unless said."""


class SearchQuery:
    """Something to ask of a library. Wherever one is expected, a ``str`` stands for its :class:`Text`."""

    def __add__(self, other: SearchQuery | str) -> WeightedSum:
        """Both in one moment, by weight."""
        return WeightedSum.of((*_terms(self), *_terms(other)))

    def __radd__(self, other: str) -> WeightedSum:
        return Text(other) + self

    def __mul__(self, weight: float) -> WeightedSum:
        """The same with so much weight in a sum; by itself a weight changes nothing."""
        return WeightedSum.of((term, weight * own) for term, own in _terms(self))

    __rmul__ = __mul__

    def then(self, later: SearchQuery | str, *, gap: float = GAP) -> Steps:
        """This, and later in the same video that, beginning at most ``gap`` seconds after this has ended.

        ``math.inf`` is no limit. ``a.then(b).then(c)`` equals ``a.then(b.then(c))``.
        """
        own, others = _steps(as_query(self)), _steps(as_query(later))
        return Steps((*own.steps, *others.steps), (*own.gaps, gap, *others.gaps))

    def without(self, *excluded: SearchQuery | str) -> Without:
        """This, where none of that is seen or said."""
        if isinstance(self, Without):
            return Without.of(self.query, (*self.excluded, *excluded))
        return Without.of(self, excluded)


class _Term(SearchQuery):
    """One thing to look for that is no sum."""


@dataclass(frozen=True, slots=True)
class Text(_Term):
    """What is seen or said, in words.

    Raises:
        InvalidValue: no words.
    """

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidValue("the text of a query is empty; say what to look for")

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class LikeMoment(_Term):
    """What looks like the frame at a time of a video of the library; that one is among the answers.

    Attributes:
        video_id: of a video that can be searched.
        time: seconds from its start, >= 0.

    Raises:
        InvalidValue: the time is negative or no finite number.
    """

    video_id: str
    time: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time) and self.time >= 0):
            raise InvalidValue(f"like {self.video_id}@{self.time}: give seconds from the start, 0 or more")

    @classmethod
    def parse(cls, text: str) -> LikeMoment:
        """``VIDEO@TIME``, the time in seconds or as ``m:ss`` or ``h:mm:ss``.

        Raises:
            InvalidValue: it is written otherwise.
        """
        video_id, at, time = text.rpartition("@")
        if not (at and video_id):
            raise InvalidValue(f"{text!r}: write VIDEO@TIME, for instance beach@12.5 or beach@1:02:03")
        return cls(video_id, parse_seconds(time, f"{text!r}: the time"))

    def __str__(self) -> str:
        return f"like {self.video_id}@{self.time:g}"


@dataclass(frozen=True, slots=True)
class LikePicture(_Term):
    """What looks like a picture in a file; of a video, like its first frame."""

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    def __str__(self) -> str:
        return f"like {self.path}"


Term = Text | LikeMoment | LikePicture


@dataclass(frozen=True, slots=True)
class WeightedSum(SearchQuery):
    """Moments that match all terms, each by its weight.

    Only the ratios of weights matter, and two terms of equal weight count alike, whatever their kinds: see
    :meth:`moviola.search.finder.Finder.features`.

    Attributes:
        terms: with weights above 0; no term twice, in an order of their own.
    """

    terms: tuple[tuple[Term, float], ...]

    @classmethod
    def of(cls, terms: object) -> WeightedSum:
        """From terms in any order; weights of equal ones are added.

        Raises:
            InvalidValue: no term, or a weight that is not above 0.
        """
        total: dict[Term, float] = {}
        for term, weight in terms:  # type: ignore[attr-defined]
            if not (math.isfinite(weight) and weight > 0):
                raise InvalidValue(
                    f"weight {weight} of {str(term)!r}: must be above 0; `without` excludes something"
                )
            total[term] = total.get(term, 0.0) + weight
        return cls(tuple(sorted(total.items(), key=lambda item: _order(item[0]))))

    def __str__(self) -> str:
        return " + ".join(str(term) if weight == 1 else f"{weight:g} {term}" for term, weight in self.terms)


Simple = Text | LikeMoment | LikePicture | WeightedSum
"""One thing to look for."""


@dataclass(frozen=True, slots=True)
class Steps(SearchQuery):
    """Things that follow each other in one video.

    Attributes:
        steps: two or more; each may have exclusions of its own.
        gaps: for each step but the first, most seconds between the end of the one before and its start.

    Raises:
        InvalidValue: a gap is negative.
    """

    steps: tuple[Simple | Without, ...]
    gaps: tuple[float, ...]

    def __post_init__(self) -> None:
        for gap in self.gaps:
            if not gap >= 0:
                raise InvalidValue(f"gap {gap}: give seconds, 0 or more")

    def __str__(self) -> str:
        later = (
            f", within {gap:g} s then {step}" for gap, step in zip(self.gaps, self.steps[1:], strict=True)
        )
        return f"{self.steps[0]}{''.join(later)}"


@dataclass(frozen=True, slots=True)
class Without(SearchQuery):
    """A query, and what must not be seen or said during its moments.

    Attributes:
        query: of which moments are wanted.
        excluded: each of these counts against a moment; none twice, in an order of their own.
    """

    query: Simple | Steps
    excluded: tuple[Simple, ...]

    @classmethod
    def of(cls, query: SearchQuery, excluded: tuple[SearchQuery | str, ...]) -> Without:
        """From exclusions in any order.

        Raises:
            InvalidValue: a sequence is excluded, or what has exclusions of its own.
        """
        simple = {_simple(one, "what is excluded") for one in excluded}
        wanted = as_query(query)
        return cls(wanted, tuple(sorted(simple, key=_order)))  # type: ignore[arg-type]

    def __str__(self) -> str:
        return "; not ".join(map(str, (self.query, *self.excluded)))


def as_query(query: SearchQuery | str) -> SearchQuery:
    """A ``str`` as its :class:`Text`, a sum of one term as that term, whose weight changes nothing."""
    if isinstance(query, str):
        return Text(query)
    if isinstance(query, WeightedSum) and len(query.terms) == 1:
        return query.terms[0][0]
    return query


def compose(
    text: str | None,
    alike: Sequence[LikeMoment | LikePicture] = (),
    *,
    weight: float = 1.0,
    then: Sequence[str] = (),
    gap: float = GAP,
    excluded: Sequence[str] = (),
) -> SearchQuery:
    """A query from its parts, as options and parameters name them.

    Args:
        text: words, or None where moments or pictures say it all.
        alike: moments and pictures to be summed with the words, with weight 1 each.
        weight: of the words.
        then: what comes later, in order.
        gap: most seconds between two steps.
        excluded: what must not be seen or said.

    Raises:
        InvalidValue: neither words nor anything alike, or a part that its class refuses.
    """
    words = [] if text is None else [(Text(text), weight)]
    if not (words or alike):
        raise InvalidValue("nothing to look for: give a text, a moment of a video, or a picture")
    query: SearchQuery = WeightedSum.of([*words, *((one, 1.0) for one in alike)])
    for later in then:
        query = query.then(later, gap=gap)
    return query.without(*excluded) if excluded else query


def _order(query: Simple) -> tuple[bool, str]:
    """Words first."""
    return not isinstance(query, Text), repr(query)


def texts_of(query: SearchQuery) -> tuple[Text, ...]:
    """All texts that an answer has to match: not those that are excluded."""
    if isinstance(query, Without):
        return texts_of(query.query)
    if isinstance(query, Steps):
        return tuple(text for step in query.steps for text in texts_of(step))
    return tuple(term for term, _ in _terms(query) if isinstance(term, Text))


def _simple(query: SearchQuery | str, role: str) -> Simple:
    found = as_query(query)
    if not isinstance(found, Text | LikeMoment | LikePicture | WeightedSum):
        raise InvalidValue(f"{str(found)!r}: {role} is a text, a moment, a picture or a sum of them")
    return found


def _terms(query: SearchQuery | str) -> tuple[tuple[Term, float], ...]:
    if isinstance(query, WeightedSum):
        return query.terms
    found = _simple(query, "what is added or weighted")
    assert not isinstance(found, WeightedSum)
    return ((found, 1.0),)


def _steps(query: SearchQuery) -> Steps:
    """A query as a sequence; one thing is a sequence of one step."""
    if isinstance(query, Steps):
        return query
    if isinstance(query, Without) and isinstance(query.query, Steps):
        raise InvalidValue(f"{str(query)!r}: add the last step before excluding something from the whole")
    return Steps((query,), ())  # type: ignore[arg-type]
