"""Exact search over all vectors: the default in libraries of up to some ten thousand segments.

Files are those of faiss (``IxM2`` around ``IxFI``), which nothing here imports: its import takes a tenth of a
cold search, and its products the same time as NumPy's.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct
from struct import error as StructError
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.files.file_rows import Rows
from moviola.index.contract import ROWS_AT_ONCE, Ids, Index, MadeOf, best_first, parts_of

__all__ = ["FlatIndex"]

# Files from this size on are mapped, and read into memory only before a change.
_MAPPED_FROM_BYTES = 1 << 26
# Changes that are always few.
_FEW_AT_LEAST = 4096
# Below this share of all, vectors of allowed ids are gathered; else all are compared, in order.
_GATHERED = 0.25

# Of an index in a file of faiss: type, dimension, vectors, two numbers that are not used, whether it is
# trained, and the measure (0: inner product). Then the number of 4-byte words, or of ids, that follow.
_HEAD, _COUNT = Struct("<4siqqqBi"), Struct("<Q")
_MAPPED, _VECTORS, _UNUSED = b"IxM2", b"IxFI", 1 << 20


class FlatIndex(Index):
    """Uncompressed float32 vectors, exhaustively compared (SPR, section 4.2: "Flat", the paper's default).

    A product's sum has an order that depends on the dimension alone: scores do not rest on the kernels of a
    BLAS, on the number of threads, or on what else is compared. Where more than ``k`` are as near, those of
    smaller ids are returned.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self._ids = np.empty(0, np.int64)
        # With room for more, or those of a file, which are not to be written to.
        self._rows: NDArray[np.float32] = np.empty((0, dim), np.float32)
        self._places = MadeOf[Ids]()

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self) -> Ids:
        """All ids, (n,) int64, in the order of adding."""
        return self._ids

    def vectors_of(self, ids: Ids) -> NDArray[np.float32]:
        """Vectors (n, dim) float32 of ids that are there, bit by bit as they were given."""
        return self._rows[self._places_of(ids)]

    def few(self, changes: int) -> bool:
        """Half of all: they are compared as the others are, and a file that has doubled is written again."""
        return changes <= max(_FEW_AT_LEAST, len(self) // 2)

    def write(self, path: Path) -> None:
        rows, count = self._rows[: len(self)], len(self)
        about = self.dim, count, _UNUSED, _UNUSED, 1, 0
        try:
            with path.open("wb") as file:
                file.write(_HEAD.pack(_MAPPED, *about) + _HEAD.pack(_VECTORS, *about))
                file.write(_COUNT.pack(count * self.dim))
                for part in parts_of(count, ROWS_AT_ONCE):
                    file.write(rows[part].astype("<f4", copy=False).tobytes())
                file.write(_COUNT.pack(count) + self._ids.astype("<i8", copy=False).tobytes())
        except OSError as error:
            raise SegmentIndexError(
                f"{path}: cannot be written ({error.strerror}); is there room on the disk?"
            ) from error

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a file; a large one is mapped and read as needed."""
        try:
            with path.open("rb") as file:
                return cls._read(file, path)
        except OSError as error:
            raise SegmentIndexError(f"{path}: cannot be read ({error.strerror}); rebuild it") from error
        except (ValueError, StructError) as error:
            raise SegmentIndexError(f"{path}: damaged index file ({error}); rebuild it") from error

    @classmethod
    def _read(cls, file: IO[bytes], path: Path) -> Self:
        kind, dim, count, *_ = _HEAD.unpack(file.read(_HEAD.size))
        if kind != _MAPPED:
            raise SegmentIndexError(f"{path}: holds a {kind!r}, not a flat index; rebuild it")
        inner = _HEAD.unpack(file.read(_HEAD.size))
        (words,) = _COUNT.unpack(file.read(_COUNT.size))
        begin, size = 2 * _HEAD.size + _COUNT.size, path.stat().st_size
        length = begin + 4 * words + _COUNT.size + 8 * count
        if dim < 1 or inner[:3] != (_VECTORS, dim, count) or words != dim * count or length != size:
            raise ValueError("its parts are of other lengths than it says")
        index, shape = cls(dim), (count, dim)
        if size >= _MAPPED_FROM_BYTES:
            index._rows = np.memmap(path, "<f4", "r", begin, shape).view(np.ndarray)
            file.seek(begin + 4 * words)
        else:
            index._rows = np.fromfile(file, "<f4", words).reshape(shape)
        (stored,) = _COUNT.unpack(file.read(_COUNT.size))
        if stored != count:
            raise ValueError(f"{stored} ids of {count} vectors")
        index._ids = np.fromfile(file, "<i8", count)
        return index

    def _add_all(self, ids: Ids, vectors: Rows) -> None:
        self._make_room(len(self) + len(ids))
        super()._add_all(ids, vectors)

    def _add(self, ids: Ids, vectors: NDArray[np.float32]) -> None:
        before, after = len(self), len(self) + len(ids)
        if after > len(self._rows) or not self._rows.flags.writeable:
            self._make_room(max(after, 2 * before))
        self._rows[before:after] = vectors
        self._ids = np.concatenate([self._ids, ids])

    def _make_room(self, count: int) -> None:
        rows = np.empty((count, self.dim), np.float32)
        rows[: len(self)] = self._rows[: len(self)]
        self._rows = rows

    def _remove(self, ids: Ids) -> None:
        kept = np.ones(len(self), np.bool_)
        kept[self._places_of(ids)] = False
        self._rows, self._ids = self._rows[: len(self)][kept], self._ids[kept]

    def _places_of(self, ids: Ids) -> Ids:
        """Places (n,) int64 among the vectors of ids that are there."""
        known = self.sorted_ids()
        found = np.searchsorted(known, ids)
        return found if known is self._ids else np.argsort(self._ids)[found]

    def _search(
        self, queries: NDArray[np.float32], depth: int, allowed: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        rows, ids = self._rows[: len(self)], self._ids
        places = None
        if allowed is not None and len(allowed) < len(self):
            places = self._places.of(allowed, self._state(), self._places_of)
            ids = ids[places]
            if len(places) < _GATHERED * len(rows):
                rows, places = rows[places], None
        scores = _products(queries, rows)
        if places is not None:
            scores = scores[:, places]
        nearest = [_nearest(own[None], ids[None], depth) for own in scores]
        best, found = (np.concatenate(column) for column in zip(*nearest, strict=True))
        return best, found


def _products(queries: NDArray[np.float32], rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Inner products (q, n) float32 of queries (q, dim) and vectors (n, dim), summed in one order."""
    scores = np.empty((len(queries), len(rows)), np.float32)
    for part in parts_of(len(rows), ROWS_AT_ONCE):
        # Vectors in a file of faiss begin at an odd place.
        np.einsum("qd,nd->qn", queries, np.require(rows[part], np.float32, "A"), out=scores[:, part])
    return scores


def _nearest(scores: NDArray[np.float32], ids: Ids, depth: int) -> tuple[NDArray[np.float32], Ids]:
    """The best ``depth`` of scores and ids (1, n), in no order; of those as good as the last, smaller ids."""
    if depth < scores.shape[1]:
        last = np.partition(scores[0], -depth)[-depth]
        good = scores[0] >= last
        scores, ids = scores[:, good], ids[:, good]
    if scores.shape[1] == depth:
        return scores, ids
    return best_first(scores, ids, depth)
