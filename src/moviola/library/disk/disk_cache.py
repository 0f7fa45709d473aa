"""Cache of what models compute from whole videos; may be deleted at any time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue
from moviola.features import MemoryCache
from moviola.files.sealed import is_sealed, opened_sealed, sealed_draft_of
from moviola.library.disk.row_parts import damaged_parts

__all__ = ["COPIES_FILE", "DiskCache", "damaged_in_cache"]

COPIES_FILE = Path("cache") / "copies.table"
"""What :mod:`moviola.library.near_copies` keeps."""

# Files with a digest, wherever they lie in the cache: tables, arrays, compiled graphs.
_SEALED = frozenset({".table", ".npz", ".npy", ".blob"})


class DiskCache:
    """``REVISION/KEY.npy`` in a folder; an :class:`moviola.features.EncodingCache`. Entries never go out of
    date: a row number of the catalogue stands for one state of one video, a revision for one model.
    """

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self.folder, self.read_only = folder, read_only
        self._memory = MemoryCache()

    def get(
        self, revision: str, key: int, count: int, make: Callable[[], NDArray[np.float16]]
    ) -> NDArray[np.float16]:
        """Encoding of a video by the model of a revision, (count, ...) float16; made and kept if missing."""

        def stored() -> NDArray[np.float16]:
            path = self.folder / revision / f"{key}.npy"
            rows = _read(path, count)
            if rows is None:
                rows = make()
                if not self.read_only:
                    # Where the disk is full, or the folder was swept, the next search makes it again.
                    with suppress(InvalidValue), sealed_draft_of(path) as draft, draft.open("wb") as file:
                        np.save(file, rows)
            return rows

        return self._memory.get(revision, key, count, stored)

    def keep_only(self, revision: str, keys: Collection[int]) -> set[int]:
        """Delete entries of other models and of other videos; returns the row numbers of videos that still
        have one.
        """
        # An entry that is deleted on disk alone would be served from memory, and never written again.
        self._memory.forget(lambda known, key: known == revision and key in keys)
        for folder in self.folder.glob("*"):
            if folder.name != revision:
                shutil.rmtree(folder, ignore_errors=True)
        kept = set()
        for path in (self.folder / revision).glob("*") if revision else ():
            if path.suffix == ".npy" and path.stem.isdigit() and int(path.stem) in keys:
                kept.add(int(path.stem))
            else:
                path.unlink(missing_ok=True)
        return kept


def damaged_in_cache(library: Path) -> list[Path]:
    """Cache files that do not match their digests; drafts, and what is swept just now, are skipped."""
    files = (path for path in sorted((library / "cache").rglob("[!.]*")) if path.suffix in _SEALED)
    damaged = [path for path in files if not path.is_dir() and _is_damaged(path)]
    # A set that was published meanwhile is whole when it is looked at again.
    first = {*damaged_parts(library)}
    return [*damaged, *(path for path in damaged_parts(library) if path in first)]


def _is_damaged(path: Path) -> bool:
    return not is_sealed(path) and os.path.lexists(path) and not is_sealed(path)


def _read(path: Path, count: int) -> NDArray[np.float16] | None:
    """The rows in a file, read whole as for its digest; None where it is missing or incomplete."""
    try:
        with opened_sealed(path) as file:
            rows: NDArray[np.float16] = np.load(file, allow_pickle=False)
    except (DataError, OSError, ValueError, EOFError):
        return None
    return rows if rows.dtype == np.float16 and len(rows) == count else None
