"""Conversion of search requests into the library's queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from moviola.errors import InvalidValue, NotFound
from moviola.search import (
    Filter,
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    SearchQuery,
    Text,
    WeightedSum,
)
from moviola.search.queries import as_query
from moviola.server.options import Limits
from moviola.server.problems import WrongField
from moviola.server.schemas import (
    AskedQuery,
    CurveRequest,
    Filters,
    MomentTerm,
    SearchRequest,
    Term,
    TextTerm,
)
from moviola.server.uploads import Uploads

__all__ = ["as_filter", "as_search_query", "require_within"]


def as_filter(asked: Filters) -> Filter:
    """What a filter's texts mean; WrongField names one that means nothing."""
    given = asked.model_dump(exclude_none=True)
    for name, text in given.items():
        try:
            Filter.parse(**{name: text})
        except InvalidValue as error:
            raise WrongField(f"filter.{name}", error) from error
    return Filter.parse(**given)


def as_search_query(request: str | AskedQuery, uploads: Uploads) -> SearchQuery:
    """The query of a request; steps and exclusions follow the marks and the concept where it has no terms.

    Raises:
        InvalidValue: a text without words, or a concept among several terms.
        WrongField: an unknown picture.
    """
    if isinstance(request, str):
        return as_query(request)
    right, wrong = (
        tuple(MarkedMoment(m.video_id, m.start, m.end) for m in own) for own in (request.right, request.wrong)
    )
    marks = None
    if right or wrong or request.concept:
        marks = Marked(None, right, wrong, request.concept)
    query = _terms(request.terms, uploads, "query") if request.terms else marks
    if query is None:
        raise InvalidValue("empty query: give terms, marked moments or a concept")
    for number, step in enumerate(request.then, 1):
        terms = _terms(step.terms, uploads, f"query.then.{number}")
        query = query.then(terms, gap=math.inf if step.gap is None else step.gap)
    excluded = [
        one if isinstance(one, str) else _terms(one.terms, uploads, f"query.without.{number}")
        for number, one in enumerate(request.without, 1)
    ]
    query = query.without(*excluded) if excluded else query
    return Marked(query, right, wrong, request.concept) if marks and request.terms else query


def _terms(terms: Sequence[Term], uploads: Uploads, place: str) -> SearchQuery:
    """A sum of the terms at a place of the request; a single text may name a concept."""
    if len(terms) == 1 and isinstance(terms[0], TextTerm):
        return as_query(terms[0].text)
    return WeightedSum.of([
        (_term(term, uploads, f"{place}.terms.{number}"), term.weight) for number, term in enumerate(terms, 1)
    ])  # fmt: skip


def _term(term: Term, uploads: Uploads, place: str) -> SearchQuery:
    if isinstance(term, TextTerm):
        if isinstance(as_query(term.text), Marked):
            raise InvalidValue(
                f"{term.text!r}: a concept is no term among others; put words beside it into its own text"
            )
        return Text(term.text)
    if isinstance(term, MomentTerm):
        return LikeMoment(term.video_id, term.time)
    try:
        return LikePicture(uploads.path(term.picture))
    except NotFound as error:
        raise WrongField(f"{place}.picture", error) from error


def require_within(request: SearchRequest | CurveRequest, limits: Limits) -> None:
    """Refuse a request that exceeds this server's limits; WrongField names the limit."""
    letters = sum(map(len, _texts(request.query)))
    if letters > limits.query_characters:
        most = limits.query_characters
        raise WrongField(
            "query",
            InvalidValue(f"query: {letters} characters of text, at most {most} are allowed; shorten it"),
            longest=most,
        )
    if isinstance(request, SearchRequest) and request.top_k > limits.top_k:
        raise WrongField(
            "top_k",
            InvalidValue(f"top_k {request.top_k}: this server gives at most {limits.top_k} moments"),
        )


def _texts(query: str | AskedQuery) -> Iterator[str]:
    for part in [query] if isinstance(query, str) else [query, *query.then, *query.without]:
        if isinstance(part, str):
            yield part
        else:
            yield from (term.text for term in part.terms if isinstance(term, TextTerm))
