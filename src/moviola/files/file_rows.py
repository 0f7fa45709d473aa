"""Vectors in a file, read block by block, so that little of them is in memory.

They are read, not mapped: where files are cached in large pages, the first access to a mapped file makes all
of it count as memory of the process.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate, pairwise
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moviola.errors import SegmentIndexError

__all__ = ["FileRows", "Rows", "rows_in_file"]

# Unwanted rows that are read along between two wanted ones, at most: faster than another call.
_GAP = 8
_ROWS_AT_ONCE = 1 << 9


class Rows(Protocol):
    """Vectors (n, dim) float32 or float16 that are read part by part: an array, or rows in a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """n and dim."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any:
        """Some rows as an array: a slice of step 1, or those with some numbers (m,)."""


class FileRows:
    """Rows of a file, or of several, one after the other.

    Args:
        file: its descriptor; closed with the rows.
        name: its name in errors.
        offset: of the first row, in bytes.
        shape: n and dim.
    """

    def __init__(
        self, file: int, name: str, offset: int, shape: tuple[int, int], dtype: np.dtype[Any]
    ) -> None:
        self.shape, self.dtype = shape, dtype
        # Files that are read, and the places of their first bytes among those of all rows.
        self._pieces = [(file, name, offset)]
        self._begins = [0, shape[0] * shape[1] * dtype.itemsize]
        self._of: tuple[FileRows, ...] = ()
        weakref.finalize(self, os.close, file)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Rows of one or more others, of one width and type, which stay open as long as these."""
        if len(parts) == 1:
            return parts[0]
        self = cls.__new__(cls)
        self.shape = sum(map(len, parts)), parts[0].shape[1]
        self.dtype, self._of = parts[0].dtype, tuple(parts)
        self._pieces = [piece for part in parts for piece in part._pieces]
        self._begins = [
            0,
            *accumulate(end - begin for part in parts for begin, end in pairwise(part._begins)),
        ]
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[Any]:
        """Some rows, (m, dim): a slice of step 1, or those with some numbers (m,), none twice.

        Raises:
            SegmentIndexError: the file has become shorter.
        """
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(len(self))
            rows_read = np.empty((max(end - begin, 0), self.shape[1]), self.dtype)
            if len(rows_read):
                self._fill(rows_read, [(0, rows_read.nbytes, begin * rows_read[0].nbytes)])
            return rows_read
        rows_read = np.empty((len(rows), self.shape[1]), self.dtype)
        order = np.argsort(rows)
        for part, block in self.blocks(rows[order], _ROWS_AT_ONCE):
            rows_read[order[part]] = block
        return rows_read

    def blocks(self, rows: NDArray[np.int64], size: int) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Some rows (m,), rising, none twice, ``size`` at a time: which of them, and those rows (size, dim).

        A block is overwritten by the next one.

        Raises:
            SegmentIndexError: the file has become shorter.
        """
        if not len(rows):
            return
        # Runs of rows that are read in one call; none reaches into another block.
        cut = np.diff(rows, prepend=-1 - _GAP) > _GAP
        cut[::size] = True
        begins = np.flatnonzero(cut)
        ends = np.append(begins[1:], len(rows))
        counts = rows[ends - 1] - rows[begins] + 1
        opens = np.searchsorted(begins, np.arange(0, len(rows), size))
        before = np.cumsum(counts) - counts
        before -= np.repeat(before[opens], np.diff(np.append(opens, len(begins))))
        # Place of each row among all that are read for its block.
        places = rows - np.repeat(rows[begins] - before, ends - begins)
        longest = int((before + counts).max())
        target: NDArray[Any] = np.empty((longest, self.shape[1]), self.dtype)
        block: NDArray[Any] = np.empty((min(size, len(rows)), self.shape[1]), self.dtype)
        width = self.dtype.itemsize * self.shape[1]
        runs = (width * np.column_stack([before, counts, rows[begins]])).tolist()
        bounds = [*opens.tolist(), len(begins)]
        for number, begin in enumerate(range(0, len(rows), size)):
            part = slice(begin, min(begin + size, len(rows)))
            self._fill(target, runs[bounds[number] : bounds[number + 1]])
            own = block[: part.stop - begin]
            np.take(target, places[part], axis=0, out=own, mode="clip")
            yield part, own

    def _fill(self, target: NDArray[Any], runs: Iterable[Sequence[int]]) -> None:
        """Read runs, each by its place in the target, its length and its place in the rows, all in bytes."""
        data = target.reshape(-1).view(np.uint8).data
        for at, length, source in runs:
            done = 0
            while done < length:  # Linux reads at most 2 GiB in one call
                piece = bisect_right(self._begins, source + done) - 1
                begin, end = self._begins[piece : piece + 2]
                file, name, offset = self._pieces[piece]
                wanted = data[at + done : at + min(length, end - source)]
                read = read_at(file, wanted, offset + source + done - begin)
                if not read:
                    raise SegmentIndexError(f"{name}: shorter than it was; rebuild the index")
                done += read


_seeking = threading.Lock()


def _read_after_seeking(file: int, target: memoryview, place: int) -> int:
    """Bytes read into ``target`` from a place of a file, by one thread at a time: a file has one position."""
    with _seeking:
        os.lseek(file, place, os.SEEK_SET)
        data = os.read(file, len(target))
    target[: len(data)] = data
    return len(data)


def _read_in_place(file: int, target: memoryview, place: int) -> int:
    """Bytes read into ``target`` from a place of a file, whose position stays."""
    return os.preadv(file, [target], place)


read_at = _read_in_place if hasattr(os, "preadv") else _read_after_seeking
"""Windows cannot read at a place."""


@contextmanager
def rows_in_file(
    parts: Iterable[tuple[NDArray[np.int64], NDArray[np.floating[Any]]]], dim: int, dtype: DTypeLike
) -> Iterator[tuple[NDArray[np.int64], FileRows]]:
    """Ids (n,) and vectors (n, dim) that come in parts, the vectors in a temporary file (in ``TMPDIR``).

    Only one part is in memory at a time. The file has no name, so nothing is left of it in any case.

    Raises:
        SegmentIndexError: the file cannot be written, for instance since its disk is full.
    """
    ids = [np.empty(0, np.int64)]
    with ExitStack() as stack:
        with _naming_the_folder():
            file = stack.enter_context(tempfile.TemporaryFile(prefix="moviola-vectors-"))
        for own, vectors in parts:
            ids.append(own)
            with _naming_the_folder():
                file.write(np.ascontiguousarray(vectors, dtype).data)
        with _naming_the_folder():
            file.flush()
        every = np.concatenate(ids)
        name, shape = "vectors in a temporary file", (len(every), dim)
        yield every, FileRows(os.dup(file.fileno()), name, 0, shape, np.dtype(dtype))


@contextmanager
def _naming_the_folder() -> Iterator[None]:
    """Errors of temporary files, as errors that name the folder for these."""
    try:
        yield
    except OSError as error:
        folder, reason = tempfile.tempdir or "temporary folder", error.strerror or error
        raise SegmentIndexError(
            f"{folder}: cannot hold the vectors of an index while it is built ({reason}); make room, or "
            "set TMPDIR to a folder on another disk"
        ) from error
