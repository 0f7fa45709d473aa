"""Nearest segments: one contract (:class:`Index`), its backends, and their files on disk.

Vectors are float32 and L2-normalised, so the inner product that every backend ranks by is the cosine.
"""

from __future__ import annotations

from moviola.index.choice import AUTO, suited
from moviola.index.contract import Index, IndexStats
from moviola.index.file_rows import FileRows, Rows, rows_in_file
from moviola.index.files import load_index, save_index
from moviola.index.flat import FlatIndex
from moviola.index.ivf import IVFIndex, IVFPQIndex
from moviola.index.reranked import RerankedIndex
from moviola.index.trained import TrainedIndex
from moviola.index.tuning import DEPTH, Exact, Trial, tune

__all__ = [
    "AUTO", "BACKENDS", "DEPTH", "Exact", "FileRows", "FlatIndex", "IVFIndex", "IVFPQIndex", "Index",
    "IndexStats", "RerankedIndex", "Rows", "TrainedIndex", "Trial", "backend_of", "load_index",
    "rows_in_file", "save_index", "suited", "tune",
]  # fmt: skip

BACKENDS: dict[str, type[Index]] = {
    "flat": FlatIndex, "ivf": IVFIndex, "ivfpq": IVFPQIndex, "reranked": RerankedIndex,
}  # fmt: skip
"""What every backend does. A new backend is done when ``tests/index/test_conformance.py`` passes for it."""


def backend_of(index: Index) -> str:
    """The name of an index's type in :data:`BACKENDS`."""
    return next(name for name, kind in BACKENDS.items() if type(index) is kind)
