"""Lists of 4-bit codes that faiss scans where they lie in a file.

faiss keeps the lists of its fast scan in memory, in blocks of 32 vectors. The blocks of a list, followed by
the numbers of its vectors, have the layout of faiss's lists on disk, so they can be mapped as such.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["map_lists", "packed_lists"]

_BLOCK = 32
_NUMBER_BYTES = 8


def packed_lists(index: Any) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """The lists of a faiss fast-scan index one after the other.

    Returns:
        their bytes, and a table (lists, 3) of the size of each in vectors, the room it has (whole blocks) and
        where it begins.
    """
    import faiss

    lists = faiss.downcast_InvertedLists(index.invlists)
    sizes = np.array([lists.list_size(number) for number in range(index.nlist)], np.uint64)
    room = -(-sizes.astype(np.int64) // _BLOCK) * _BLOCK
    lengths = room * (index.code_size + _NUMBER_BYTES)
    begins = np.cumsum(lengths) - lengths
    packed = np.zeros(int(lengths.sum()), np.uint8)
    for number in np.flatnonzero(sizes).tolist():
        begin, codes = begins[number], int(room[number]) * index.code_size
        packed[begin : begin + codes] = faiss.rev_swig_ptr(lists.get_codes(number), codes)
        numbers = faiss.rev_swig_ptr(lists.get_ids(number), int(sizes[number]))
        packed[begin + codes : begin + codes + numbers.nbytes] = numbers.view(np.uint8)
    return packed, np.stack([sizes, room, begins], axis=1).astype(np.uint64)


def map_lists(index: Any, path: Path, offset: int, table: NDArray[np.uint64]) -> None:
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
