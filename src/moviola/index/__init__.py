"""Nearest segments: one contract (:class:`Index`), its backends, and their files on disk.

Vectors are float32 and L2-normalised, so the inner product that every backend ranks by is the cosine.
"""

from __future__ import annotations

from moviola.index.contract import Index
from moviola.index.files import load_index, save_index
from moviola.index.flat import FlatIndex

__all__ = ["BACKENDS", "FlatIndex", "Index", "load_index", "save_index"]

BACKENDS: dict[str, type[Index]] = {"flat": FlatIndex}
