"""Safetensors as NumPy arrays, without torch: memory-mapped, converted on use.

The format: 8 bytes little-endian header length, a JSON header ``name -> {dtype, shape, data_offsets}``,
then the tensors in row-major order. bfloat16, which NumPy lacks, is widened to float32 by its bits.
"""

from __future__ import annotations

import errno
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.checkpoints import read_json
from moviola.errors import DataError

__all__ = ["Weights"]

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
# Names in checkpoints that come from TensorFlow's, such as bert-base-uncased.
_RENAMED = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))
_LONGEST_HEADER = 100 << 20


class Weights:
    """The float tensors of a checkpoint folder, read lazily; a prefix of their names in the file
    (``"bert."``) is left out by callers.
    """

    def __init__(self, files: list[Path], prefix: str = "") -> None:
        self._folder = files[0].parent
        self._raw: dict[str, tuple[NDArray[Any], str]] = {}
        self._float32: dict[str, NDArray[np.float32]] = {}
        for file in files:
            for name, raw, kind in _tensors(file):
                for old, new in _RENAMED:
                    name = name.replace(old, new)
                self._raw[name.removeprefix(prefix)] = (raw, kind)

    @classmethod
    def of(cls, folder: Path, prefix: str = "") -> Weights | None:
        """The weights in ``model.safetensors``, or in the shards that its index names; None without."""
        if (folder / "model.safetensors").is_file():
            return cls([folder / "model.safetensors"], prefix)
        index = folder / "model.safetensors.index.json"
        if index.is_file():
            try:
                names = sorted(set(read_json(index)["weight_map"].values()))
                return cls([folder / name for name in names], prefix)
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                raise DataError(
                    f"{index}: names no files of weights ({error!r:.200}); fetch the model again"
                ) from error
        return None

    def __contains__(self, name: str) -> bool:
        return name in self._raw

    @property
    def names(self) -> list[str]:
        return list(self._raw)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._tensor(name)[0].shape)

    def array(self, name: str) -> NDArray[np.float32]:
        """A whole tensor as float32; kept, since every batch needs it again."""
        if name not in self._float32:
            self._float32[name] = _widen(*self._tensor(name))
        return self._float32[name]

    def rows(self, name: str, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rows of a matrix as float32 (an embedding table may have a quarter of a million)."""
        raw, kind = self._tensor(name)
        return _widen(raw[rows], kind)

    def _tensor(self, name: str) -> tuple[NDArray[Any], str]:
        try:
            return self._raw[name]
        except KeyError as error:
            raise DataError(
                f"{self._folder}: its safetensors hold no {name!r} of type {', '.join(_DTYPES)}; take a "
                "checkpoint whose weights are of one of these types"
            ) from error


def _widen(raw: NDArray[Any], kind: str) -> NDArray[np.float32]:
    if kind == "BF16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(raw, dtype=np.float32)


def _tensors(file: Path) -> list[tuple[str, NDArray[Any], str]]:
    """Name, memory-mapped array and format name of every float tensor in one safetensors file."""
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > _LONGEST_HEADER:
                raise ValueError(f"header of {length} bytes")
            header = json.loads(stream.read(length))
        data = np.memmap(file, dtype=np.uint8, mode="r", offset=8 + length)
        tensors = []
        for name, entry in header.items():
            if name != "__metadata__" and entry["dtype"] in _DTYPES:
                start, end = entry["data_offsets"]
                raw = data[start:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
                tensors.append((name, raw, entry["dtype"]))
        return tensors
    except (
        OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, struct.error,
    ) as error:  # fmt: skip
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            raise MemoryError(f"{file} cannot be mapped") from error
        raise DataError(
            f"{file}: not a readable safetensors file ({error}); fetch the model again"
        ) from error
