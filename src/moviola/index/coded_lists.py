"""Lists of 4-bit codes: learning them, and finding the nearest vectors by their codes.

faiss keeps the lists of its fast scan in memory, in blocks of 32 vectors. The blocks of a list, followed by
the numbers of its vectors, have the layout of faiss's lists on disk, so they are mapped as such and scanned
where they lie in a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.files.file_rows import Rows
from moviola.index.contract import ROWS_AT_ONCE, Ids, parts_of
from moviola.index.half_rows import all_products

__all__ = ["Candidates", "CodedLists", "JoinedLists", "Nearest", "learnt_lists"]

_VECTORS_OF_LIST = 6000
_SAMPLE_OF_LIST, _SAMPLE_OF_CODES, _LARGEST_SAMPLE = 128, 1 << 15, 1 << 17
_ROUNDS = 10
# Axes are kept until they hold this share of the variance; the rest counts when vectors are compared.
_KEPT_VARIANCE, _AXES_AT_ONCE = 0.97, 32
# faiss's scan implementation for one query and one list at a time. Its default is made for many queries at
# once, and takes up to twice as long for one.
_QUERY_BY_QUERY = 11
# Vectors that each of several parts gives besides twice its share.
_SPARE = 64
# Vectors of a block, and bytes of a number of a vector.
_BLOCK, _NUMBER_BYTES = 32, 8


def learnt_lists(vectors: Rows) -> dict[str, tuple[Any, str]]:
    """Sort vectors (n, dim) into lists and code them.

    The number of lists is the power of two with about 6,000 vectors in each, so that probing a number of
    lists costs the same in a library of any size. In memory are a sample of at most
    131,072 vectors on the kept axes, twice, and the codes, once.

    Returns:
        the arrays of :class:`CodedLists` with the data types to store them in, and ``list_of`` each vector.
    """
    import faiss

    lists = 1 << max(0, round(np.log2(len(vectors) / _VECTORS_OF_LIST)))
    blocks = parts_of(len(vectors), ROWS_AT_ONCE)
    mean = sum(vectors[block].sum(axis=0, dtype=np.float64) for block in blocks) / len(vectors)
    mean = np.asarray(mean, np.float32)
    size = min(max(lists * _SAMPLE_OF_LIST, _SAMPLE_OF_CODES), _LARGEST_SAMPLE)
    chosen = np.sort(np.random.default_rng(0).permutation(len(vectors))[:size])
    axes = _axes(np.asarray(sum(own.T @ own for own in _centred(vectors, mean, chosen))))
    sample = np.empty((len(chosen), axes.shape[1]), np.float32)
    for part, own in zip(parts_of(len(chosen), ROWS_AT_ONCE), _centred(vectors, mean, chosen), strict=True):
        sample[part] = own @ axes
    bounds = {"min_points_per_centroid": 1, "max_points_per_centroid": _SAMPLE_OF_LIST}
    means: Any = faiss.Kmeans(axes.shape[1], lists, niter=_ROUNDS, seed=0, **bounds)
    means.train(sample)
    index = _index(means.centroids)
    left = np.ascontiguousarray(sample[:: -(-len(sample) // _SAMPLE_OF_CODES)])
    del sample
    for part in parts_of(len(left), ROWS_AT_ONCE):
        left[part] -= means.centroids[index.quantizer.search(left[part], 1)[1][:, 0]]
    index.pq.cp.niter, index.pq.cp.min_points_per_centroid = _ROUNDS, 1
    index.pq.train(left)
    del left
    for block in blocks:
        index.add((vectors[block].astype(np.float32) - mean) @ axes)
    return {"axes": (axes, "<f4"), "mean": (mean, "<f4"), **_arrays(index, means.centroids)}


def _centred(vectors: Rows, mean: NDArray[np.float32], chosen: Ids) -> Iterator[NDArray[np.float32]]:
    """Some vectors less their mean, (n, dim), block by block."""
    for part in parts_of(len(chosen), ROWS_AT_ONCE):
        yield np.asarray(vectors[chosen[part]], np.float32) - mean


def _axes(products: NDArray[np.float32]) -> NDArray[np.float32]:
    """The principal axes that hold nearly all variance, (dim, kept), the widest beside the narrowest, by the
    sum of the ``products`` (dim, dim) of each vector with itself.

    Two numbers share a code. In such pairs the codes go to the number that varies more.
    """
    variances, axes = np.linalg.eigh(products)
    share = np.cumsum(variances[::-1]) / max(float(variances.sum()), np.finfo(np.float32).tiny)
    kept = int(np.searchsorted(share, _KEPT_VARIANCE)) + 1
    kept = min(-(-kept // _AXES_AT_ONCE) * _AXES_AT_ONCE, len(variances))
    order = np.stack([np.arange(kept), np.arange(kept)[::-1]], axis=1).ravel()[:kept]
    return np.ascontiguousarray(axes[:, ::-1][:, order])


def _arrays(index: Any, centroids: NDArray[np.float32]) -> dict[str, tuple[Any, str]]:
    import faiss

    codes = _PackedLists(index)
    list_of = np.empty(index.ntotal, np.uint32)
    invlists = index.invlists
    for number in range(index.nlist):
        if size := invlists.list_size(number):
            list_of[faiss.rev_swig_ptr(invlists.get_ids(number), size)] = number
    return {
        "list_of": (list_of, "<u4"),
        "centroids": (centroids, "<f4"),
        "codebook": (faiss.vector_to_array(index.pq.centroids), "<f4"),
        "table": (codes.table, "<u8"),
        "codes": (codes, "u1"),
    }


class _PackedLists:
    """The bytes of the lists of a faiss fast-scan index, one after the other, (n,) uint8, copied slice by
    slice: there is no second copy of all codes in memory.

    Attributes:
        table: (lists, 3) uint64, the size of each in vectors, the room it has (whole blocks) and where it
            begins.
    """

    def __init__(self, index: Any) -> None:
        import faiss

        self._index = index  # which has the lists
        self._lists, self._code_size = faiss.downcast_InvertedLists(index.invlists), index.code_size
        sizes = np.array([self._lists.list_size(number) for number in range(index.nlist)], np.int64)
        room = -(-sizes // _BLOCK) * _BLOCK
        ends = np.cumsum(room * (self._code_size + _NUMBER_BYTES))
        begins = np.concatenate([ends[:0], [0], ends[:-1]])
        self.shape = (int(ends[-1]),)
        self.table = np.stack([sizes, room, begins], axis=1).astype(np.uint64)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, places: slice) -> NDArray[np.uint8]:
        begin, end, _ = places.indices(len(self))
        packed = np.zeros(end - begin, np.uint8)
        begins = self.table[:, 2].astype(np.int64)
        first, last = np.searchsorted(begins, [begin, end], side="right").tolist()
        for number in range(max(first - 1, 0), last):
            for piece, at in self._pieces(number, int(begins[number])):
                low, high = max(begin, at), min(end, at + len(piece))
                if low < high:
                    packed[low - begin : high - begin] = piece[low - at : high - at]
        return packed

    def _pieces(self, number: int, begin: int) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """The codes of a list, and the numbers of its vectors, as bytes, and where each begin."""
        import faiss

        size, room, _ = self.table[number].tolist()
        if size:
            codes = room * self._code_size
            yield faiss.rev_swig_ptr(self._lists.get_codes(number), codes), begin
            numbers = faiss.rev_swig_ptr(self._lists.get_ids(number), size)
            yield numbers.view(np.uint8), begin + codes


def _map_lists(index: Any, path: Path, offset: int, table: NDArray[np.uint64]) -> None:
    """Let a faiss index search lists in a file, which begin at ``offset`` and lie as in ``table``."""
    import faiss

    lists: Any = faiss.OnDiskInvertedLists()
    lists.filename, lists.read_only = str(path), True
    lists.nlist, lists.code_size, lists.totsize = len(table), index.code_size, path.stat().st_size
    lists.lists.resize(len(table))
    entries = np.ascontiguousarray(table + np.array([0, 0, offset], np.uint64))
    faiss.memcpy(lists.lists.data(), faiss.swig_ptr(entries), entries.nbytes)
    lists.do_mmap()
    index.replace_invlists(lists, True)
    lists.this.disown()
    index.ntotal = int(table[:, 0].sum())


def _index(centroids: NDArray[np.float32]) -> Any:
    """A faiss index without vectors: sorts by distance, and scores by inner product."""
    import faiss

    lists, dim = centroids.shape
    nearest = faiss.IndexFlatL2(dim)
    nearest.add(centroids)
    parts = dim // 2 if dim % 2 == 0 else dim
    index = faiss.IndexIVFPQFastScan(nearest, dim, lists, parts, 4, faiss.METRIC_INNER_PRODUCT)
    index.by_residual, index.is_trained = True, True
    index.implem = _QUERY_BY_QUERY
    return index


def _taken(values: NDArray[Any], places: Ids) -> NDArray[Any]:
    """Of each row of values (q, n) those at some places (q, m); NumPy's own function takes five times as long
    for one row.
    """
    return np.asarray(values[np.arange(len(values))[:, None], places])


@dataclass(frozen=True)
class Nearest:
    """Queries with their lists in the order of probing.

    Attributes:
        queries: (q, kept) float32 for each group of lists, on the axes of its codes.
        lists: (q, n) int64, numbers of lists.
        scores: (q, n) float32, how their middles score, falling.
    """

    queries: tuple[NDArray[np.float32], ...]
    lists: Ids
    scores: NDArray[np.float32]

    def of(self, numbers: Ids) -> Nearest:
        """Those of some queries (m,) by place."""
        queries = tuple(own[numbers] for own in self.queries)
        return Nearest(queries, self.lists[numbers], self.scores[numbers])

    def part(self, begin: int, end: int) -> Nearest:
        """Those that are probed from one turn to another."""
        lists = np.ascontiguousarray(self.lists[:, begin:end])
        return Nearest(self.queries, lists, np.ascontiguousarray(self.scores[:, begin:end]))

    def turns(self) -> Ids:
        """(q, lists) int64, turn in which each list, by its number, is probed; of all lists."""
        return np.argsort(self.lists, axis=1)


@dataclass(frozen=True)
class Candidates:
    """Vectors (q, n) int64 by the scores of their codes (q, n) float32, falling; -1 where none is left."""

    rows: Ids
    scores: NDArray[np.float32]

    def of(self, numbers: Ids) -> Candidates:
        """Those of some queries (m,) by place."""
        return Candidates(self.rows[numbers], self.scores[numbers])

    def merged(self, others: Candidates) -> Candidates:
        """The best n of these and of others."""
        return Candidates.best([self, others], self.rows.shape[1])

    @classmethod
    def best(cls, several: Sequence[Candidates], count: int) -> Candidates:
        """The best ``count`` of several, which have as many together."""
        rows = np.concatenate([one.rows for one in several], axis=1)
        scores = np.concatenate([one.scores for one in several], axis=1)
        if count < scores.shape[1]:
            chosen = np.sort(np.argpartition(-scores, count - 1, axis=1)[:, :count], axis=1)
            rows, scores = (
                _taken(rows, chosen),
                _taken(scores, chosen),
            )
        order = np.argsort(-scores, axis=1, kind="stable")
        return cls(_taken(rows, order), _taken(scores, order))


class CodedLists:
    """Lists of codes in a file; vectors are numbered from 0.

    They are ``learnt``: ``axes`` (dim, kept) float32, on which vectors are coded, ``mean`` (dim,) float32,
    which was subtracted, ``centroids`` (lists, kept) float32, the middles, ``codebook``, what the codes stand
    for, and ``table``, where in ``codes``, which begin at ``offset`` of ``path``, each list lies
    (:class:`_PackedLists`).
    """

    def __init__(self, learnt: Mapping[str, NDArray[Any]], path: Path, offset: int) -> None:
        import faiss

        # The axes, and the mean as one more.
        self._axes = np.array(np.vstack([learnt["axes"].T, learnt["mean"]]), order="C")
        self._centroids = np.array(learnt["centroids"])
        self._faiss = _index(self._centroids)
        faiss.copy_array_to_vector(np.array(learnt["codebook"]), self._faiss.pq.centroids)
        _map_lists(self._faiss, path, offset, np.asarray(learnt["table"]))

    def __len__(self) -> int:
        return len(self._centroids)

    @property
    def code_size(self) -> int:
        return int(self._faiss.code_size)

    def scored(self, queries: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Queries (q, dim) float32 on the axes of the codes, (q, kept), and how the middles of the lists
        score, (q, lists).
        """
        products = all_products(queries, self._axes)
        turned = np.ascontiguousarray(products[:, :-1])
        return turned, all_products(turned, self._centroids) + products[:, -1:]

    def search(
        self,
        turned: NDArray[np.float32],
        numbers: Ids,
        middles: NDArray[np.float32],
        count: int,
        allowed: NDArray[np.uint8] | None,
    ) -> Candidates:
        """The best ``count`` vectors of some lists (q, n) for each query, by the scores of their codes; -1 is
        no list.

        ``allowed`` are the vectors to search, a bit each, the lowest first; None: all. No answer depends on
        the batch.
        """
        import faiss

        queries, numbers, middles = map(np.ascontiguousarray, (turned, numbers, middles))
        chosen: Any = None
        if allowed is not None:
            chosen = faiss.IDSelectorBitmap(allowed)  # type: ignore[call-arg, arg-type]
        # By keyword: early versions of faiss keep no reference to what is assigned.
        parameters: Any = faiss.IVFSearchParameters(sel=chosen)  # type: ignore[call-arg]
        parameters.nprobe = numbers.shape[1]
        scores = np.empty((len(queries), count), np.float32)
        ids = np.empty((len(queries), count), np.int64)
        arrays = (faiss.swig_ptr(array) for array in (numbers, middles, scores, ids))
        self._faiss.search_preassigned_c(
            len(queries), faiss.swig_ptr(queries), count, *arrays, False, parameters, None
        )
        scores[ids < 0] = -np.inf
        return Candidates(ids, scores)


