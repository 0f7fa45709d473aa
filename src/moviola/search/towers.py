"""The towers of an answer: one encoder's, or those of two while a library changes from one to the other.

Each video is answered by one of them: by the new encoder where it has features by that, else by the old one.
What they find is ranked together, since scores are probabilities, each by the calibration of its encoder.
A query of words alone is answered so; moments, pictures and marks are compared with features of the videos
that they lie in, which not all have by both, so that the encoder in use answers these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from moviola.search.checking import words_of_query
from moviola.search.evidence import EvidenceGatherer, Rows
from moviola.search.notes import Note
from moviola.search.queries import SearchQuery, Text
from moviola.search.unknowns import notes_of

__all__ = ["Tower", "Towers"]


@dataclass(frozen=True, slots=True)
class Tower:
    """A gatherer of evidence, prepared with the queries, and the videos that it answers; None: all."""

    gatherer: EvidenceGatherer
    rows: Rows


@dataclass(frozen=True, slots=True)
class Towers:
    """The tower of the encoder in use on all videos, and those that share them; empty where none do."""

    whole: Tower
    shared: tuple[Tower, ...] = ()

    @classmethod
    def of(
        cls,
        gatherer: EvidenceGatherer,
        next_: EvidenceGatherer | None,
        rows: Rows,
        queries: Sequence[SearchQuery],
    ) -> Self:
        """The towers for some queries, whose texts are encoded and searched in few batches."""
        gatherer = gatherer.prepare(queries)
        whole = Tower(gatherer, rows)
        if next_ is None:
            _search(whole, queries)
            return cls(whole)
        worded = [query for query in queries if _is_worded(query)]
        _search(whole, [query for query in queries if not _is_worded(query)])
        made = frozenset(next_.view.features.keys.tolist())
        every = frozenset(gatherer.view.videos) if rows is None else rows
        towers = Tower(gatherer, every - made), Tower(next_.prepare(worded), every & made)
        shared = tuple(one for one in towers if one.rows) or towers[:1]
        for one in shared:
            _search(one, worded)
        return cls(whole, shared)

    def of_query(self, query: SearchQuery) -> tuple[Tower, ...]:
        """The towers that answer a query."""
        return self.shared if self.shared and _is_worded(query) else (self.whole,)

    def notes(self, query: SearchQuery) -> Iterable[Note]:
        """Notes on what is not known, and on a change of encoder that is under way."""
        yield from notes_of(self.whole.gatherer, query, self.whole.rows)
        if len(self.shared) > 1 and _is_worded(query):
            new = self.shared[-1]
            made, all = len(new.rows or ()), sum(len(one.rows or ()) for one in self.shared)
            yield Note("by both", new.gatherer.view.settings.encoder, (str(made), str(all)))

    def forget(self) -> None:
        """Drop the moments that were gathered."""
        for one in (self.whole, *self.shared):
            one.gatherer.forget()


def _search(tower: Tower, queries: Sequence[SearchQuery]) -> None:
    tower.gatherer.search([query for query in queries if isinstance(query, Text)], tower.rows)


def _is_worded(query: SearchQuery) -> bool:
    """Whether a query is words alone."""
    words, whole = words_of_query(query)
    return bool(words) and whole
