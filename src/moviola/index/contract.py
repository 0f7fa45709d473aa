"""What every backend does. A new backend is done when ``tests/index/test_conformance.py`` passes for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue

__all__ = ["Index"]

# How far from 1 the norm of a float32 vector may be that went through half precision on the way.
_NORM_TOLERANCE = 5e-3


class Index(ABC):
    """Vectors under int64 ids, searched by inner product.

    The public methods check their input; a backend fills in the underscored ones.
    """

    def __init__(self, dim: int) -> None:
        if dim < 1:
            raise InvalidValue(f"index dimension {dim}: must be at least 1")
        self.dim = dim

    @abstractmethod
    def __len__(self) -> int:
        """Number of vectors."""

    def add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
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
        known = self.ids()
        repeated = ids[np.isin(ids, known)]
        if len(repeated) or len(np.unique(ids)) != len(ids):
            which = repeated[0] if len(repeated) else "given twice"
            raise InvalidValue(f"segment id {which}: present already; remove it first")
        self._add(ids, vectors)

    def remove(self, ids: NDArray[np.int64]) -> int:
        """Remove vectors by id, (n,) int64; unknown ids are passed over. Returns how many were removed."""
        before = len(self)
        if len(ids):
            self._remove(np.unique(np.asarray(ids, dtype=np.int64)))
        return before - len(self)

    def search(
        self, queries: NDArray[np.float32], k: int, *, allowed: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The ``k`` nearest vectors of each query.

        Args:
            queries: (q, dim) float32, L2-normalised.
            k: depth, >= 1; answers are shorter when fewer vectors are there.
            allowed: (m,) int64; when given, only these ids are searched.

        Returns:
            scores (q, k') float32, cosines, falling along each row, and ids (q, k') int64 with
            k' = min(k, vectors that may be found). Among those returned, the smaller id comes first where
            scores are equal.
        """
        queries = self._checked(queries)
        if k < 1:
            raise InvalidValue(f"k={k}: ask for at least one segment")
        if allowed is not None:
            allowed = np.intersect1d(np.asarray(allowed, dtype=np.int64), self.ids())
        depth = min(k, len(self) if allowed is None else len(allowed))
        if depth == 0 or len(queries) == 0:
            shape = (len(queries), 0)
            return np.empty(shape, np.float32), np.empty(shape, np.int64)
        scores, ids = self._search(queries, depth, allowed)
        order = np.lexsort((ids, -scores), axis=1)
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)

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

    @abstractmethod
    def ids(self) -> NDArray[np.int64]:
        """All ids, (n,) int64, in no particular order."""

    @abstractmethod
    def write(self, path: Path) -> None:
        """Write the vectors to a file; :func:`moviola.index.save_index` makes that atomic.

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
    def _add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None: ...

    @abstractmethod
    def _remove(self, ids: NDArray[np.int64]) -> None: ...

    @abstractmethod
    def _search(
        self, queries: NDArray[np.float32], depth: int, allowed: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