class JoinedLists:
    """The lists of several files as one; vectors are numbered on, ``counts`` of each.

    A query probes those lists whose middles score best, in whichever file they lie: codes stand for the same
    cosines in each.
    """

    def __init__(self, parts: Sequence[CodedLists], counts: Sequence[int]) -> None:
        self._parts = tuple(parts)
        self._begins = np.cumsum([0, *map(len, parts)])
        self._counts = tuple(counts)
        self._first_vectors = np.cumsum([0, *counts[:-1]])

    def __len__(self) -> int:
        return int(self._begins[-1])

    @property
    def code_size(self) -> int:
        return max(part.code_size for part in self._parts)

    def first(self, part: int) -> int:
        """Number of the first list of a part."""
        return int(self._begins[part])

    def nearest(self, queries: NDArray[np.float32]) -> Nearest:
        """All lists for queries (q, dim) float32, those whose middles score best first."""
        turned, each = zip(*(part.scored(queries) for part in self._parts), strict=True)
        scores = np.concatenate(each, axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")
        return Nearest(turned, order, _taken(scores, order))

    def search(self, nearest: Nearest, count: int, allowed: Sequence[NDArray[np.uint8]] | None) -> Candidates:
        """The best ``count`` vectors of the lists that each query probes; ``allowed`` as in
        :meth:`CodedLists.search`, of each part.
        """
        if len(self._parts) == 1:
            bits = None if allowed is None else allowed[0]
            return self._parts[0].search(nearest.queries[0], nearest.lists, nearest.scores, count, bits)
        shares = [min(count, _SPARE + 2 * count * own // sum(self._counts)) for own in self._counts]
        each = self._of_parts(nearest, shares, allowed)
        best = Candidates.best(each, count)
        # What a part left out could be among the best where the last of its share is.
        cut = np.zeros(len(best.rows), np.bool_)
        for share, found in zip(shares, each, strict=True):
            cut |= (share < count) & (found.rows[:, -1] >= 0) & (found.scores[:, -1] >= best.scores[:, -1])
        if cut.any():
            deeper = self._of_parts(nearest.of(np.flatnonzero(cut)), [count] * len(shares), allowed)
            again = Candidates.best(deeper, count)
            best.rows[cut], best.scores[cut] = again.rows, again.scores
        return best

    def _of_parts(
        self, nearest: Nearest, shares: Sequence[int], allowed: Sequence[NDArray[np.uint8]] | None
    ) -> list[Candidates]:
        """The best of each part, as many as its share."""
        each = []
        for number, (part, share) in enumerate(zip(self._parts, shares, strict=True)):
            begin, end = self._begins[number : number + 2]
            # In the order of probing, those of other parts left out.
            own = (nearest.lists >= begin) & (nearest.lists < end)
            lists = np.where(own, nearest.lists - begin, -1)
            bits = None if allowed is None else allowed[number]
            found = part.search(nearest.queries[number], lists, nearest.scores, share, bits)
            found.rows[found.rows >= 0] += self._first_vectors[number]
            each.append(found)
        return each
