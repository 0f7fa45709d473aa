"""The paper's approximate indexes (SPR, section 4.2): lists of neighbours, of whole or coded vectors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.files.file_rows import Rows
from moviola.index.contract import Ids, IndexStats, parts_of
from moviola.index.flat import FlatIndex
from moviola.index.trained import TrainedIndex

__all__ = ["IVFIndex", "IVFPQIndex", "parts_of_codes"]

_LISTS, _PROBES = 8192, 128
# faiss wants this many vectors per list; with fewer than 8,192 lists need, there are fewer lists.
_VECTORS_OF_LIST = 39
_ROWS_AT_ONCE = 1 << 16


class IVFIndex(TrainedIndex):
    """Whole vectors in 8,192 lists, ``parameters["probes"]`` (128) of which are read: the paper's IVF."""

    LADDERS: ClassVar = {"probes": (16, 32, 64, 128, 256, 512, 1024, 2048)}

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.parameters = {"probes": _PROBES}
        self._faiss: Any = None

    def stats(self) -> IndexStats:
        main = self._faiss
        return self._stats(0, 0) if main is None else self._stats(main.nlist, main.code_size)

    def write(self, path: Path) -> None:
        """Add and remove pending vectors in the lists, and write a faiss file."""
        if self._faiss is None:
            self._recent.write(path)
            return
        if len(self._recent) or len(self._gone):
            self._faiss = _in_memory(self._faiss)
            self._faiss.remove_ids(self._gone)
            ids = self._recent.ids()
            self._faiss.add_with_ids(self._recent.vectors_of(ids), ids)
            self._recent, self._gone = FlatIndex(self.dim), self._gone[:0]
        _write_faiss(self._faiss, path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a faiss file; its lists are mapped and read as needed."""
        import faiss

        stored = _read_faiss(path, faiss.IO_FLAG_MMAP)
        index = cls(stored.d)
        if isinstance(stored, faiss.IndexIDMap2):
            index._recent = FlatIndex.read(path)
        elif isinstance(stored, faiss.IndexIVF):
            index._faiss = stored
        else:
            raise SegmentIndexError(f"{path}: holds a {type(stored).__name__}, not lists; rebuild it")
        return index

    def _main_count(self) -> int:
        return 0 if self._faiss is None else int(self._faiss.ntotal)

    def _main_ids(self) -> Ids:
        import faiss

        if self._faiss is None:
            return np.empty(0, np.int64)
        lists = self._faiss.invlists
        sizes = ((number, lists.list_size(number)) for number in range(lists.nlist))
        own = [faiss.rev_swig_ptr(lists.get_ids(number), size) for number, size in sizes if size]
        return np.concatenate([np.empty(0, np.int64), *own])

    def _train(self, ids: Ids, vectors: Rows) -> None:
        lists = min(_LISTS, len(vectors) // _VECTORS_OF_LIST)
        main = self._empty(lists)
        main.cp.seed, main.cp.min_points_per_centroid = 0, 1
        # All vectors, as in the paper; the lists hold them anyway.
        main.train(np.asarray(vectors[:], np.float32))
        for part in parts_of(len(ids), _ROWS_AT_ONCE):
            main.add_with_ids(np.asarray(vectors[part], np.float32), ids[part])
        self._faiss = main

    def _empty(self, lists: int) -> Any:
        """An untrained faiss index with a number of lists."""
        import faiss

        return faiss.IndexIVFFlat(faiss.IndexFlatIP(self.dim), self.dim, lists, faiss.METRIC_INNER_PRODUCT)

    def _forget(self) -> None:
        self._faiss = None

    def _search_main(
        self, queries: NDArray[np.float32], depth: int, only: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        import faiss

        chosen: Any = None
        if only is not None:
            chosen = faiss.IDSelectorBatch(only)
        elif len(self._gone):
            chosen = faiss.IDSelectorNot(faiss.IDSelectorBatch(self._gone))
        # By keyword: early versions of faiss keep no reference to what is assigned.
        parameters: Any = faiss.IVFSearchParameters(sel=chosen)  # type: ignore[call-arg]
        parameters.nprobe = min(self.parameters["probes"], self._faiss.nlist)
        scores, ids = self._faiss.search(queries, depth, params=parameters)
        # faiss pads with -1 where the probed lists hold too few; all lists together hold enough.
        short = np.flatnonzero(ids[:, -1] < 0)
        if len(short):
            parameters.nprobe = self._faiss.nlist
            scores[short], ids[short] = self._faiss.search(queries[short], depth, params=parameters)
        return scores, ids


class IVFPQIndex(IVFIndex):
    """Vectors as 16 codes of 8 bits in 8,192 lists: the paper's IVFPQ.

    Scores are those of the codes, not cosines of the vectors, and half of the 200 nearest segments are missed
    (``benchmarks/index.md``). It serves as a comparison.
    """

    def _empty(self, lists: int) -> Any:
        import faiss

        middles, parts = faiss.IndexFlatIP(self.dim), parts_of_codes(self.dim)
        main = faiss.IndexIVFPQ(middles, self.dim, lists, parts, 8, faiss.METRIC_INNER_PRODUCT)
        main.pq.cp.seed, main.pq.cp.min_points_per_centroid = 0, 1
        return main


def parts_of_codes(dim: int) -> int:
    """Codes of a vector, at most 16: all stand for the same number of dimensions."""
    return math.gcd(dim, 16)


def _in_memory(main: Any) -> Any:
    """The same faiss index with lists that can be changed: those of a file cannot."""
    import faiss

    mapped = main.invlists
    lists: Any = faiss.ArrayInvertedLists(mapped.nlist, mapped.code_size)
    for number in range(mapped.nlist):
        if size := mapped.list_size(number):
            lists.add_entries(number, size, mapped.get_ids(number), mapped.get_codes(number))
    main.replace_invlists(lists, True)
    lists.this.disown()
    return main


def _write_faiss(index: Any, path: Path) -> None:
    """Write an index of faiss; errors as in :meth:`moviola.index.Index.write`."""
    import faiss

    try:
        faiss.write_index(index, str(path))
    except RuntimeError as error:
        raise SegmentIndexError(
            f"{path}: cannot be written ({_first_line(error)}); is there room on the disk?"
        ) from error


def _read_faiss(path: Path, flags: int) -> Any:
    """Read an index of faiss, of any type; errors as in :meth:`moviola.index.Index.read`."""
    import faiss

    try:
        return faiss.read_index(str(path), flags)
    except RuntimeError as error:
        raise SegmentIndexError(f"{path}: damaged index file ({_first_line(error)}); rebuild it") from error


def _first_line(error: Exception) -> str:
    """First line of an error of faiss, without the place in its source."""
    return str(error).strip().splitlines()[0]
