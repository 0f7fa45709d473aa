"""Several indexes searched as one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, SegmentIndexError
from moviola.index.contract import Ids, Index, IndexStats, MadeOf, best_first
from moviola.threads import compute_threads

__all__ = ["SeveralIndexes"]


class SeveralIndexes(Index):
    """The nearest vectors of all of several indexes, which cannot be changed through it. They are searched
    side by side, by as many threads as the process may use.

    Each is searched to the whole depth, so what it finds of the nearest it finds here: of exact indexes the
    answer is that of one that holds all vectors, of others it is at least as near as theirs.

    Args:
        parts: of one dimension.
        firsts: what is added to the ids of each, rising by more than its largest id.
    """

    def __init__(self, parts: Sequence[Index], firsts: Sequence[int]) -> None:
        super().__init__(parts[0].dim)
        self._parts, self._firsts = tuple(parts), np.array(firsts, np.int64)
        self._divided = MadeOf[tuple[Ids, ...]]()
        self._threads = ThreadPoolExecutor(min(compute_threads(), len(parts)), "indexes")

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def ids(self) -> Ids:
        """All ids, (n,) int64."""
        return np.concatenate(
            [part.sorted_ids() + first for part, first in zip(self._parts, self._firsts, strict=True)]
        )

    def stats(self) -> IndexStats:
        """Of all together; bytes and parameters are those of the largest."""
        every = [part.stats() for part in self._parts]
        largest = max(every, key=lambda one: one.vectors)
        vectors, added, removed, lists = (
            sum(getattr(one, name) for one in every) for name in ("vectors", "added", "removed", "lists")
        )
        return IndexStats(
            vectors, added, removed, lists, largest.scanned_bytes, largest.ranked_bytes, largest.parameters
        )

    def write(self, path: Path) -> None:
        raise SegmentIndexError(f"{path}: several indexes have a file each; write them one by one")

    @classmethod
    def read(cls, path: Path) -> Self:
        raise SegmentIndexError(f"{path}: several indexes have a file each; read them one by one")

    def _add(self, ids: Ids, vectors: NDArray[np.float32]) -> None:
        raise InvalidValue(f"{len(ids)} vectors: add them to one of the indexes that are searched as one")

    def _remove(self, ids: Ids) -> None:
        raise InvalidValue(f"{len(ids)} ids: remove them from one of the indexes that are searched as one")

    def _search(
        self, queries: NDArray[np.float32], depth: int, allowed: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        own: Sequence[Ids | None] = [None] * len(self._parts)
        if allowed is not None:
            own = self._divided.of(allowed, self, self._own_ids)
        found = list(self._threads.map(partial(_searched, queries, depth), self._parts, own))
        scores = np.concatenate([scores for scores, _ in found], axis=1)
        ids = np.concatenate(
            [ids + first for (_, ids), first in zip(found, self._firsts, strict=True)], axis=1
        )
        return best_first(scores, ids, depth)

    def _own_ids(self, ids: Ids) -> tuple[Ids, ...]:
        """Rising ids as each index has them; not to be written to."""
        bounds = [*np.searchsorted(ids, self._firsts).tolist(), len(ids)]
        own = []
        for first, begin, end in zip(self._firsts, bounds, bounds[1:], strict=False):
            part = ids[begin:end] - first
            part.flags.writeable = False
            own.append(part)
        return tuple(own)


def _searched(
    queries: NDArray[np.float32], depth: int, part: Index, allowed: Ids | None
) -> tuple[NDArray[np.float32], Ids]:
    return part.search(queries, depth, allowed=allowed)
