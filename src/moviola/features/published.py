"""Published feature files: one (n, d) array per key, a video or a query.

Read one array at a time: HDF5 with one data set per key (as the papers' features were released) or one group
per key, of whose data sets ``inner`` names one; a folder of ``KEY.npy``, ``KEY.npz`` or ``KEY.safetensors``,
where ``inner`` names one of several arrays; one ``.npz`` or safetensors file with an array per key; and what
:func:`convert` writes, :class:`moviola.features.shards.KeyedShards`.
"""

from __future__ import annotations

import shutil
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue, MissingDependency, MoviolaError, NotFound
from moviola.features.shards import Extent, FeatureShards, KeyedShards, halves, write_table
from moviola.files.names import no_such

__all__ = ["Computed", "FeatureFiles", "convert", "new_folder", "open_features"]

# Largest ratio of an array's bytes to those of its file, which may be compressed.
_MOST_TIMES = 2000
# Names that an error lists.
_SHOWN = 8
# What NumPy raises on a file that holds no array.
_NO_ARRAY = (ValueError, OSError, TypeError, EOFError, OverflowError, MemoryError, SyntaxError)


class FeatureFiles(Protocol):
    """Arrays by key, read on access."""

    def keys(self) -> tuple[str, ...]:
        """All keys, in file order."""

    def shape(self, key: str) -> tuple[int, int]:
        """Rows and dimension, without reading the rows; a single vector counts as one row."""

    def read(self, key: str) -> NDArray[np.float32]:
        """(n, d) float32."""


@dataclass(frozen=True, slots=True)
class Computed:
    """Features that a function of the key computes, one array at a time; also to know an array's shape."""

    names: tuple[str, ...]
    make: Callable[[str], NDArray[np.float32]]

    def keys(self) -> tuple[str, ...]:
        return self.names

    def shape(self, key: str) -> tuple[int, int]:
        rows, dim = self.make(key).shape
        return rows, dim

    def read(self, key: str) -> NDArray[np.float32]:
        return self.make(key)


def _as_shape(shape: tuple[int, ...], where: str) -> tuple[int, int]:
    if len(shape) == 1:
        return 1, shape[0]
    if len(shape) != 2:
        raise DataError(f"{where}: shape {tuple(shape)}; an array of rows (n, d) is expected")
    return shape[0], shape[1]


