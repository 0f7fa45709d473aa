"""Feature rows on disk: float16, contiguous, append-only shards that are read through memory maps.

A shard ``KIND-00000.f16`` holds rows of ``dim`` little-endian halves and nothing else. The place of a video's
rows is an :class:`Extent`, which the owner keeps: a library in its catalogue, a folder of converted files in
``offsets.npz``. Rows after the owner's end were left by a killed process; the next writer overwrites them.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, FeaturesAway, LibraryError, NotFound
from moviola.files.mapped import MappedFile
from moviola.files.rows import read_json
from moviola.files.writing import atomic_write, make_folders, write_json

__all__ = ["Extent", "FeatureShards", "KeyedShards", "MappedShard", "halves", "write_table"]

_HALF = np.dtype("<f2")
# Large enough that a library has few files, small enough that compaction moves little at a time.
_SHARD_BYTES = 1 << 30
_FORMAT = 1
_BACK = (
    "put it back, or connect its drive, or give this user the right to read it; `moviola doctor` says which "
    "videos of a library lie there"
)


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    """Errors of the system on a shard as one that says it is away."""
    try:
        yield
    except OSError as error:
        reason = "missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise FeaturesAway(f"{path}: {reason}; {_BACK}") from error


@dataclass(frozen=True, slots=True)
class Extent:
    """Place of rows: ``count`` rows of a shard from row ``offset``; ``crc`` is the CRC-32 of their bytes."""

    shard: int
    offset: int
    count: int
    crc: int = 0


@dataclass(frozen=True, eq=False)
class MappedShard:
    """A shard in memory: ``rows`` (n, dim) float16 of a ``file``, which is None where a shard has no rows."""

    rows: NDArray[np.float16]
    file: MappedFile | None = None

    @property
    def whole(self) -> bool:
        return self.file is None or self.file.whole


def halves(rows: NDArray[np.floating[Any]], what: str) -> NDArray[np.float16]:
    """Rows of any shape in half precision, the form in which features are stored and used everywhere. Raises
    DataError: a number of ``what`` is not finite, or too large.
    """
    with np.errstate(over="ignore"):
        data = np.ascontiguousarray(rows, dtype=_HALF)
    if not np.isfinite(data).all():
        raise DataError(
            f"{what}: a number is not finite, or above {np.finfo(_HALF).max:.0f}, the largest of half "
            "precision; scale the features, or compute them again in a higher precision"
        )
    return data


class FeatureShards:
    """Rows of one kind with ``dim`` numbers each, in numbered shards of a folder, which the first
    :meth:`append` makes; a new one begins at ``shard_bytes``.
    """

    def __init__(self, folder: Path, kind: str, dim: int, *, shard_bytes: int = _SHARD_BYTES) -> None:
        self.folder, self.kind, self.dim, self._shard_bytes = folder, kind, dim, shard_bytes
        self._maps: dict[int, MappedShard] = {}
        # Of deleted shards, for as long as a reader holds them.
        self._deleted: WeakValueDictionary[int, MappedShard] = WeakValueDictionary()
        self._sound: set[Extent] = set()

    @property
    def row_bytes(self) -> int:
        return self.dim * _HALF.itemsize

    def shard(self, number: int) -> Path:
        return self.folder / f"{self.kind}-{number:05d}.f16"

    def shards(self) -> dict[int, Path]:
        """The existing shards, by number."""
        return {int(p.stem.rsplit("-", 1)[1]): p for p in sorted(self.folder.glob(f"{self.kind}-*.f16"))}

    def append(
        self, rows: NDArray[np.floating[Any]], end: tuple[int, int], last: int = 0, *, sync: bool = True
    ) -> Extent:
        """Write rows (n, dim), stored as float16, after ``end``: shard and row of the end of committed rows.

        The owner never lowers it, so that rows that another process still reads are not overwritten after a
        removal. A shard that has become shorter than that gets no more rows, the next one does, after the
        ``last`` number that others have. Without ``sync``, :meth:`sync` has to follow.

        Raises:
            DataError: a number does not fit half precision.
            FeaturesAway: earlier rows are not there, so that these would be written to another place.
        """
        number, offset = end
        if offset and (self._rows_in(number) < offset or offset * self.row_bytes >= self._shard_bytes):
            number, offset = max(number, last) + 1, 0
        data = halves(rows, self.kind)
        if data.ndim != 2 or data.shape[1] != self.dim:
            raise ValueError(f"rows of shape {data.shape} for {self.kind} of dimension {self.dim}")
        payload = data.tobytes()
        self._write(number, offset, payload, sync=sync)
        return Extent(number, offset, len(data), zlib.crc32(payload))

    def extend(
        self, extent: Extent | None, rows: NDArray[np.floating[Any]], end: tuple[int, int], last: int = 0
    ) -> Extent:
        """Write further rows of an extent right behind it where it is the last one before ``end``, or else
        write all of it again, as :meth:`append` does, also with its errors. None is an extent without rows.
        """
        if extent is None or not extent.count:
            return self.append(rows, end, last)
        before = extent.shard, extent.offset + extent.count
        if before != end or self._rows_in(extent.shard) < before[1]:
            return self.append(np.concatenate([self.checked(extent), halves(rows, self.kind)]), end, last)
        payload = halves(rows, self.kind).tobytes()
        self._write(extent.shard, before[1], payload)
        return Extent(extent.shard, extent.offset, extent.count + len(rows), zlib.crc32(payload, extent.crc))

    def _write(self, number: int, offset: int, payload: bytes, *, sync: bool = True) -> None:
        """Write rows of a shard from one on, and end it behind them."""
        make_folders(self.folder)
        path = self.shard(number)
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.seek(offset * self.row_bytes)
            file.truncate()
            file.write(payload)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        self._maps.pop(number, None)

    def sync(self) -> None:
        for path in self.shards().values():
            with path.open("rb") as file:
                os.fsync(file.fileno())

    def delete_others(self, used: Collection[int]) -> None:
        """Delete all shards but some."""
        for number, path in self.shards().items():
            if number not in used:
                path.unlink()
        self.let_go()

    def delete_unused(self, first: int, end: int) -> None:
        """Delete the shards before a number, or those from it on, if the shard in which the owner's rows end
        comes before it: what a failed copy has written would keep a full disk full.
        """
        for number, path in self.shards().items():
            if (number < first) == (end >= first):
                path.unlink()
        self.let_go()

    def hold(self, places: NDArray[np.int64]) -> tuple[MappedShard, ...] | None:
        """Map all shards of extents (n, 4) int64 (shard, offset, count, CRC; a shard of -1 is none), to be
        read after a compaction; :meth:`let_go` of others.

        The maps are to be kept for as long as the extents are read; None if one of them is not there.
        """
        held = []
        try:
            for number in sorted({*places[:, 0].tolist()} - {-1}):
                own = places[places[:, 0] == number]
                held.append(self._mapped(number, int((own[:, 1] + own[:, 2]).max())))
        except (OSError, LibraryError):
            return None
        self.let_go()
        return tuple(held)

    def let_go(self) -> None:
        """Keep maps of deleted shards no longer than others hold them: they take room on the disk."""
        for number in [number for number in list(self._maps) if not self.shard(number).exists()]:
            self._deleted[number] = self._maps.pop(number)
            self._sound.difference_update([one for one in list(self._sound) if one.shard == number])

    def give_back(self) -> None:
        """Have rows that were read no longer count as memory of the process; see :class:`MappedFile`."""
        for mapped in list(self._maps.values()):
            if mapped.file is not None:
                mapped.file.give_back()

    def close(self) -> None:
        """Drop all maps; the file of rows that are still in use stays open as long as these."""
        self._maps.clear()

    def read(self, extent: Extent) -> NDArray[np.float16]:
        """The rows of an extent, (count, dim) float16, mapped. Raises LibraryError: too short now."""
        end = extent.offset + extent.count
        return self._mapped(extent.shard, end).rows[extent.offset : end]

    def _mapped(self, number: int, rows_needed: int) -> MappedShard:
        mapped = self._maps.get(number, self._deleted.get(number))
        if mapped is not None and len(mapped.rows) >= rows_needed and mapped.whole:
            return mapped
        mapped = MappedShard(np.empty((0, self.dim), _HALF))
        if rows_needed:
            path, there = self.shard(number), self._rows_in(number)
            if there < rows_needed:
                raise LibraryError(
                    f"{path}: {there} rows, but {rows_needed} are listed; of a library `moviola doctor` says "
                    "what mends it, another folder of features is to be written again"
                )
            with _unreadable(path):
                file = MappedFile(path)
            mapped = MappedShard(
                file.array[: there * self.row_bytes].view(_HALF).reshape(there, self.dim), file
            )
        self._maps[number] = mapped
        return mapped

    def require_there(self, number: int) -> None:
        """Raise FeaturesAway where a shard is missing, empty, or cannot be read now."""
        path = self.shard(number)
        self._rows_in(number)
        with _unreadable(path), path.open("rb"):
            pass

    def _rows_in(self, number: int) -> int:
        """The rows of a shard that is there. Raises FeaturesAway."""
        path = self.shard(number)
        with _unreadable(path):
            status = path.stat()
        if not (stat.S_ISREG(status.st_mode) and status.st_size):
            raise FeaturesAway(
                f"{path}: {'is empty' if stat.S_ISREG(status.st_mode) else 'is no file'}; {_BACK}"
            )
        return status.st_size // self.row_bytes if self.row_bytes else 0

    def checked(self, extent: Extent) -> NDArray[np.float16]:
        """Like :meth:`read`; rows that are read for the first time are checked against their CRC. Raises
        LibraryError: also if a byte has changed since it was written.
        """
        rows = self.read(extent)
        if extent.crc and extent not in self._sound:
            if self._crc(extent) != extent.crc:
                raise LibraryError(
                    f"{self.shard(extent.shard)}: rows from {extent.offset} on are damaged; `moviola doctor` "
                    "names the video, and what mends it"
                )
            self._sound.add(extent)
        return rows

    def intact(self, extent: Extent) -> bool:
        """Whether the rows of an extent are unchanged. Raises FeaturesAway: they cannot be read now."""
        try:
            return self._crc(extent) == extent.crc
        except FeaturesAway:
            raise
        except LibraryError:
            return False

    def _crc(self, extent: Extent) -> int:
        """The CRC-32 of the rows of an extent, as they are in the file. Raises LibraryError, FeaturesAway."""
        file = self._mapped(extent.shard, extent.offset + extent.count).file
        if file is None:
            return 0
        # Not through memory: there an unreadable sector ends the process.
        with _unreadable(self.shard(extent.shard)):
            crc = 0
            for part in file.parts_from(extent.offset * self.row_bytes, extent.count * self.row_bytes):
                crc = zlib.crc32(part, crc)
        return crc


class KeyedShards:
    """A folder of shards with a table of what lies where, one array of rows per key (a video or a query)::

        FOLDER/rows-00000.f16, …  the shards
        FOLDER/offsets.npz        keys (k,) and shard, offset, count, each (k,) int64
        FOLDER/shards.json        {"format": 1, "dim": d}; written last, so it marks a whole folder

    Raises:
        DataError: the folder is incomplete, of another format, or a shard is shorter than the table says.
    """

    def __init__(self, folder: Path) -> None:
        head = read_json(folder / "shards.json")
        dim = head.get("dim") if isinstance(head, dict) and head.get("format") == _FORMAT else None
        if not isinstance(dim, int) or dim < 1:
            place = folder / "shards.json"
            raise DataError(f"{place}: format {_FORMAT} with a dim above 0 is expected, not {head!r:.60}")
        self.folder, self.dim = folder, dim
        self.shards = FeatureShards(folder, "rows", self.dim)
        keys, *places = _read_table(folder / "offsets.npz")
        rows = zip(keys.tolist(), *(column.tolist() for column in places), strict=True)
        self._extents = {str(key): Extent(*place) for key, *place in rows}
        ends: dict[int, int] = {}
        for extent in self._extents.values():
            ends[extent.shard] = max(ends.get(extent.shard, 0), extent.offset + extent.count)
        try:
            for shard, end in ends.items():
                self.shards.read(Extent(shard, 0, end))
        except LibraryError as error:
            raise DataError(str(error)) from error

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of writing."""
        return tuple(self._extents)

    def __contains__(self, key: object) -> bool:
        return key in self._extents

    def extent(self, key: str) -> Extent:
        """Place of the rows of a key. Raises NotFound: there are none."""
        if key not in self._extents:
            raise NotFound(f"{self.folder}: no features of {key!r}")
        return self._extents[key]

    def shape(self, key: str) -> tuple[int, int]:
        return self.extent(key).count, self.dim

    def mapped(self, key: str) -> NDArray[np.float16]:
        """(n, d) float16, a view of the memory map."""
        return self.shards.read(self.extent(key))

    def read(self, key: str) -> NDArray[np.float32]:
        """(n, d) float32."""
        return self.mapped(key).astype(np.float32)


