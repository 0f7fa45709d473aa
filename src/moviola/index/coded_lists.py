"""Lists of 4-bit codes: how they are learnt, and which of their vectors come nearest by their codes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.index.contract import Ids
from moviola.index.mapped_lists import map_lists, packed_lists
from moviola.index.threads import one_faiss_thread

__all__ = ["CodedLists", "learnt_lists"]

_VECTORS_OF_LIST = 375
_SAMPLE_OF_LIST, _SAMPLE_OF_CODES = 64, 1 << 15
_ROUNDS = 10
_ROWS_AT_ONCE = 1 << 14
# Fewer queries than this are searched on one thread: others only wait for each other.
_FEW_QUERIES = 16


def learnt_lists(vectors: NDArray[Any]) -> dict[str, tuple[NDArray[Any], str]]:
    """Sort vectors (n, dim) into lists and code them.

    Their number is the power of two that puts about 375 vectors into each, so that looking at as many lists
    costs the same in a library of any size.

    Returns:
        the arrays that :class:`CodedLists` takes, with the data types to store them in, and ``list_of``, the
        list of each vector.
    """
    import faiss

    dim, generator = vectors.shape[1], np.random.default_rng(0)
    lists = 1 << max(0, round(np.log2(len(vectors) / _VECTORS_OF_LIST)))
    mean = _mean(vectors)
    sample = generator.permutation(len(vectors))[: max(lists * _SAMPLE_OF_LIST, _SAMPLE_OF_CODES)]
    learnt_of = vectors[np.sort(sample)].astype(np.float32) - mean
    means = faiss.Kmeans(
        dim, lists, niter=_ROUNDS, seed=0, min_points_per_centroid=1, max_points_per_centroid=_SAMPLE_OF_LIST
    )
    means.train(learnt_of)
    index = _index(means.centroids)
    left = learnt_of[:_SAMPLE_OF_CODES]
    left = left - means.centroids[index.quantizer.search(left, 1)[1][:, 0]]
    index.pq.cp.niter, index.pq.cp.min_points_per_centroid = _ROUNDS, 1
    index.pq.train(left)
    for begin in range(0, len(vectors), _ROWS_AT_ONCE):
        index.add(vectors[begin : begin + _ROWS_AT_ONCE].astype(np.float32) - mean)
    return _arrays(index, means.centroids)


def _mean(vectors: NDArray[Any]) -> NDArray[np.float32]:
    total = np.zeros(vectors.shape[1])
    for begin in range(0, len(vectors), _ROWS_AT_ONCE):
        total += vectors[begin : begin + _ROWS_AT_ONCE].sum(axis=0, dtype=np.float64)
    return (total / len(vectors)).astype(np.float32)


def _arrays(index: Any, centroids: NDArray[np.float32]) -> dict[str, tuple[NDArray[Any], str]]:
    import faiss

    codes, table = packed_lists(index)
    list_of = np.empty(index.ntotal, np.uint32)
    invlists = index.invlists
    for number in range(index.nlist):
        if size := invlists.list_size(number):
            list_of[faiss.rev_swig_ptr(invlists.get_ids(number), size)] = number
    return {
        "list_of": (list_of, "<u4"),
        "centroids": (centroids, "<f4"),
        "codebook": (faiss.vector_to_array(index.pq.centroids), "<f4"),
        "table": (table, "<u8"),
        "codes": (codes, "u1"),
    }


def _index(centroids: NDArray[np.float32]) -> Any:
    """A faiss index without vectors: sorts by distance, and scores by inner product."""
    import faiss

    lists, dim = centroids.shape
    nearest = faiss.IndexFlatL2(dim)
    nearest.add(centroids)
    parts = dim // 2 if dim % 2 == 0 else dim
    index = faiss.IndexIVFPQFastScan(nearest, dim, lists, parts, 4, faiss.METRIC_INNER_PRODUCT)
    index.by_residual, index.is_trained = True, True
    return index


@dataclass(frozen=True)
class Nearest:
    """The lists in the order in which queries look at them, (q, lists): numbers, and scores of the middles."""

    lists: Ids
    scores: NDArray[np.float32]

    def of(self, query: int) -> Nearest:
        """Those of one query."""
        return Nearest(self.lists[query : query + 1], self.scores[query : query + 1])


class CodedLists:
    """Lists of codes in a file; vectors are numbered from 0.

    Args:
        centroids: (lists, dim) float32, the middles.
        codebook: what the codes stand for.
        table: see :func:`moviola.index.mapped_lists.packed_lists`.
        path, offset: where the lists begin.
    """

    def __init__(
        self,
        centroids: NDArray[np.float32],
        codebook: NDArray[np.float32],
        table: NDArray[np.uint64],
        path: Path,
        offset: int,
    ) -> None:
        import faiss

        self._centroids = np.array(centroids)
        self._faiss = _index(self._centroids)
        faiss.copy_array_to_vector(np.array(codebook), self._faiss.pq.centroids)
        map_lists(self._faiss, path, offset, np.asarray(table))

    def __len__(self) -> int:
        return len(self._centroids)

    @property
    def code_size(self) -> int:
        """Bytes of a code."""
        return int(self._faiss.code_size)

    def nearest(self, queries: NDArray[np.float32]) -> Nearest:
        """All lists, those whose middles score best first."""
        scores = queries @ self._centroids.T
        order = np.argsort(-scores, axis=1, kind="stable")
        return Nearest(order, np.take_along_axis(scores, order, axis=1))

    def search(
        self,
        queries: NDArray[np.float32],
        nearest: Nearest,
        probes: int,
        count: int,
        allowed: NDArray[np.bool_] | None,
    ) -> Ids:
        """Vectors in the first ``probes`` lists by the scores of their codes.

        Args:
            queries: (q, dim) float32.
            nearest: their lists.
            probes, count: how many lists, and how many vectors.
            allowed: (n,) bool, those that may be found; None: all.

        Returns:
            (q, count) int64, -1 where the lists hold no more.
        """
        import faiss

        parameters = faiss.IVFSearchParameters()
        parameters.nprobe = probes
        if allowed is not None:
            parameters.sel = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        lists = np.ascontiguousarray(nearest.lists[:, :probes])
        middles = np.ascontiguousarray(nearest.scores[:, :probes])
        scores = np.empty((len(queries), count), np.float32)
        found = np.empty((len(queries), count), np.int64)
        inputs = (faiss.swig_ptr(array) for array in (lists, middles, scores, found))
        with one_faiss_thread(len(queries) < _FEW_QUERIES):
            self._faiss.search_preassigned_c(
                len(queries), faiss.swig_ptr(queries), count, *inputs, False, parameters, None
            )
        return found