class _Arrays:
    """Arrays by key; a subclass reads them."""

    def __init__(self, path: Path, keys: Iterable[str], suffix: str = "") -> None:
        self._path, self._suffix = path, suffix
        self._keys = dict.fromkeys(keys)

    def keys(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def shape(self, key: str) -> tuple[int, int]:
        where = self._where(key)
        return _as_shape(self._shape(key), where)

    def read(self, key: str) -> NDArray[np.float32]:
        where = self._where(key)
        array = self._array(key)
        if (dtype := getattr(array, "dtype", np.dtype(object))).kind not in "fiub":
            raise DataError(f"{where}: {dtype}; real numbers are expected")
        return np.asarray(array, dtype=np.float32).reshape(_as_shape(array.shape, where))

    def _where(self, key: str) -> str:
        if key not in self._keys:
            place = f" ({key}{self._suffix})" if self._suffix else ""
            raise NotFound(f"{self._path}: no features of {key!r}{place}")
        return f"{self._path}: {key}"

    def _array(self, key: str) -> Any:
        raise NotImplementedError

    def _shape(self, key: str) -> tuple[int, ...]:
        return tuple(self._array(key).shape)


class _Hdf5(_Arrays):
    def __init__(self, path: Path, inner: str | None = None) -> None:
        try:
            import h5py
        except ImportError as error:
            raise MissingDependency(f"{path}: needs the package h5py", "features") from error
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise DataError(f"{path}: no readable HDF5 file ({error})") from error
        with _named(str(path)):
            # One group for each kind of features, of a data set for each key, or the other way round.
            whole = inner is not None and inner in self._file and not hasattr(self._file[inner], "shape")
            self._root, self._inner = (self._file[inner], None) if whole else (self._file, inner)
            super().__init__(path, self._root)

    def _at(self, key: str) -> Any:
        found = self._root[key]
        if hasattr(found, "shape"):
            return found
        names = list(found)
        if self._inner is None or self._inner not in found:
            raise _several(f"{self._path}: {key}: a group", names, self._inner)
        found = found[self._inner]
        if not hasattr(found, "shape"):
            names = [f"{self._inner}/{name}" for name in found]
            raise _several(f"{self._path}: {key}: {self._inner} is a group", names, None)
        return found

    def _shape(self, key: str) -> tuple[int, ...]:
        with _named(f"{self._path}: {key}"):
            return tuple(self._at(key).shape)

    def _array(self, key: str) -> Any:
        with _named(f"{self._path}: {key}"):
            array = self._at(key)
            # A damaged shape may promise more than any memory holds; missing chunks are zeros.
            if array.size * array.dtype.itemsize > _MOST_TIMES * self._path.stat().st_size:
                raise DataError(
                    f"{self._path}: {key}: {array.shape} of {array.dtype} is more than the file can hold; "
                    "get it again"
                )
            return array[()]


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Errors of HDF5 on damaged bytes, as errors that name the file and the key."""
    try:
        yield
    except MoviolaError:
        raise
    except Exception as error:  # h5py raises nearly anything
        raise DataError(f"{what}: damaged ({error!r:.200}); get the file again") from error


def _several(what: str, names: Sequence[str], inner: str | None) -> DataError:
    """The error where one of several arrays has to be named, or none has that name."""
    listed = ", ".join(sorted(names)[:_SHOWN]) or "nothing"
    lacks = "" if inner is None else f" without {inner!r}"
    return DataError(f"{what}{lacks}, which holds {listed}; name one, as FILE:NAME (inner=)")


class _Files(_Arrays):
    def __init__(self, folder: Path, suffix: str, inner: str | None = None) -> None:
        self._inner = inner
        super().__init__(
            folder, (path.name.removesuffix(suffix) for path in sorted(folder.glob(f"*{suffix}"))), suffix
        )

    def _array(self, key: str) -> NDArray[Any]:
        return _ONE_ARRAY[self._suffix](self._path / f"{key}{self._suffix}", self._inner)


def _npy(path: Path, inner: str | None) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    except _NO_ARRAY as error:
        raise DataError(f"{path}: no readable npy file ({error})") from error


class _Npz(_Arrays):
    def __init__(self, path: Path) -> None:
        opened = path.open("rb")
        weakref.finalize(self, opened.close)
        with _readable(path):
            self._file = np.load(opened, allow_pickle=False)
            super().__init__(path, self._file.files)
            sizes = {one.filename.removesuffix(".npy"): one.file_size for one in self._file.zip.infolist()}
        most = _MOST_TIMES * path.stat().st_size
        if huge := next((name for name, size in sizes.items() if size > most), None):
            raise DataError(f"{path}: {huge}: more than the file can hold; get it again")

    def _array(self, key: str) -> NDArray[Any]:
        with _readable(self._path):
            return np.asarray(self._file[key])


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Errors of NumPy on a file that is no npz, or a damaged one."""
    try:
        yield
    except (*_NO_ARRAY, AttributeError, BadZipFile, zlib.error, KeyError, NotImplementedError) as error:
        raise DataError(f"{path}: no readable npz file ({error!r:.200})") from error


class _Safetensors(_Arrays):
    def __init__(self, path: Path) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            self._file = cast(Any, safe_open(str(path), framework="numpy"))
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path}: no readable safetensors file ({error})") from error
        super().__init__(path, self._file.keys())

    def _shape(self, key: str) -> tuple[int, ...]:
        return tuple(self._file.get_slice(key).get_shape())

    def _array(self, key: str) -> NDArray[Any]:
        try:
            return np.asarray(self._file.get_tensor(key))
        except (TypeError, AttributeError) as error:  # of bfloat16, of 8 bits
            raise DataError(
                f"{self._path}: {key}: NumPy has no such numbers ({error}); save them in float16 or float32"
            ) from error


