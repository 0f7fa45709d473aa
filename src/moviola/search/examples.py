"""Queries to try: things that the pictures of a library show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from moviola.library import LibraryStore
from moviola.search.found import SearchResult
from moviola.types import Query

__all__ = ["ExampleReader"]


class ExampleReader:
    """Queries that a library answers strongly, found again when it has changed. Safe for threads.

    ``search`` answers many queries by pictures, a moment each.
    """

    def __init__(self, store: LibraryStore, search: Callable[[Sequence[Query]], list[SearchResult]]) -> None:
        self._store, self._search, self._lock = store, search, Lock()
        self._known: tuple[int, tuple[str, ...]] | None = None

    def read(self, most: int) -> tuple[str, ...]:
        """At most ``most`` queries, the surest first, each for another video where there are enough.

        None without a visual encoder. While one thread looks for them, which takes seconds, the others get
        those of the state before, or none: they do not wait.
        """
        generation = self._store.catalogue.generation
        if (self._known is None or self._known[0] != generation) and self._lock.acquire(blocking=False):
            try:
                self._known = generation, self._found()
            finally:
                self._lock.release()
        return self._known[1][:most] if self._known else ()

    def _found(self) -> tuple[str, ...]:
        if not self._store.settings.encoder:
            return ()
        # Things that videos may show, as short queries.
        things = Path(__file__).with_name("things.txt").read_text(encoding="utf-8").splitlines()
        answers = self._search([Query(str(number), thing) for number, thing in enumerate(things)])
        best = [(answer[0], thing) for answer, thing in zip(answers, things, strict=True) if answer]
        strong = sorted((one for one in best if one[0].strong), key=lambda one: -one[0].score)
        first: dict[str, str] = {}
        others = [thing for moment, thing in strong if first.setdefault(moment.video_id, thing) != thing]
        return (*first.values(), *others)
