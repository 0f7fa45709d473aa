"""Feature files of data sets: one (n, d) array a key, a key being a video (or a query).

Three forms are read lazily, one array at a time: HDF5 with one data set a key (as the papers' features were
released), a folder of ``KEY.npy``, and a folder of ``KEY.safetensors`` (or one such file) with one tensor a
file (or one a key). A fourth is ours, written by :func:`convert` and read through a memory map:

    FOLDER/rows-00000.f16, …  rows of ``dim`` little-endian halves, nothing else
    FOLDER/offsets.npz        keys (k,) and shard, offset, count, each (k,) int64
    FOLDER/shards.json        {"format": 1, "dim": d}; written last, so it marks a whole folder

``offset`` and ``count`` are rows of a shard; an array never spans two shards. Rows are laid out as in a
library's features folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.datasets.annotations import Annotations, Flaw
from moviola.errors import DataError, InvalidValue, MissingDependency, NotFound
from moviola.files.rows import read_json

__all__ = ["Computed", "Features", "ShardFeatures", "check_features", "convert", "open_features"]

_HALF = np.dtype("<f2")
_SHARD_BYTES = 1 << 30
_FORMAT = 1


class Features(Protocol):
    """Arrays by key, read when asked for."""

    def keys(self) -> tuple[str, ...]:
        """All keys, in file order."""

    def shape(self, key: str) -> tuple[int, int]:
        """Rows and dimension, without reading the rows; a single vector counts as one row."""

    def read(self, key: str) -> NDArray[np.float32]:
        """(n, d) float32."""


@dataclass(frozen=True, slots=True)
class Computed:
    """Features made one array at a time by a function of the key."""

    names: tuple[str, ...]
    make: Callable[[str], NDArray[np.float32]]

    def keys(self) -> tuple[str, ...]:
        """See :class:`Features`."""
        return self.names

    def shape(self, key: str) -> tuple[int, int]:
        """See :class:`Features`; the array is made for it."""
        rows, dim = self.make(key).shape
        return rows, dim

    def read(self, key: str) -> NDArray[np.float32]:
        """See :class:`Features`."""
        return self.make(key)


def _as_shape(shape: tuple[int, ...], where: str) -> tuple[int, int]:
    if len(shape) == 1:
        return 1, shape[0]
    if len(shape) != 2:
        raise DataError(f"{where}: shape {tuple(shape)}; an array of rows (n, d) is expected")
    return shape[0], shape[1]


def _as_rows(array: NDArray[Any], where: str) -> NDArray[np.float32]:
    return np.asarray(array, dtype=np.float32).reshape(_as_shape(array.shape, where))


class _Hdf5:
    """One HDF5 data set a key."""

    def __init__(self, path: Path) -> None:
        try:
            import h5py
        except ImportError as error:
            raise MissingDependency(
                f"{path}: needs the package h5py; pip install 'moviola[features]'"
            ) from error
        self._path = path
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise DataError(f"{path}: no readable HDF5 file ({error})") from error

    def keys(self) -> tuple[str, ...]:
        return tuple(self._file)

    def _at(self, key: str) -> Any:
        if key not in self._file:
            raise NotFound(f"{self._path}: no features of {key!r}")
        if not hasattr(self._file[key], "shape"):
            raise DataError(f"{self._path}: {key}: a group; one data set a key is expected")
        return self._file[key]

    def shape(self, key: str) -> tuple[int, int]:
        return _as_shape(self._at(key).shape, f"{self._path}: {key}")

    def read(self, key: str) -> NDArray[np.float32]:
        return _as_rows(self._at(key)[()], f"{self._path}: {key}")


class _Files:
    """One file a key in a folder."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self._folder, self._suffix = folder, suffix
        self._names = {path.name.removesuffix(suffix): path for path in sorted(folder.glob(f"*{suffix}"))}

    def keys(self) -> tuple[str, ...]:
        return tuple(self._names)

    def _array(self, key: str) -> NDArray[Any]:
        if key not in self._names:
            raise NotFound(f"{self._folder}: no features of {key!r} ({key}{self._suffix})")
        return _ONE_ARRAY[self._suffix](self._names[key])

    def shape(self, key: str) -> tuple[int, int]:
        return _as_shape(self._array(key).shape, f"{self._folder}: {key}")

    def read(self, key: str) -> NDArray[np.float32]:
        return _as_rows(self._array(key), f"{self._folder}: {key}")