def _one_of(file: _Arrays, path: Path, inner: str | None) -> NDArray[Any]:
    """The only array of a file, or the one of a name."""
    names = file.keys()
    if inner in names:
        return np.asarray(file._array(inner))
    if inner is not None or len(names) != 1:
        raise _several(f"{path}: a file of {len(names)} arrays", names, inner)
    return np.asarray(file._array(names[0]))


_ONE_ARRAY: dict[str, Callable[[Path, str | None], NDArray[Any]]] = {
    ".npy": _npy,
    ".npz": lambda path, inner: _one_of(_Npz(path), path, inner),
    ".safetensors": lambda path, inner: _one_of(_Safetensors(path), path, inner),
}


def open_features(path: str | Path, inner: str | None = None) -> FeatureFiles:
    """Open features of any form, recognised by the path.

    Args:
        inner: name of the array to take where a key has several: of a group of HDF5, of a file in a folder.

    Raises:
        NotFound: no such file or folder.
        DataError: damaged, or of no known form.
        MissingDependency: h5py is needed.
    """
    path = Path(path)
    if path.is_dir():
        if (path / "shards.json").exists():
            return KeyedShards(path)
        unfinished = any(path.glob("*.f16"))  # of a conversion; it has an .npz of its own
        for suffix in _ONE_ARRAY:
            if not unfinished and any(path.glob(f"*{suffix}")):
                return _Files(path, suffix, inner)
        raise DataError(f"{path}: holds neither shards.json nor .npy, .npz or .safetensors files")
    if not path.exists():
        raise NotFound(no_such(path, "file or folder"))
    if not path.is_file():
        raise DataError(f"{path}: no regular file; name a file of features, or a folder of them")
    if path.suffix in (".safetensors", ".npz"):
        return _Safetensors(path) if path.suffix == ".safetensors" else _Npz(path)
    return _Hdf5(path, inner)


@contextmanager
def new_folder(folder: str | Path) -> Iterator[None]:
    """Fill a new or empty folder; if the block raises, the folder is empty or missing again, as before.

    Raises:
        InvalidValue: the folder holds something, or is a file.
    """
    folder = Path(folder)
    there = folder.exists()
    if there and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidValue(f"{folder}: not empty; give a new folder")
    try:
        yield
    except BaseException:
        shutil.rmtree(folder.resolve(), ignore_errors=True)
        if there:
            folder.resolve().mkdir(exist_ok=True)
        raise


def convert(
    source: FeatureFiles,
    folder: str | Path,
    *,
    shard_bytes: int = 1 << 30,
    origin: str | Path = "features",
) -> KeyedShards:
    """Write any features, of one dimension, as our shards in a new or empty folder.

    A new shard begins at ``shard_bytes``; ``origin`` is the file or folder of the features, for errors.

    Raises:
        InvalidValue: the folder is not empty, or there are no features.
        DataError: dimensions differ, or a number does not fit half precision; the message names the key.
    """
    folder = Path(folder)
    with new_folder(folder):
        keys = source.keys()
        if not keys:
            raise InvalidValue(f"{origin}: no features: there is nothing to convert")
        dim = source.shape(keys[0])[1]
        if not dim:
            raise DataError(f"{origin}: {keys[0]}: rows without numbers; leave it out, or get the file again")
        shards = FeatureShards(folder, "rows", dim, shard_bytes=shard_bytes)
        extents: list[Extent] = []
        end = (0, 0)
        for key in keys:
            rows = source.read(key)
            if rows.shape[1] != dim:
                raise DataError(
                    f"{origin}: {key}: dimension {rows.shape[1]}, but {keys[0]} has {dim}; give features of "
                    "one dimension, others in a file of their own"
                )
            extent = shards.append(halves(rows, f"{origin}: {key}"), end, sync=False)
            extents.append(extent)
            end = (extent.shard, extent.offset + extent.count)
        shards.sync()
        return write_table(folder, list(keys), extents, dim)