def _read_table(path: Path) -> list[NDArray[Any]]:
    """Keys, and shard, offset and count of each, (k,) each."""
    try:
        with ZipFile(path) as archive:
            if any(part.compress_type != ZIP_STORED for part in archive.infolist()):
                raise ValueError("compressed, which moviola never does")
        with np.load(path, allow_pickle=False) as table:
            keys, *places = (table[name] for name in ("keys", "shard", "offset", "count"))
        if keys.dtype.kind != "U" or {column.shape for column in places} != {(len(keys),)}:
            raise ValueError("the columns are not of one length, or the keys no text")
        if any(column.dtype.kind not in "iu" or (len(column) and column.min() < 0) for column in places):
            raise ValueError("a place is no number from 0")
        if len(set(keys.tolist())) != len(keys):
            raise ValueError("a key occurs twice")
    except Exception as error:  # zipfile and NumPy raise nearly anything where a file is damaged
        raise DataError(f"{path}: no readable table ({error!r:.200}); write the folder again") from error
    return [keys, *places]


def write_table(folder: Path, keys: list[str], extents: list[Extent], dim: int) -> KeyedShards:
    """Write the table of a folder of shards, which completes it."""
    places = np.array([(e.shard, e.offset, e.count) for e in extents], np.int64).reshape(-1, 3)
    shard, offset, count = places.T
    with atomic_write(folder / "offsets.npz", "wb") as file:
        np.savez(file, keys=np.array(keys), shard=shard, offset=offset, count=count)
    write_json(folder / "shards.json", {"format": _FORMAT, "dim": dim})
    return KeyedShards(folder)
