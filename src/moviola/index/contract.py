"""Contract of the backends. A new one is done when ``tests/find/index/test_conformance.py`` passes for it."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, SegmentIndexError
from moviola.files.file_rows import Rows
from moviola.files.parts import Groups, NewFile, PartFile

__all__ = [
    "ROWS_AT_ONCE", "Ids", "Index", "IndexStats", "MadeOf", "best_first", "parts_of",
]  # fmt: skip

Ids = NDArray[np.int64]

# Tolerance of the norm of a float32 vector that was rounded to half precision on the way.
_NORM_TOLERANCE = 5e-3
ROWS_AT_ONCE = 1 << 12
"""Vectors per block where there may be many."""
# Changes that are always few, and vectors of the whole for one of more.
_FEW_AT_LEAST, _MAIN_OF_FEW = 4096, 64

Made = TypeVar("Made")


@dataclass(frozen=True)
class IndexStats:
    """Size of an index, and the bytes that a search reads.

    Attributes:
        vectors: number of searchable vectors.
        added: of those, the number that came after the last training and are compared exactly.
        removed: vectors that cannot be found any more and still take space.
        lists: number of lists of the others; 0 without.
        scanned_bytes: bytes per vector that is scanned.
        ranked_bytes: bytes per candidate that is compared again; 0 without.
        parameters: search parameters, by name.
    """

    vectors: int
    added: int
    removed: int
    lists: int
    scanned_bytes: int
    ranked_bytes: int
    parameters: Mapping[str, int]


class MadeOf(Generic[Made]):
    """What was made of arrays that nobody writes to, for as long as each is in use. Safe for threads.

    The object that is made must not hold the array, nor may the state hold anything that does.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Ids], object, Made]] = {}

    def of(self, ids: Ids, state: object, make: Callable[[Ids], Made]) -> Made:
        """What ``make`` makes of ids, in a state of an index: an object, another one after a change."""
        if ids.flags.writeable:
            return make(ids)
        known = self._known.get(id(ids))
        if known is None or known[0]() is not ids or known[1] is not state:
            known = weakref.ref(ids), state, make(ids)
            used = {number: one for number, one in list(self._known.items()) if one[0]() is not None}
            self._known = {**used, id(ids): known}
        return known[2]