def _npy(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: no readable npy file ({error})") from error
    return array


def _safetensors_file(path: Path) -> Any:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise MissingDependency(
            f"{path}: needs the package safetensors; pip install 'moviola[features]'"
        ) from error
    try:
        return safe_open(str(path), framework="numpy")
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: no readable safetensors file ({error})") from error


def _safetensors(path: Path) -> NDArray[Any]:
    with _safetensors_file(path) as file:
        names = list(file.keys())
        if len(names) != 1:
            raise DataError(f"{path}: {len(names)} tensors; one a file is expected in a folder")
        array: NDArray[Any] = file.get_tensor(names[0])
        return array


_ONE_ARRAY: dict[str, Callable[[Path], NDArray[Any]]] = {".npy": _npy, ".safetensors": _safetensors}


class _Safetensors:
    """One tensor a key in one file."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, _safetensors_file(path)

    def keys(self) -> tuple[str, ...]:
        return tuple(self._file.keys())

    def _known(self, key: str) -> str:
        if key not in self._file.keys():  # noqa: SIM118 - no mapping, only keys()
            raise NotFound(f"{self._path}: no features of {key!r}")
        return key

    def shape(self, key: str) -> tuple[int, int]:
        return _as_shape(tuple(self._file.get_slice(self._known(key)).get_shape()), f"{self._path}: {key}")

    def read(self, key: str) -> NDArray[np.float32]:
        return _as_rows(self._file.get_tensor(self._known(key)), f"{self._path}: {key}")


class ShardFeatures:
    """Our shards (see the module), memory-mapped.

    Raises:
        DataError: the folder is not whole, of another format, or a shard is shorter than its offsets say.
    """

    def __init__(self, folder: Path) -> None:
        head = read_json(folder / "shards.json")
        if (
            not isinstance(head, dict)
            or head.get("format") != _FORMAT
            or not isinstance(head.get("dim"), int)
        ):
            raise DataError(
                f"{folder / 'shards.json'}: format {_FORMAT} with a dim is expected, not {head!r:.60}"
            )
        self.folder, self.dim = folder, int(head["dim"])
        try:
            with np.load(folder / "offsets.npz", allow_pickle=False) as table:
                keys, shard, offset, count = (table[name] for name in ("keys", "shard", "offset", "count"))
        except (OSError, KeyError, ValueError) as error:
            raise DataError(f"{folder / 'offsets.npz'}: no readable table ({error})") from error
        self._place = {
            str(key): (int(s), int(o), int(c))
            for key, s, o, c in zip(keys, shard, offset, count, strict=True)
        }
        self._maps: dict[int, NDArray[np.float16]] = {}
        for number in np.unique(shard):
            rows = self._map(int(number))
            needed = int((offset + count)[shard == number].max())
            if len(rows) < needed:
                raise DataError(
                    f"{_shard(folder, int(number))}: {len(rows)} rows, but {needed} are listed; convert again"
                )

    def _map(self, number: int) -> NDArray[np.float16]:
        if number not in self._maps:
            path = _shard(self.folder, number)
            size = path.stat().st_size // (self.dim * _HALF.itemsize) if path.exists() else 0
            self._maps[number] = (
                np.memmap(path, dtype=_HALF, mode="r", shape=(size, self.dim))
                if size
                else np.empty((0, self.dim), _HALF)
            )
        return self._maps[number]

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of conversion."""
        return tuple(self._place)

    def shape(self, key: str) -> tuple[int, int]:
        """Rows and dimension."""
        return self._at(key)[2], self.dim

    def _at(self, key: str) -> tuple[int, int, int]:
        if key not in self._place:
            raise NotFound(f"{self.folder}: no features of {key!r}")
        return self._place[key]

    def mapped(self, key: str) -> NDArray[np.float16]:
        """(n, d) float16, a view of the memory map."""
        shard, offset, count = self._at(key)
        return self._map(shard)[offset : offset + count]

    def read(self, key: str) -> NDArray[np.float32]:
        """(n, d) float32."""
        return self.mapped(key).astype(np.float32)


def _shard(folder: Path, number: int) -> Path:
    return folder / f"rows-{number:05d}.f16"


def open_features(path: Path) -> Features:
    """Features of any form; which, the path tells.

    Raises:
        NotFound: no such file or folder.
        DataError: damaged, or of no known form.
        MissingDependency: h5py or safetensors is needed.
    """
    if path.is_dir():
        if (path / "shards.json").exists():
            return ShardFeatures(path)
        for suffix in _ONE_ARRAY:
            if any(path.glob(f"*{suffix}")):
                return _Files(path, suffix)
        raise DataError(f"{path}: holds neither shards.json nor .npy or .safetensors files")
    if not path.exists():
        raise NotFound(f"{path}: no such file or folder")
    return _Safetensors(path) if path.suffix == ".safetensors" else _Hdf5(path)


def convert(
    source: Features,
    folder: Path,
    *,
    shard_bytes: int = _SHARD_BYTES,
    progress: Callable[[int, int], None] | None = None,
) -> ShardFeatures:
    """Write any features as our shards.

    Args:
        source: arrays of one dimension.
        folder: a new or empty folder.
        shard_bytes: a new shard begins when one is that long.
        progress: called with keys done and keys in all.

    Raises:
        InvalidValue: the folder holds something, or there are no features.
        DataError: dimensions differ, or a number is not finite in half precision; the key is named.
    """
    if folder.exists() and any(folder.iterdir()):
        raise InvalidValue(f"{folder}: not empty; give a new folder")
    keys = source.keys()
    if not keys:
        raise InvalidValue("no features: there is nothing to convert")
    folder.mkdir(parents=True, exist_ok=True)
    dim = source.shape(keys[0])[1]
    places = np.zeros((len(keys), 3), np.int64)
    number = offset = 0
    for row, key in enumerate(keys):
        halves = _halves(source.read(key), dim, key, keys[0])
        if offset * dim * _HALF.itemsize >= shard_bytes:
            number, offset = number + 1, 0
        with _shard(folder, number).open("ab") as file:
            file.write(halves.tobytes())
        places[row] = number, offset, len(halves)
        offset += len(halves)
        if progress:
            progress(row + 1, len(keys))
    shard, offsets, count = places.T
    np.savez(folder / "offsets.npz", keys=np.array(keys), shard=shard, offset=offsets, count=count)
    (folder / "shards.json").write_text(json.dumps({"format": _FORMAT, "dim": dim}))
    return ShardFeatures(folder)


def _halves(rows: NDArray[np.float32], dim: int, key: str, first: str) -> NDArray[np.float16]:
    if rows.shape[1] != dim:
        raise DataError(f"{key}: dimension {rows.shape[1]}, but {first} has {dim}")
    with np.errstate(over="ignore"):
        halves = rows.astype(_HALF)
    if not np.isfinite(halves).all():
        raise DataError(f"{key}: a number is not finite, or above {np.finfo(_HALF).max:.0f} (half precision)")
    return halves


@dataclass(frozen=True, slots=True)
class _Expected:
    """What features should be like: seconds of one row and its dimension (None: as most have it)."""

    seconds: float
    dim: int | None


def check_features(
    features: Features, found: Annotations, seconds: float, *, dim: int | None = None, slack: int = 2
) -> tuple[Flaw, ...]:
    """Compare features with the videos of an annotation; what does not fit, by kind and name.

    Args:
        features: by video id.
        found: videos with durations.
        seconds: length of one row (clip) in seconds, > 0.
        dim: the dimension that is expected; None takes the most frequent one.
        slack: rows that rounding may add or cost.

    Returns:
        flaws of the kinds "no features", "no such video", "longer than the video" (stale features),
        "shorter than the video" and "other dimension".

    Raises:
        InvalidValue: ``seconds`` is not above 0.
    """
    if not seconds > 0:
        raise InvalidValue(f"seconds={seconds}: the length of a row must be above 0")
    shapes = {key: features.shape(key) for key in features.keys()}  # noqa: SIM118 - no mapping
    videos = dict(zip(found.videos, found.durations.tolist(), strict=True))
    dims = [shape[1] for shape in shapes.values()]
    expected = _Expected(seconds, dim or (max(set(dims), key=dims.count) if dims else None))
    flaws = [Flaw("no features", video) for video in videos if video not in shapes]
    for key, shape in shapes.items():
        flaws += [Flaw(kind, key) for kind in _misfits(key, shape, videos, expected, slack)]
    return tuple(flaws)


def _misfits(
    key: str, shape: tuple[int, int], videos: Mapping[str, float], expected: _Expected, slack: int
) -> Iterator[str]:
    rows, dim = shape
    if dim != expected.dim:
        yield "other dimension"
    if key not in videos:
        yield "no such video"
        return
    needed = videos[key] / expected.seconds
    if rows > needed + slack:
        yield "longer than the video"
    if rows < needed - slack:
        yield "shorter than the video"
