"""Feature rows on disk: float16, contiguous, append-only shards that are read through memory maps.

A shard ``KIND-00000.f16`` is nothing but rows of ``dim`` little-endian halves. Which rows belong to which
video stands in the catalogue, and so does where committed rows end; it is written after the rows were
synced. Rows behind that end are the remains of a killed process and are overwritten by the next writer.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import LibraryError
from moviola.library.catalogue import Extent

__all__ = ["FeatureStore"]

_HALF = np.dtype("<f2")
# Large enough that a library has few files, small enough that compaction moves little at a time.
_SHARD_BYTES = 1 << 30


class FeatureStore:
    """Rows of one kind (``frames`` or ``cues``) with ``dim`` numbers each."""

    def __init__(self, folder: Path, kind: str, dim: int) -> None:
        self.folder, self.kind, self.dim = folder, kind, dim
        self._maps: dict[int, NDArray[np.float16]] = {}

    @property
    def row_bytes(self) -> int:
        """Bytes a row takes."""
        return self.dim * _HALF.itemsize

    def shard(self, number: int) -> Path:
        """The file of a shard."""
        return self.folder / f"{self.kind}-{number:05d}.f16"

    def shards(self) -> dict[int, Path]:
        """The shards that are there, by number."""
        return {int(p.stem.rsplit("-", 1)[1]): p for p in sorted(self.folder.glob(f"{self.kind}-*.f16"))}

    def append(self, rows: NDArray[np.float32], end: tuple[int, int]) -> Extent:
        """Write rows behind the last ones that were ever committed and sync them.

        Args:
            rows: (n, dim) floating point; stored as float16.
            end: shard and row where committed rows end, from the catalogue. It never moves back, so that
                rows which another process still reads are not overwritten after a removal.
        """
        number, offset = end
        if offset * self.row_bytes >= _SHARD_BYTES:
            number, offset = number + 1, 0
        return self.write(number, offset, rows)

    def write(self, number: int, offset: int, rows: NDArray[np.float32]) -> Extent:
        """Write rows at a place of a shard, cutting off what lies behind, and sync."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data = np.ascontiguousarray(rows, dtype=_HALF)
        if data.ndim != 2 or data.shape[1] != self.dim:
            raise ValueError(f"rows of shape {data.shape} for {self.kind} of dimension {self.dim}")
        if not np.isfinite(data).all():
            raise LibraryError(
                f"{self.kind}: a feature is not finite or above {np.finfo(_HALF).max:.0f}, the largest "
                "number of half precision; the encoder is broken or its precision too low"
            )
        payload = data.tobytes()
        path = self.shard(number)
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.seek(offset * self.row_bytes)
            file.truncate()
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        self._maps.pop(number, None)
        return Extent(number, offset, len(data), zlib.crc32(payload))

    def read(self, extent: Extent) -> NDArray[np.float16]:
        """The rows of an extent, (count, dim) float16, a view of the memory map.

        Raises:
            LibraryError: the shard is missing or too short.
        """
        end = extent.offset + extent.count
        mapped = self._maps.get(extent.shard)
        if mapped is None or len(mapped) < end:
            mapped = self._map(extent.shard, end)
        return mapped[extent.offset : end]

    def _map(self, number: int, rows_needed: int) -> NDArray[np.float16]:
        path = self.shard(number)
        there = path.stat().st_size // self.row_bytes if path.exists() else 0
        if there < rows_needed:
            raise LibraryError(
                f"{path}: {there} rows, but the catalogue names {rows_needed}; `moviola verify --repair` "
                "takes the damaged videos out so that they can be indexed again"
            )
        mapped: NDArray[np.float16] = (
            np.memmap(path, dtype=_HALF, mode="r", shape=(there, self.dim))
            if there
            else np.empty((0, self.dim), _HALF)
        )
        self._maps[number] = mapped
        return mapped

    def intact(self, extent: Extent) -> bool:
        """Whether the rows of an extent are all there and unchanged."""
        try:
            rows = self.read(extent)
        except LibraryError:
            return False
        return zlib.crc32(rows.tobytes()) == extent.crc
