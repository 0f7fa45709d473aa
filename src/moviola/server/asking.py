"""From what a request asks to what a library is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from moviola.errors import InvalidValue
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
    PictureTerm,
    SearchRequest,
    TextTerm,
)
from moviola.server.uploads import Uploads

__all__ = ["as_filter", "as_search_query", "require_within"]


def as_filter(asked: Filters) -> Filter:
    """What a filter's texts mean.

    Raises:
        WrongField: one of them means nothing.
    """
    given = asked.model_dump(exclude_none=True)
    for name, text in given.items():
        try:
            Filter.parse(**{name: text})
        except InvalidValue as error:
            raise WrongField(f"filter.{name}", error) from error
    return Filter.parse(**given)


def as_search_query(asked: str | AskedQuery, uploads: Uploads) -> SearchQuery:
    """The query in terms of :mod:`moviola.search.queries`.

    Raises:
        InvalidValue: a text without words.
        NotFound: a picture that was not sent.
    """
    if isinstance(asked, str):
        return as_query(asked)
    right, wrong = (
        tuple(MarkedMoment(m.video_id, m.start, m.end) for m in own) for own in (asked.right, asked.wrong)
    )
    query = _unmarked(asked, uploads) if asked.terms else None
    if not (right or wrong or asked.concept):
        if query is None:
            raise InvalidValue("nothing to look for: give terms, marked moments or a concept")
        return query
    return Marked(query, right, wrong, asked.concept)


def _unmarked(asked: AskedQuery, uploads: Uploads) -> SearchQuery:
    query = _terms(asked.terms, uploads)
    for step in asked.then:
        query = query.then(_terms(step.terms, uploads), gap=math.inf if step.gap is None else step.gap)
    excluded = [one if isinstance(one, str) else _terms(one.terms, uploads) for one in asked.not_]
    return query.without(*excluded) if excluded else query


def _terms(terms: Sequence[TextTerm | MomentTerm | PictureTerm], uploads: Uploads) -> SearchQuery:
    """A sum of terms; one text alone may name what was taught."""
    if len(terms) == 1 and isinstance(terms[0], TextTerm):
        return as_query(terms[0].text)
    return WeightedSum.of([(_term(term, uploads), term.weight) for term in terms])


def _term(term: TextTerm | MomentTerm | PictureTerm, uploads: Uploads) -> SearchQuery:
    if isinstance(term, TextTerm):
        return Text(term.text)
    if isinstance(term, MomentTerm):
        return LikeMoment(term.video_id, term.time)
    return LikePicture(uploads.path(term.picture))


def require_within(request: SearchRequest | CurveRequest, limits: Limits) -> None:
    """Refuse a query that is longer, or asks for more, than this server takes on.

    Raises:
        InvalidValue: naming the limit.
    """
    letters = sum(map(len, _texts(request.query)))
    if letters > limits.query_characters:
        raise InvalidValue(
            f"query: {letters} characters of text; at most {limits.query_characters} are taken, so say less"
        )
    if isinstance(request, SearchRequest) and request.top_k > limits.top_k:
        raise InvalidValue(f"top_k {request.top_k}: at most {limits.top_k} moments are given")


def _texts(asked: str | AskedQuery) -> Iterator[str]:
    if isinstance(asked, str):
        yield asked
        return
    for part in (asked, *asked.then, *asked.not_):
        if isinstance(part, str):
            yield part
        else:
            yield from (term.text for term in part.terms if isinstance(term, TextTerm))
