"""Exact search over all vectors with faiss: the default in libraries of up to some ten thousand segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.index.contract import Ids, Index, parts_of
from moviola.threads import one_faiss_thread

__all__ = ["FlatIndex", "read_faiss", "write_faiss"]

# Files from this size on are mapped, and read into memory only before a change.
_MAPPED_FROM_BYTES = 1 << 26
_COPIED_ROWS = 1 << 16
# Changes that are always few.
_FEW_AT_LEAST = 4096
# For at most this number of queries faiss sums each product by itself. Many at once it multiplies by the
# BLAS, whose sums depend on how many there are.
_SUMMED_ALONE = 16


class FlatIndex(Index):
    """Uncompressed float32 vectors, exhaustively compared (SPR, section 4.2: "Flat", the paper's default)."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        import faiss

        self._faiss: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dim))
        self._mapped = False

    def __len__(self) -> int:
        return int(self._faiss.ntotal)

    def ids(self) -> Ids:
        """All ids, (n,) int64, in the order of adding."""
        import faiss

        return np.asarray(faiss.vector_to_array(self._faiss.id_map), dtype=np.int64)

    def vectors_of(self, ids: Ids) -> NDArray[np.float32]:
        """Vectors (n, dim) float32 of ids that are there, bit by bit as they were given."""
        return np.asarray(self._faiss.reconstruct_batch(ids), dtype=np.float32)

    def few(self, changes: int) -> bool:
        """Half of all: they are compared as the others are, and a file that has doubled is written again."""
        return changes <= max(_FEW_AT_LEAST, len(self) // 2)

    def write(self, path: Path) -> None:
        write_faiss(self._faiss, path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a faiss file; a large one is mapped and read as needed."""
        import faiss

        large = path.stat().st_size >= _MAPPED_FROM_BYTES
        stored = read_faiss(path, faiss.IO_FLAG_MMAP_IFC if large else 0)
        if not isinstance(stored, faiss.IndexIDMap2):
            raise SegmentIndexError(f"{path}: holds a {type(stored).__name__}, not a flat index; rebuild it")
        index = cls(stored.d)
        index._faiss = stored
        index._mapped = large
        return index

    def _add(self, ids: Ids, vectors: NDArray[np.float32]) -> None:
        self._own()
        self._faiss.add_with_ids(vectors, ids)

    def _remove(self, ids: Ids) -> None:
        self._own()
        self._faiss.remove_ids(ids)

    def _own(self) -> None:
        """Copy mapped vectors into memory, before a change."""
        import faiss

        if not self._mapped:
            return
        mapped, self._mapped = self._faiss, False
        rows, ids = faiss.downcast_index(mapped.index), self.ids()
        self._faiss = faiss.IndexIDMap2(faiss.IndexFlatIP(self.dim))
        for part in parts_of(len(ids), _COPIED_ROWS):
            self._faiss.add_with_ids(rows.reconstruct_n(part.start, len(ids[part])), ids[part])

    def _search(
        self, queries: NDArray[np.float32], depth: int, allowed: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        import faiss

        parameters = None
        if allowed is not None:
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorBatch(allowed))  # type: ignore[call-arg]
        parts = parts_of(len(queries), _SUMMED_ALONE)
        # Two threads share one query in up to twice the time that one takes.
        with one_faiss_thread(len(queries) == 1):
            found = [self._faiss.search(queries[part], depth, params=parameters) for part in parts]
        scores, ids = (np.concatenate(column) for column in zip(*found, strict=True))
        return scores, ids


def write_faiss(index: Any, path: Path) -> None:
    """Write an index of faiss; errors as in :meth:`moviola.index.Index.write`."""
    import faiss

    try:
        faiss.write_index(index, str(path))
    except RuntimeError as error:
        raise SegmentIndexError(
            f"{path}: cannot be written ({first_line(error)}); is there room on the disk?"
        ) from error


def read_faiss(path: Path, flags: int) -> Any:
    """Read an index of faiss, of any type; errors as in :meth:`moviola.index.Index.read`."""
    import faiss

    try:
        return faiss.read_index(str(path), flags)
    except RuntimeError as error:
        raise SegmentIndexError(f"{path}: damaged index file ({first_line(error)}); rebuild it") from error


def first_line(error: Exception) -> str:
    """First line of an error of faiss, without the place in its source."""
    return str(error).strip().splitlines()[0]
