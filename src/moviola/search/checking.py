"""Moments that a model has looked at: its verdicts as evidence, with a calibration of their own.

A :class:`Checker` gives a verdict on each of the best moments of an answer. A verdict is right with a
probability r, the same for moments that answer the question and for others, so that a yes multiplies the odds
of a moment, p / (1 - p), by r / (1 - r), and a no divides them by that; what answers in part stays as it is.
That takes the errors of the model for independent of those of the search. Moments without a verdict keep
their scores. r is measured, or :data:`ASSUMED`, and the answer says which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

from moviola.errors import InvalidValue, MoviolaError
from moviola.search.found import SearchResult
from moviola.search.notes import Note
from moviola.search.options import SearchOptions
from moviola.search.queries import Marked, SearchQuery, Steps, Text, WeightedSum, Without
from moviola.types import Moment, Reason, band_of

__all__ = [
    "ASSUMED", "Checker", "Judgement", "Said", "checked_answers", "checking", "require_checker",
    "words_of_query",
]  # fmt: skip

Said = Literal["yes", "partly", "no"]
"""What a model says of a moment: it answers the question, it does in part, it does not."""

ASSUMED = 0.75
"""How often a verdict that was not measured is taken to be right: the lower end of what was published of
models that judge moments of videos (75 to 83 %)."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on a moment with its reason in a sentence; None with the cause where there is none."""

    said: Said | None
    why: str


class Checker(Protocol):
    """A model that looks at moments.

    Attributes:
        name: of the model.
        right: probability that a verdict of it is right, above .5 and below 1; None where not measured.
    """

    @property
    def name(self) -> str: ...

    @property
    def right(self) -> float | None: ...

    def judge(self, question: str, moments: Sequence[Moment]) -> list[Judgement]:
        """A judgement of each moment. Whatever the model does costs its verdict alone: no error is raised."""


def checking(options: SearchOptions) -> SearchOptions:
    """The options by which moments are found that are to be looked at, and ranked again."""
    if options.check is None:
        return options
    most = max(options.top_k, options.check)
    return options.with_changes(top_k=most, min_score=0.0, weak=True, check=None)


def require_checker(checker: Checker | None, count: int) -> Checker:
    """The model; raises :class:`InvalidValue` where none is named."""
    if checker is None:
        raise _wrong(
            f"check={count}: no model that looks is named; name a server and its model "
            "(--looker, --looker-model)"
        )
    return checker


def _wrong(message: str) -> InvalidValue:
    error = InvalidValue(message)
    error.place = "check"
    return error


def checked_answers(
    found: Sequence[SearchResult],
    options: SearchOptions,
    checker: Checker | None,
    refuse: Callable[[int, MoviolaError], None] | None = None,
) -> list[SearchResult]:
    """Answers whose best ``options.check`` moments a model has looked at, ranked again.

    Args:
        found: by :func:`checking`; one without a query is that of a query that was refused.
        options: those that were asked for.
        refuse: called with the place and the error of a query without words; its answer is empty. By default
            the error is raised.

    Raises:
        InvalidValue: there is no model, or a query without words.
    """
    answers = list(found)
    for place, one in enumerate(found):
        if one.query is None:
            continue
        try:
            answers[place] = _checked(one, one.query, options, checker)
        except InvalidValue as error:
            if refuse is None:
                raise
            refuse(place, error)
            answers[place] = SearchResult()
    return answers


def _checked(
    found: SearchResult, query: SearchQuery, options: SearchOptions, checker: Checker | None
) -> SearchResult:
    assert options.check is not None
    checker = require_checker(checker, options.check)
    question, whole = words_of_query(query)
    if not question:
        raise _wrong(
            f"check={options.check}: {str(query)!r} has no words that a model could judge by; add some"
        )
    looked_at = found[: options.check]
    judgements = checker.judge(question, looked_at)
    right = ASSUMED if checker.right is None else checker.right
    rescored = [_judged(one, said, right) for one, said in zip(looked_at, judgements, strict=True)]
    every = sorted([*rescored, *found[options.check :]], key=lambda one: (-one.score, one.rank))
    shown = [one for one in every if one.score >= options.least_score][: options.top_k]
    beyond = found.confident and not found.strong
    answer = SearchResult(
        (_at_rank(one, rank) for rank, one in enumerate(shown, 1)),
        confident=beyond or any(one.strong for one in every),
    )
    answer.timings, answer.videos, answer.query = found.timings, found.videos, found.query
    answer.still = found.still
    about = [] if whole else [Note("words alone", question)]
    answer.notes = (*found.notes, *about, *_accounted(checker, right, judgements))
    return answer


def _judged(moment: Moment, judgement: Judgement, right: float) -> Moment:
    """A moment with the evidence of a verdict."""
    if judgement.said is None:
        return moment
    strength = {"yes": right, "partly": 0.5, "no": round(1 - right, 12)}[judgement.said]
    # p / (1 - p) times strength / (1 - strength), also where p is 1.
    true, false = moment.score * strength, (1 - moment.score) * (1 - strength)
    score = true / (true + false)
    reason = Reason("looked", strength, (judgement.said, judgement.why))
    why = tuple(sorted((*moment.why, reason), key=lambda one: (-one.score, one.kind)))
    return replace(moment, score=score, band=band_of(score), why=why)


def _at_rank(moment: Moment, rank: int) -> Moment:
    return replace(moment, rank=rank, steps=tuple(_at_rank(step, rank) for step in moment.steps))


def _accounted(checker: Checker, right: float, judgements: Sequence[Judgement]) -> Iterable[Note]:
    """Notes on how many moments have a verdict, and why others have none."""
    all, said = str(len(judgements)), Counter(one.said for one in judgements)
    if any(said[one] for one in get_args(Said)):
        known = "assumed" if checker.right is None else "measured"
        numbers = (*(str(said[one]) for one in get_args(Said)), all)
        yield Note("looked", checker.name, (*numbers, f"{right:.2f}", known))
    causes = Counter(one.why for one in judgements if one.said is None)
    for cause, count in causes.most_common():
        yield Note("not looked", cause, (str(count), all))


def words_of_query(query: SearchQuery) -> tuple[str, bool]:
    """The words of a query as a question to a model, empty without any; and whether that is all of it, and
    not also moments, pictures or marks.
    """
    match query:
        case Text(text):
            return text, True
        case Marked(inner, written=written):
            return written or ("" if inner is None else words_of_query(inner)[0]), False
        case WeightedSum(terms):
            return _joined("; ", [words_of_query(term) for term, _ in terms])
        case Steps(steps):
            found = [words_of_query(step) for step in steps]
            return _joined(", then ", found) if all(words for words, _ in found) else ("", False)
        case Without(inner, excluded):
            words, whole = words_of_query(inner)
            without = [(own and f"not {own}", all) for own, all in map(words_of_query, excluded)]
            return _joined(", ", [(words, whole), *without]) if words else ("", False)
    return "", False


def _joined(between: str, parts: Sequence[tuple[str, bool]]) -> tuple[str, bool]:
    return between.join(words for words, _ in parts if words), all(whole for _, whole in parts)
