"""Common base of the types that learn from their vectors: a main part, and later additions.

Added vectors are not sorted into the main part: they are compared exactly (``recent``) until a writer
rebuilds it; until there are enough vectors to learn from, there is no main part. Removed vectors are left out
of every search at once.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.files.file_rows import Rows
from moviola.index.contract import Ids, Index, IndexStats, MadeOf
from moviola.index.flat import FlatIndex

__all__ = ["TrainedIndex"]


class TrainedIndex(Index):
    """An index with a main part learnt from its vectors.

    Attributes:
        LEAST: minimum number of vectors to learn from.
    """

    LEAST = 1024

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.parameters = {name: values[-1] for name, values in self.LADDERS.items()}
        self._recent = FlatIndex(dim)
        self._gone = np.empty(0, np.int64)
        self._older = MadeOf[Ids]()

    def __len__(self) -> int:
        return self._main_count() - len(self._gone) + len(self._recent)

    def ids(self) -> Ids:
        """All ids, (n,) int64: of the main part, then later ones."""
        main = self._main_ids()
        main = main[~np.isin(main, self._gone)] if len(self._gone) else main
        return np.concatenate([main, self._recent.ids()])

    def build(self, ids: Ids, vectors: Rows) -> None:
        ids = self._checked_all(ids, vectors)
        enough = len(ids) >= self.LEAST
        if enough:  # first of all: where it fails, for one on a full disk, the index stays as it was
            order = np.argsort(ids)
            in_order = bool((np.diff(order) == 1).all())
            self._train(ids[order], vectors if in_order else vectors[order])
        self._sorted, self.origin = None, ""
        self._gone, self._recent = ids[:0], FlatIndex(self.dim)
        if not enough:
            self._forget()
            self._add_all(ids, vectors)

    def _stats(self, lists: int, scanned_bytes: int, ranked_bytes: int = 0) -> IndexStats:
        counts = len(self), len(self._recent), len(self._gone), lists
        return IndexStats(*counts, scanned_bytes, ranked_bytes, dict(self.parameters))

    def vectors_of(self, ids: Ids) -> NDArray[np.floating[Any]] | None:
        return self._recent.vectors_of(ids)

    def _add(self, ids: Ids, vectors: NDArray[np.float32]) -> None:
        self._recent.add(ids, vectors)

    def _remove(self, ids: Ids) -> None:
        recent = self._recent.has(ids)
        self._recent.remove(ids[recent])
        self._gone = np.union1d(self._gone, ids[~recent])

    def _search(
        self, queries: NDArray[np.float32], depth: int, allowed: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        if not len(self._recent):
            return self._search_main(queries, depth, allowed)
        scores, ids = self._recent.found(queries, depth, allowed)
        only = None
        if allowed is not None:
            only = self._older.of(allowed, self._recent.sorted_ids(), self._older_of)
        findable = self._main_count() - len(self._gone) if only is None else len(only)
        if findable:
            more = self._search_main(queries, min(depth, findable), only)
            scores, ids = np.concatenate([scores, more[0]], axis=1), np.concatenate([ids, more[1]], axis=1)
        return scores, ids

    def _older_of(self, ids: Ids) -> Ids:
        """Those of some present ids that are of the main part; not to be written to."""
        older = ids[~self._recent.has(ids)]
        older.flags.writeable = False
        return older

    @abstractmethod
    def _main_count(self) -> int:
        """Number of vectors of the main part, removed ones included."""

    @abstractmethod
    def _main_ids(self) -> Ids:
        """Ids (n,) int64 of the main part, removed ones included."""

    @abstractmethod
    def _train(self, ids: Ids, vectors: Rows) -> None:
        """Make the main part of vectors (n, dim), float32 or float16, under rising ids."""

    @abstractmethod
    def _forget(self) -> None: ...

    @abstractmethod
    def _search_main(
        self, queries: NDArray[np.float32], depth: int, only: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        """The best ``depth`` of the main part, all there: without what is gone, or of some ids ``only``."""
