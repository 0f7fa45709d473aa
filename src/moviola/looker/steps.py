"""What a model may do to answer a question: search, and look. Nothing else, whatever it says.

A step is one JSON object::

    {"search": {"query": "a man climbs a ladder", "by": "visual", "top_k": 5}}
    {"look": {"moment": "m2"}}
    {"look": {"video": "holiday/beach", "start": 12, "end": 19}}

``search`` takes the JSON of a question (:mod:`moviola.search.asked`), without pictures and without a model
that looks. What a step finds has a name, m1, m2, …, by which it may be cited.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from moviola.errors import InvalidValue, LibraryError, MediaError, NotFound
from moviola.looker.evidence import MOST_LETTERS, MOST_STILLS, Evidence, Stretch, cause_of, data_part
from moviola.search import Asked, KeptPicture, Library, LikePicture
from moviola.search.queries import parts_of, terms_of
from moviola.types import Moment, Span

__all__ = ["MOST_STILLS_OF_ALL", "Cited", "Steps"]

_FIELDS = frozenset({"query", "filter", "by", "videos", "per_video", "top_k"})
_MOST_MOMENTS, _USUAL = 8, 6
_LONGEST_STEP = 4_000  # letters of a search, as JSON
_MOST_PARTS = 16  # each is searched for
MOST_STILLS_OF_ALL = 48
"""Stills of all steps of one answer."""
_LETTERS = 400  # of the lines of a moment that was found, but not looked at


@dataclass(frozen=True, slots=True)
class Cited:
    """A moment that a step has found.

    Attributes:
        name: by which it is cited.
        moment: as it was found; of a stretch that was looked at without a score.
        looked: whether the model looked at it by several stills, and not only at the one of a search.
    """

    name: str
    moment: Moment
    looked: bool


class Steps:
    """The steps of one answer, on one library.

    Attributes:
        found: what may be cited, by name.
        searches: the queries, as they were read.
        failed: what could not be done, in words.
        stills: number of those that were sent.
    """

    def __init__(self, library: Library, announce: Callable[[list[Evidence]], None]) -> None:
        self._library, self._announce = library, announce
        self._names: dict[tuple[str, float, float], str] = {}
        self.found: dict[str, Cited] = {}
        self.searches: list[str] = []
        self.failed: list[str] = []
        self.stills = 0

    def take(self, step: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Parts of a message with what a step has found, or why it could not be taken."""
        kinds = {"search": self._search, "look": self._look}
        named = [kind for kind in kinds if kind in step]
        try:
            if len(named) != 1 or not isinstance(step[named[0]], Mapping):
                raise InvalidValue("no such step; there are search, look, answer and untold, one at a time")
            return kinds[named[0]](step[named[0]])
        except (InvalidValue, NotFound, LibraryError, MediaError) as error:
            # Paths of this machine are nobody's business.
            said = cause_of(error) if isinstance(error, MediaError) else str(error)
            store = self._library.store
            for folder in (part.folder for part in store.parts or (store,)):
                said = said.replace(str(folder.resolve()), "the library").replace(str(folder), "the library")
            self.failed.append(said)
            return [data_part({"error": f"{said:.500}"})]

    # -- searching ---------------------------------------------------------------------------------------

    def _search(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        if unknown := given.keys() - _FIELDS:
            raise InvalidValue(
                f"{min(unknown)!r:.100}: no such field; there are {', '.join(sorted(_FIELDS))}"
            )
        if len(json.dumps(given)) > _LONGEST_STEP:
            raise InvalidValue(f"a search of more than {_LONGEST_STEP} letters; shorten it")
        question = Asked.from_json(given, _no_picture)
        parts = sum(len(terms_of(part)) for part in parts_of(question.query))
        if parts > _MOST_PARTS:
            raise InvalidValue(f"a search for {parts} things; search for at most {_MOST_PARTS} at once")
        count = min(question.options.top_k, _MOST_MOMENTS) if "top_k" in given else _USUAL
        answer = self._library.search(question.query, replace(question.options, top_k=count))
        self.searches.append(str(answer.query or question.query))
        rows: list[dict[str, Any]] = []
        evidence = []
        for moment in answer:
            about = {
                "moment": self._named(moment, looked=False), "video": moment.video_id,
                "score": round(moment.score, 2), "band": moment.band,
            }  # fmt: skip
            try:
                seen = self._seen(moment, 1, _LETTERS)
                evidence.append(seen)
                rows.append(seen.data(**about))
            except (MediaError, NotFound) as error:
                rows.append({**about, "start": moment.start, "end": moment.end, "still": cause_of(error)})
        notes = [str(note) for note in answer.notes]
        return self._parts({"found": rows, **({"notes": notes} if notes else {})}, evidence)

    # -- looking -----------------------------------------------------------------------------------------

    def _look(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        if (name := given.get("moment")) is not None:
            if not isinstance(name, str) or name not in self.found:
                raise NotFound(f"{name!r:.100}: no such moment; search first, or give video, start and end")
            moment = self.found[name].moment
        else:
            video, start, end = (given.get(one) for one in ("video", "start", "end"))
            numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (start, end))
            if not (isinstance(video, str) and numbers):
                raise InvalidValue("look: give moment, or video, start and end in seconds")
            length = self._library.catalogue.video(video).duration
            span = Span(float(start), float(end)).within(video, length)  # type: ignore[arg-type]  # numbers
            moment = Moment(video, span.start, span.end, 0.0, 1)
        seen = self._seen(moment)
        about = {"moment": self._named(moment, looked=True), "video": moment.video_id}
        return self._parts({"looked": seen.data(**about)}, [seen])

    def _seen(self, moment: Moment, most: int = MOST_STILLS, letters: int = MOST_LETTERS) -> Evidence:
        stretch = Stretch.of(self._library.store, moment.video_id, moment.span, most=most, letters=letters)
        room = MOST_STILLS_OF_ALL - self.stills
        if room < len(stretch.times):
            stretch = replace(stretch, times=stretch.times[:room])
        seen = stretch.seen(self._library.store)
        self.stills += len(seen.stills)
        return seen

    def _named(self, moment: Moment, *, looked: bool) -> str:
        key = (moment.video_id, moment.start, moment.end)
        name = self._names.setdefault(key, f"m{len(self._names) + 1}")
        known = self.found.get(name)
        if known is None:
            self.found[name] = Cited(name, moment, looked)
        elif looked:
            self.found[name] = replace(known, looked=True)
        return name

    def _parts(self, data: dict[str, Any], evidence: list[Evidence]) -> list[dict[str, Any]]:
        """The data of a step, and its stills, in the order of the moments."""
        if self.stills >= MOST_STILLS_OF_ALL:
            data["no_more_stills"] = True
        self._announce(evidence)
        return [data_part(data), *(picture for one in evidence for picture in one.pictures())]


def _no_picture(name: str) -> LikePicture | KeptPicture:
    """Pictures are files of this machine, which no reply of a model may name."""
    raise InvalidValue("pictures cannot be searched with here; use words, or video_id and time")
