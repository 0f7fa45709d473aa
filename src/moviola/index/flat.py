"""Exact search over all vectors with faiss: the default, and right up to about a million segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.index.contract import Index

__all__ = ["FlatIndex"]


class FlatIndex(Index):
    """Uncompressed float32 vectors, exhaustively compared (SPR, section 4.2: "Flat", the paper's default)."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        import faiss

        self._faiss: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dim))

    def __len__(self) -> int:
        return int(self._faiss.ntotal)

    def ids(self) -> NDArray[np.int64]:
        import faiss

        return np.asarray(faiss.vector_to_array(self._faiss.id_map), dtype=np.int64)

    def write(self, path: Path) -> None:
        import faiss

        try:
            faiss.write_index(self._faiss, str(path))
        except RuntimeError as error:
            raise SegmentIndexError(
                f"{path}: cannot be written ({_first_line(error)}); is there room on the disk?"
            ) from error

    @classmethod
    def read(cls, path: Path) -> Self:
        import faiss

        try:
            stored = faiss.read_index(str(path))
        except RuntimeError as error:
            raise SegmentIndexError(
                f"{path}: damaged index file ({_first_line(error)}); rebuild it"
            ) from error
        if not isinstance(stored, faiss.IndexIDMap2):
            raise SegmentIndexError(f"{path}: holds a {type(stored).__name__}, not a flat index; rebuild it")
        index = cls(stored.d)
        index._faiss = stored
        return index

    def _add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        self._faiss.add_with_ids(vectors, ids)

    def _remove(self, ids: NDArray[np.int64]) -> None:
        self._faiss.remove_ids(ids)

    def _search(
        self, queries: NDArray[np.float32], depth: int, allowed: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        import faiss

        if allowed is None:
            scores, ids = self._faiss.search(queries, depth)
        else:
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorBatch(allowed))  # type: ignore[call-arg]
            scores, ids = self._faiss.search(queries, depth, params=parameters)
        return scores, ids


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
