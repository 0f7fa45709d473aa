"""Weights as NumPy arrays, without torch: memory-mapped, converted on use.

Safetensors: 8 bytes little-endian header length, a JSON header ``name -> {dtype, shape, data_offsets}``,
then the tensors in row-major order. bfloat16, which NumPy lacks, is widened to float32 by its bits. Of Q4_0
(:mod:`moviola.encoders.packed`) a row of a matrix is blocks of 18 bytes, each for 32 values.
"""

from __future__ import annotations

import errno
import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.checkpoints import read_json
from moviola.encoders.names import AS_ASKED, Names
from moviola.errors import DataError
from moviola.files.halves import widened

__all__ = ["PACKED", "PER_BLOCK", "Tensor", "Weights"]

PACKED, PER_BLOCK = "Q4_0", 32
"""Format of 4-bit values, and how many of them share a scale; arrays of it are (rows, blocks, 18) uint8."""

Tensor = tuple[str, NDArray[Any], str]
"""Name, array in its stored form, and name of that form."""

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
# Names in checkpoints that come from TensorFlow's, such as bert-base-uncased.
_RENAMED = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))
_LONGEST_HEADER = 100 << 20


class Weights:
    """The float tensors of a checkpoint, read lazily.

    Args:
        source: where they come from, for messages.
        tensors: each in its stored form.
        prefix: of their names (``"bert."``), which is left out by callers.
        names: where in this checkpoint lies what callers ask for.
    """

    def __init__(
        self, source: Path, tensors: Iterable[Tensor], prefix: str = "", names: Names = AS_ASKED
    ) -> None:
        self.source, self._names = source, names
        self._raw: dict[str, tuple[NDArray[Any], str]] = {}
        self._float32: dict[str, NDArray[np.float32]] = {}
        self._used: set[str] = set()
        for name, raw, kind in tensors:
            for old, new in _RENAMED:
                name = name.replace(old, new)
            self._raw[name.removeprefix(prefix)] = (raw, kind)

    @classmethod
    def stored(cls, *files: Path, prefix: str = "", names: Names = AS_ASKED) -> Weights:
        """Those of safetensors files. Raises DataError: one cannot be read."""
        source = files[0] if len(files) == 1 else files[0].parent
        return cls(source, (tensor for file in files for tensor in _tensors(file)), prefix, names)

    @classmethod
    def of(
        cls, folder: Path, prefix: str = "", names: Names = AS_ASKED, *, stem: str = "model"
    ) -> Weights | None:
        """The weights in ``STEM.safetensors``, or in the shards that its index names; None without."""
        whole, index = folder / f"{stem}.safetensors", folder / f"{stem}.safetensors.index.json"
        if whole.is_file():
            return cls.stored(whole, prefix=prefix, names=names)
        if index.is_file():
            try:
                shards = sorted(set(read_json(index)["weight_map"].values()))
                if away := [name for name in shards if Path(name).name != name]:
                    raise DataError(
                        f"{index}: names {away[0]!r:.100}, no file beside it; fetch the model again"
                    )
                return cls.stored(*(folder / name for name in shards), prefix=prefix, names=names)
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                raise DataError(
                    f"{index}: names no files of weights ({error!r:.200}); fetch the model again"
                ) from error
        return None

    def __contains__(self, name: str) -> bool:
        return self._names.of(name).name in self._raw

    @property
    def names(self) -> list[str]:
        """Names in the checkpoint."""
        return list(self._raw)

    def own_name(self, name: str) -> str:
        """The checkpoint's own name of what callers ask for."""
        return self._names.of(name).name

    def not_finite(self) -> str:
        """Name in the checkpoint of a tensor with infinite numbers or NaN; empty without one."""
        return next(
            (name for name, stored in self._raw.items() if not np.isfinite(_widen(*stored)).all()), ""
        )  # fmt: skip

    def shape(self, name: str) -> tuple[int, ...]:
        raw, kind = self._tensor(name)
        return (len(raw), raw.shape[1] * PER_BLOCK) if kind == PACKED else tuple(raw.shape)

    def array(self, name: str) -> NDArray[np.float32]:
        """A whole tensor as float32; kept from the second time on. A first search goes through the weights
        once, and what is freed serves the next tensor: new memory takes twice as long as to widen into it.
        """
        if (kept := self._float32.get(name)) is not None:
            return kept
        array = _widen(*self._tensor(name))
        if name in self._used:
            self._float32[name] = array
        self._used.add(name)
        return array

    def rows(self, name: str, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rows of a matrix as float32 (an embedding table may have a quarter of a million)."""
        raw, kind = self._tensor(name)
        return _widen(raw[rows], kind)

    def _tensor(self, name: str) -> tuple[NDArray[Any], str]:
        own, form = self._names.of(name)
        try:
            raw, kind = self._raw[own]
        except KeyError as error:
            raise DataError(
                f"{self.source}: holds no {own!r} of type {', '.join(_DTYPES)}; fetch it again, or take a "
                "checkpoint that has it, of one of these types"
            ) from error
        try:
            return form(raw), kind
        except (ValueError, IndexError) as error:
            raise DataError(
                f"{self.source}: {own!r} has the shape {list(raw.shape)}, which is none of such a tensor; "
                "fetch the checkpoint again"
            ) from error


def _widen(raw: NDArray[Any], kind: str) -> NDArray[np.float32]:
    if kind == "BF16":
        return (np.ascontiguousarray(raw, np.uint32) << 16).view(np.float32).reshape(raw.shape)
    if kind == PACKED:
        return _unpacked(raw)
    if raw.dtype == np.float16:
        return widened(raw)
    return np.ascontiguousarray(raw, dtype=np.float32).reshape(raw.shape)  # of a scalar, too


def _unpacked(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Blocks (..., n, 18) as values (..., 32 n): a half-precision scale, and 16 bytes whose low four bits are
    the first 16 values and whose high ones the others, each plus 8.
    """
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    pairs = blocks[..., 2:]
    values = np.empty((*pairs.shape[:-1], PER_BLOCK), np.float32)
    values[..., : PER_BLOCK // 2] = pairs & 15
    values[..., PER_BLOCK // 2 :] = pairs >> 4
    values -= 8
    values *= scales
    return values.reshape(*blocks.shape[:-2], -1)


def _tensors(file: Path) -> list[Tensor]:
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
