"""Concepts: what marks have taught, under a name that a query can hold."""

from __future__ import annotations

from moviola.errors import InvalidValue
from moviola.library import Concept, LibraryStore, forget_concept, keep_concept
from moviola.search.queries import Marked
from moviola.search.searcher import Searcher
from moviola.types import require_kind

__all__ = ["Concepts"]


class Concepts:
    """The concepts of a library; of several those of all, which are taught and forgotten in one alone."""

    def __init__(self, store: LibraryStore, searcher: Searcher) -> None:
        self._store, self._searcher = store, searcher

    def teach(self, title: str, query: Marked) -> str:
        """Save a query's marks as a concept, replacing one of the same name.

        Args:
            title: any words; the concept's name is the title in small letters, with ``-`` for everything but
                letters and digits; ``@name`` in a query refers to it: "our logo" is ``@our-logo``.
            query: a query with at least one right mark, or a concept.

        Returns:
            the name.

        Raises:
            InvalidValue: no right mark, a title without letters, or the library was opened read-only.
            NotFound: a video of a mark is unknown.
            LibraryLocked: another process is writing.
        """
        require_kind("title", title, str, "a text")
        require_kind("query", query, Marked, "a query with marks, moviola.search.Marked")
        concept = self._searcher.teach(title, query)
        if not len(concept.right):
            raise InvalidValue(f"{title!r}: mark at least one moment as right")
        with self._store.writing():
            keep_concept(self._store.folder, self._store.settings, concept)
        return concept.name

    def all(self) -> list[Concept]:
        """The concepts, by name, also those that the encoder of the library has not learnt yet.

        Raises:
            DataError: see :func:`moviola.library.read_concept`.
        """
        from moviola.library.united_store import concept_in, concepts_in

        store, settings = self._store, self._store.settings
        return [concept_in(store, settings, name, of_any_encoder=True) for name in concepts_in(store)]

    def forget(self, name: str) -> None:
        """Delete a concept.

        Raises:
            NotFound: no such concept.
            InvalidValue: the library was opened read-only.
            LibraryLocked: another process is writing.
        """
        require_kind("concept", name, str, "its name")
        with self._store.writing():
            forget_concept(self._store.folder, name.removeprefix("@"))
