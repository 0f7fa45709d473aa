"""The last printed answer, kept so that its moments can be named by rank: `moviola open 2`.

It lies in the library's cache as ``last-answer.json`` (:func:`moviola.files.caches.cache_of`), without paths
of videos, since files are moved, and may swap names. It may be deleted at any time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moviola.errors import DataError, InvalidValue, NotFound, counted
from moviola.files.caches import cache_of
from moviola.files.moments import moment_row, read_moment
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.library.disk.protected_paths import library_around
from moviola.search.asked import Asked, query_to_json
from moviola.search.filters import FILTERS
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
from moviola.types import Moment, band_of

__all__ = ["KeptAnswer", "keep_answer", "kept_answer"]

_FORMAT = 5
_NAME = "last-answer.json"


@dataclass(frozen=True)
class KeptAnswer:
    """The last printed answer, its question, and folders of the libraries that it is of; none: that in which
    it is kept. Of several, the first keeps it.
    """

    asked: Asked
    moments: list[Moment]
    libraries: tuple[Path, ...] = ()

    def moment(self, rank: int) -> Moment:
        """The moment with a rank; raises :class:`NotFound` where there is none."""
        if found := next((moment for moment in self.moments if moment.rank == rank), None):
            return found
        if not self.moments:
            raise NotFound(f"rank {rank}: the last answer has no moments; search with --weak for the nearest")
        count = counted(len(self.moments), "moment")
        raise NotFound(f"rank {rank}: the last answer has {count}; give one of their ranks")


def keep_answer(library: Path, answer: KeptAnswer) -> Path:
    """Store an answer of the library in a folder, replacing the previous one; returns the file's path. The
    question is kept without a model that looks.

    Raises:
        InvalidValue: it cannot be written; the previous one is gone too, since it is not the last any more.
    """
    place, moments = cache_of(library) / _NAME, [moment_row(moment) for moment in answer.moments]
    try:
        content = {"format": _FORMAT, "asked": answer.asked.unchecked.to_json(), "moments": moments}
        if answer.libraries:
            content["libraries"] = [str(one.absolute()) for one in answer.libraries]
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
        rows = content["moments"]
        match content["format"]:
            case 5:
                row = content["asked"]
            case 4:
                row, rows = content["asked"], _in_bands(rows)
            case 3:
                row, rows = _of_format_3(content["query"], content["options"]), _in_bands(rows)
            case other:
                raise ValueError(f"format {other}")
        moments = [read_moment(one, f"{place}: moment {at}") for at, one in enumerate(rows, 1)]
        libraries = tuple(Path(str(one)) for one in content.get("libraries", ()))
        return KeptAnswer(Asked.from_json(row), moments, libraries)
    except (TypeError, KeyError, ValueError, AttributeError, InvalidValue) as error:
        raise DataError(f"{place}: damaged, or of another version; search again") from error


# -- formats 3 and 4, whose moments were strong from another score on, or weak -------------------------------


def _in_bands(moments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with the band of each score; what a score says about an answer was not measured then."""
    return [{**one, "band": band_of(one["score"]), "steps": _in_bands(one["steps"])} for one in moments]


# -- format 3, in which a query was an object with one key, its kind -----------------------------------------


def _of_format_3(query: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a question; options were those that were given, of the filter among them."""
    texts = {name: options.pop(name) for name in FILTERS.keys() & options.keys()}
    return {"query": query_to_json(_query_of_format_3(query)), **options, "filter": texts}


def _query_of_format_3(row: dict[str, Any]) -> SearchQuery:
    ((kind, said),) = row.items()
    return _KINDS[kind](said)


def _steps(said: Any) -> Steps:
    gaps = tuple(math.inf if gap is None else gap for gap in said[1])
    return Steps(tuple(map(_query_of_format_3, said[0])), gaps)  # type: ignore[arg-type]  # which checks them


def _marked(said: Any) -> Marked:
    inner, *marks, concept = said
    right, wrong = (tuple(MarkedMoment(*columns) for columns in own) for own in marks)
    return Marked(inner and _query_of_format_3(inner), right, wrong, concept)


_KINDS: dict[str, Callable[[Any], SearchQuery]] = {
    "text": Text,
    "moment": lambda said: LikeMoment(*said),
    "picture": lambda said: LikePicture(Path(said)),
    "sum": lambda said: WeightedSum.of([(_query_of_format_3(term), weight) for term, weight in said]),
    "steps": _steps,
    "without": lambda said: Without.of(_query_of_format_3(said[0]), map(_query_of_format_3, said[1])),
    "marked": _marked,
}