class Index(ABC):
    """Vectors under int64 ids, searched by inner product.

    The public methods check their input; a backend implements the underscored ones.

    Attributes:
        LADDERS: search parameters, with the values that tuning tries, rising.
        ON_SERVER: whether vectors go to a server, part by part, and not into files.
        parameters: their present values; written and read with the index.
        origin: digest of the manifest that the index was read by; empty for one made in memory.
        home: folder and name of a saved index, as one path; empty before that.
        added, removed: ids (n,) int64, rising, added and removed since the index was read or published. A
            removed id was in it; an id may be in both.
    """

    LADDERS: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    ON_SERVER: ClassVar[bool] = False

    @classmethod
    def at(cls, address: str) -> type[Self]:
        """The type whose vectors are at an address, for a type that has addresses.

        Raises:
            InvalidValue: it has none, or this is no address of its servers; the message names no secret.
        """
        raise InvalidValue(f"index: {cls.__name__} has no addresses; give its name alone")

    @classmethod
    def shown(cls) -> str:
        """What may be shown of the address; empty for a type without."""
        return ""

    def __init__(self, dim: int) -> None:
        if dim < 1:
            raise InvalidValue(f"index dimension {dim}: must be at least 1")
        self.dim = dim
        self.parameters: dict[str, int] = {}
        self.origin = self.home = ""
        self.added = self.removed = np.empty(0, np.int64)
        self._sorted: Ids | None = None
        self._present = MadeOf[Ids]()

    @abstractmethod
    def __len__(self) -> int: ...

    def add(self, ids: Ids, vectors: NDArray[np.float32]) -> None:
        """Add vectors.

        Args:
            ids: (n,) int64, >= 0, none of them present already.
            vectors: (n, dim) float32, L2-normalised.

        Raises:
            InvalidValue: shapes differ, an id is negative or present, a vector is not finite or not of
                length 1. Nothing is added then.
        """
        vectors = self._checked(vectors)
        ids = np.asarray(ids, dtype=np.int64)
        if ids.shape != (len(vectors),):
            raise InvalidValue(f"{len(vectors)} vectors but ids of shape {ids.shape}: give one id a vector")
        if len(ids) == 0:
            return
        if ids.min() < 0:
            raise InvalidValue(f"segment id {ids.min()}: ids must not be negative")
        repeated = ids[self.has(ids)]
        if len(repeated) or len(np.unique(ids)) != len(ids):
            which = repeated[0] if len(repeated) else "given twice"
            raise InvalidValue(f"segment id {which}: present already; remove it first")
        self._add(ids, vectors)
        self._sorted, self.added = None, np.union1d(self.added, ids)

    def build(self, ids: Ids, vectors: Rows) -> None:
        """Replace all vectors, and learn from the new ones; each id once, errors as in :meth:`add`.

        Args:
            vectors: (n, dim) float32 or float16, L2-normalised: an array, or rows in a file, of which a type
                keeps at most its own storage, a sample and a block in memory. Ids must rise for that.
        """
        ids = self._checked_all(ids, vectors)
        self.remove(self.ids())
        self._add_all(ids, vectors)
        self._sorted, self.added = None, np.union1d(self.added, ids)
        self.origin = ""

    def _add_all(self, ids: Ids, vectors: Rows) -> None:
        for part in parts_of(len(ids), ROWS_AT_ONCE):
            self._add(ids[part], np.ascontiguousarray(vectors[part], np.float32))

    def extend(self, ids: Ids, vectors: Rows) -> None:
        """Add vectors, many at once, block by block; arguments and errors as in :meth:`build`, but that
        blocks before an error are added.
        """
        ids = np.asarray(ids, np.int64)
        for part in parts_of(len(ids), ROWS_AT_ONCE):
            self.add(ids[part], np.asarray(vectors[part], np.float32))

    def remove(self, ids: Ids) -> int:
        """Remove vectors by id, (n,) int64; unknown ids are ignored. Returns the number of removed ones."""
        ids = _rising(np.asarray(ids, dtype=np.int64))
        ids = ids[self.has(ids)]
        if len(ids):
            self._remove(ids)
            fresh = np.isin(ids, self.added)
            self.removed = np.union1d(self.removed, ids[~fresh])
            self._sorted, self.added = None, np.setdiff1d(self.added, ids[fresh])
        return len(ids)

    def _those_of(self, ids: Ids) -> Ids:
        """Those of some ids that are present, rising, each once; not to be written to."""
        ids = _rising(ids)
        there = ids[self.has(ids)]
        there.flags.writeable = False
        return there

    def has(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of some ids (n,) int64 are present, (n,) bool."""
        known = self.sorted_ids()
        if not len(known):
            return np.zeros(len(ids), np.bool_)
        return np.asarray(known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids)

    def _state(self) -> object:
        """An object, another one after each change."""
        return self.sorted_ids()

    def sorted_ids(self) -> Ids:
        """All ids, (n,) int64, rising; not to be written to."""
        if self._sorted is None:
            ids = self.ids()
            self._sorted = _rising(ids)
        return self._sorted

    def search(
        self, queries: NDArray[np.float32], k: int, *, allowed: Ids | None = None
    ) -> tuple[NDArray[np.float32], Ids]:
        """The ``k`` nearest vectors of each query: the same alone and among other queries, to the bit.

        Args:
            k: depth, >= 1; answers are shorter if there are fewer vectors.
            allowed: (m,) int64; if given, only these ids are searched. With k = m it returns the score of
                each. An object made of an array that cannot be written to is kept as long as that array.

        Returns:
            scores (q, k') float32, cosines (or the type's approximation), falling along each row, and ids (q,
            k') int64 with k' = min(k, searchable vectors). Among those returned, the smaller id comes first
            where scores are equal.
        """
        queries = self._checked(queries)
        if k < 1:
            raise InvalidValue(f"k={k}: ask for at least one segment")
        found = self.found(queries, k, allowed)
        return best_first(*found, k)

    def found(
        self, queries: NDArray[np.float32], k: int, allowed: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        """What :meth:`search` puts in order, of queries that are as they must be: the best ``k'`` or more."""
        if allowed is not None:
            allowed = self._present.of(np.asarray(allowed, dtype=np.int64), self._state(), self._those_of)
        depth = min(k, len(self) if allowed is None else len(allowed))
        if depth == 0 or len(queries) == 0:
            return np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
        return self._search(queries, depth, allowed)

    def _checked(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise InvalidValue(f"vectors of shape {vectors.shape}: this index holds (n, {self.dim})")
        norms = np.linalg.norm(vectors, axis=1)
        wrong = np.flatnonzero(~(np.abs(norms - 1) < _NORM_TOLERANCE))
        if len(wrong):
            raise InvalidValue(
                f"vector {wrong[0]} has length {norms[wrong[0]]:.4g}: normalise vectors to length 1 first"
            )
        return vectors

    def _checked_all(self, ids: Ids, vectors: Rows) -> Ids:
        """Ids of a whole index; raises :class:`InvalidValue` for invalid ids or vectors."""
        ids = np.asarray(ids, dtype=np.int64)
        if ids.shape != (len(vectors),) or len(np.unique(ids)) != len(ids) or (ids < 0).any():
            raise InvalidValue(
                f"{len(vectors)} vectors, ids of shape {ids.shape}: give each an id of its own"
            )
        for part in parts_of(len(ids), ROWS_AT_ONCE):
            self._checked(vectors[part])
        return ids

    @abstractmethod
    def ids(self) -> Ids:
        """All ids, (n,) int64, in no particular order."""

    def id_parts(self) -> Iterator[Ids]:
        """All ids as in :meth:`ids`, in parts, for types that need not have all of them in memory at once."""
        yield self.ids()

    def stats(self) -> IndexStats:
        """Size, and the bytes that a search reads."""
        return IndexStats(len(self), 0, 0, 0, 4 * self.dim, 0, dict(self.parameters))

    def vectors_of(self, ids: Ids) -> NDArray[np.floating[Any]] | None:
        """Vectors of the :attr:`added` ids, (n, dim) float32 as given, or float16 if the type rounds them.

        None if a type does not keep them; its files are then written again after every addition.
        """
        return None

    def few(self, changes: int) -> bool:
        """Whether a number of changes is small beside the whole: they are then kept in files of their own,
        which every search compares exactly.
        """
        return changes <= max(_FEW_AT_LEAST, len(self) // _MAIN_OF_FEW)

    def take_over(self) -> bool:
        """Refresh the state of an index on a server; returns whether it differs from what was published.

        Raises:
            IndexServerError: the server does not answer.
        """
        return False

    def take_stock(self) -> bool:
        """Like :meth:`take_over`, compared id by id, not by numbers."""
        return False

    def published(self) -> None:  # noqa: B027 - most types have nothing to do
        """Called when a manifest names what was written; older data may be deleted."""

    def write_groups(self, new: NewFile, *, whole: bool) -> Groups:
        """Write what is not yet in files, and name those of the whole: some may be those that were read, but
        none of a ``whole`` one. Errors as in :meth:`write`.
        """
        return ((PartFile(new(self.write)),),)

    @classmethod
    def read_groups(cls, groups: Groups) -> Self:
        """Read what :meth:`write_groups` named; errors as in :meth:`read`."""
        if len(groups) != 1 or len(groups[0]) != 1 or groups[0][0].gone is not None:
            raise SegmentIndexError(f"{groups[-1][-1].path}: one of several files; rebuild the index")
        return cls.read(groups[0][0].path)

    @abstractmethod
    def write(self, path: Path) -> None:
        """Write all vectors to one file.

        Raises:
            SegmentIndexError: the file cannot be written.
        """

    @classmethod
    @abstractmethod
    def read(cls, path: Path) -> Self:
        """Read what :meth:`write` wrote.

        Raises:
            SegmentIndexError: the file is damaged.
        """

    @abstractmethod
    def _add(self, ids: Ids, vectors: NDArray[np.float32]) -> None: ...

    @abstractmethod
    def _remove(self, ids: Ids) -> None: ...

    @abstractmethod
    def _search(
        self, queries: NDArray[np.float32], depth: int, allowed: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]: ...


def _rising(ids: Ids) -> Ids:
    """Ids (n,) in order, each once."""
    # As they mostly are; looking costs a hundredth of sorting.
    return ids if (np.diff(ids) > 0).all() else np.unique(ids)


def parts_of(count: int, most: int) -> list[slice]:
    """Slices of at most ``most`` rows, one after the other."""
    return [slice(begin, begin + most) for begin in range(0, count, most)]


def best_first(
    scores: NDArray[np.float32], ids: Ids, depth: int | None = None
) -> tuple[NDArray[np.float32], Ids]:
    """The best ``depth``, or all, of each row of scores and ids (q, n), the smaller id first among equals."""
    order = np.lexsort((ids, -scores), axis=1)[:, :depth]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)
