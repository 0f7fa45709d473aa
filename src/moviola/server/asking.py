"""From what a request asks to what a library is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator

from moviola.errors import InvalidValue
from moviola.search import LikeMoment, LikePicture, SearchQuery, Text, WeightedSum
from moviola.server.options import Limits
from moviola.server.schemas import (
    AskedQuery,
    CurveRequest,
    MomentTerm,
    PictureTerm,
    SearchRequest,
    Sum,
    TextTerm,
)
from moviola.server.uploads import Uploads

__all__ = ["as_search_query", "require_within"]


def as_search_query(asked: str | AskedQuery, uploads: Uploads) -> SearchQuery:
    """The query in terms of :mod:`moviola.search.queries`.

    Raises:
        InvalidValue: a text without words.
        NotFound: a picture that was not sent.
    """
    if isinstance(asked, str):
        return Text(asked)
    query: SearchQuery = _sum(asked, uploads)
    for step in asked.then:
        query = query.then(_sum(step, uploads), gap=math.inf if step.gap is None else step.gap)
    excluded = [one if isinstance(one, str) else _sum(one, uploads) for one in asked.not_]
    return query.without(*excluded) if excluded else query


def _sum(asked: Sum, uploads: Uploads) -> WeightedSum:
    return WeightedSum.of([(_term(term, uploads), term.weight) for term in asked.terms])


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
