"""The last printed answer, kept so that its moments can be named by rank: `moviola open 2`.

It lies in the library's cache as ``last-answer.json`` (:func:`moviola.files.caches.cache_of`), without paths
of videos, since files are moved, and may swap names. It may be deleted at any time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from moviola.errors import DataError, InvalidValue, NotFound, counted
from moviola.files.caches import cache_of
from moviola.files.moments import moment_row, read_moment
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.library.disk.protected_paths import library_around
from moviola.search.queries import (
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    SearchQuery,
    Steps,
    Text,
    WeightedSum,
    Without,
)
from moviola.types import Moment

__all__ = ["KeptAnswer", "keep_answer", "kept_answer", "query_from_json", "query_to_json"]

_FORMAT = 3
_NAME = "last-answer.json"


@dataclass(frozen=True)
class KeptAnswer:
    """The last printed answer; ``options`` are those that were given, by name."""

    query: SearchQuery
    moments: list[Moment]
    options: dict[str, Any] = field(default_factory=dict)

    def moment(self, rank: int) -> Moment:
        """The moment with a rank; raises :class:`NotFound` where there is none."""
        if found := next((moment for moment in self.moments if moment.rank == rank), None):
            return found
        if not self.moments:
            raise NotFound(f"rank {rank}: the last answer has no moments; search with --weak for the nearest")
        count = counted(len(self.moments), "moment")
        raise NotFound(f"rank {rank}: the last answer has {count}; give one of their ranks")


def keep_answer(library: Path, answer: KeptAnswer) -> Path:
    """Store an answer of the library in a folder, replacing the previous one; returns the file's path.

    Raises:
        InvalidValue: it cannot be written; the previous one is gone too, since it is not the last any more.
    """
    place, moments = cache_of(library) / _NAME, [moment_row(moment) for moment in answer.moments]
    query = query_to_json(answer.query)
    try:
        content = {"format": _FORMAT, "query": query, "options": answer.options, "moments": moments}
        write_json(place, content, follow=False)
    except InvalidValue:
        with suppress(OSError):
            place.unlink()
        raise
    return place


def kept_answer(library: Path) -> KeptAnswer:
    """The last answer of the library in a folder.

    Raises:
        NotFound: there was no search yet, or no library is there.
        DataError: the kept answer is damaged.
    """
    place = cache_of(library) / _NAME
    if not place.is_file():
        missing = "no answer yet" if library_around(library) else "no library there, so no answer"
        raise NotFound(f"{library}: {missing}; run `moviola search` first")
    try:
        content = read_json(place)
        if content["format"] != _FORMAT:
            raise ValueError(f"format {content['format']}")
        moments = [read_moment(row, f"{place}: moment {at}") for at, row in enumerate(content["moments"], 1)]
        return KeptAnswer(query_from_json(content["query"]), moments, dict(content["options"]))
    except (TypeError, KeyError, ValueError, AttributeError, InvalidValue) as error:
        raise DataError(f"{place}: damaged, or of another version; search again") from error


# -- queries -------------------------------------------------------------------------------------------------


def query_to_json(query: SearchQuery) -> dict[str, Any]:
    """The JSON form of a query: an object with one key, its kind."""
    kind: str
    said: Any
    match query:
        case Text(text):
            kind, said = "text", text
        case LikeMoment(video_id, time):
            kind, said = "moment", [video_id, time]
        case LikePicture(path):
            # Absolute, since the next command may run in another folder.
            kind, said = "picture", str(path.absolute())
        case WeightedSum(terms):
            kind, said = "sum", [[query_to_json(term), weight] for term, weight in terms]
        case Steps(steps, gaps):
            reached = [None if math.isinf(gap) else gap for gap in gaps]
            kind, said = "steps", [[*map(query_to_json, steps)], reached]
        case Without(inner, excluded):
            kind, said = "without", [query_to_json(inner), [*map(query_to_json, excluded)]]
        case Marked(inner, right, wrong, concept):
            marks = ([list(astuple(one)) for one in own] for own in (right, wrong))
            kind, said = "marked", [None if inner is None else query_to_json(inner), *marks, concept]
        case _:
            raise AssertionError(f"{type(query).__name__} is no kind of query")
    return {kind: said}


def query_from_json(row: Mapping[str, Any]) -> SearchQuery:
    """The query of :func:`query_to_json`'s JSON.

    Raises:
        KeyError, TypeError, ValueError: another form.
        InvalidValue: an invalid part.
    """
    ((kind, said),) = row.items()
    query: SearchQuery
    match kind:
        case "text":
            query = Text(said)
        case "moment":
            query = LikeMoment(*said)
        case "picture":
            query = LikePicture(Path(said))
        case "sum":
            query = WeightedSum.of([(query_from_json(term), weight) for term, weight in said])
        case "steps":
            steps, gaps = said
            reached = tuple(math.inf if gap is None else gap for gap in gaps)
            query = Steps(tuple(map(query_from_json, steps)), reached)  # type: ignore[arg-type]
        case "without":
            inner, excluded = said
            query = Without.of(query_from_json(inner), tuple(map(query_from_json, excluded)))
        case "marked":
            inner, right, wrong, concept = said
            marks = [tuple(MarkedMoment(*columns) for columns in own) for own in (right, wrong)]
            wanted = None if inner is None else query_from_json(inner)
            query = Marked(wanted, marks[0], marks[1], concept)
        case _:
            raise KeyError(kind)
    return query
