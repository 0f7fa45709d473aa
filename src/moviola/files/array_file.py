"""Named arrays in one file, each that fills a page on pages of its own, so that all can be used without
reading any.

The file begins with eight bytes that name the format, the length of a header (uint64, little-endian) and the
header, JSON: data type, shape and offset in the file of each array.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, SegmentIndexError
from moviola.files.file_rows import Rows
from moviola.files.mapped import MappedFile
from moviola.files.sealed import opened_sealed, sealed_draft_of

__all__ = [
    "MAGIC", "MappedArray", "map_arrays", "map_sealed_arrays", "write_arrays",
    "write_sealed_arrays",
]  # fmt: skip

MAGIC = b"moviola\x01"
_PAGE, _LINE = 4096, 64
# No file is longer; in the header, an offset takes as many digits at most.
_LONGEST = 1 << 50
_ROWS_AT_ONCE = 1 << 12
# Errors that reading a damaged header can raise.
_DAMAGED = (
    OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError, MemoryError,
)  # fmt: skip


def write_arrays(path: Path, arrays: Mapping[str, tuple[Rows, str]]) -> None:
    """Write arrays (n, ...), or rows in a file, with the data types in which they are to be stored."""
    header: dict[str, list[Any]] = {
        name: [dtype, list(array.shape), _LONGEST] for name, (array, dtype) in arrays.items()
    }
    # Few rows take few bytes: sets in parts have many files of one row or some.
    offset = _up_to(len(MAGIC) + 8 + len(json.dumps(header).encode()), _LINE)
    for name, (array, dtype) in arrays.items():
        size = math.prod(array.shape) * np.dtype(dtype).itemsize
        offset = _up_to(offset, _PAGE if size >= _PAGE else _LINE)
        header[name][2] = offset
        offset += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(MAGIC + np.uint64(len(text)).tobytes() + text)
        for name, (array, dtype) in arrays.items():
            file.seek(header[name][2])
            for begin in range(0, len(array), _ROWS_AT_ONCE):
                file.write(np.ascontiguousarray(array[begin : begin + _ROWS_AT_ONCE], dtype).tobytes())
        file.truncate(offset)


def _up_to(offset: int, multiple: int) -> int:
    return -(-offset // multiple) * multiple


@dataclass(frozen=True)
class MappedArray:
    """An array as a view of a file's memory map, and where in the file it begins, in bytes."""

    values: NDArray[Any]
    offset: int


def write_sealed_arrays(path: Path, arrays: Mapping[str, tuple[Rows, str]]) -> None:
    """As :func:`write_arrays`, in one step and sealed; errors of :func:`moviola.files.writing.draft_of`."""
    with sealed_draft_of(path) as draft:
        write_arrays(draft, arrays)


def map_sealed_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """All or some of the arrays of a sealed file, which is compared with its digest, by name.

    Raises:
        DataError: the file is missing or damaged.
    """
    try:
        with opened_sealed(path) as file:
            return {name: array.values for name, array in map_arrays(file, names).items()}
    except SegmentIndexError as error:
        what = "of another form than this version writes"
        raise DataError(f"{path}: {what}; delete it, it is made again") from error


def map_arrays(path: Path | IO[bytes], names: Iterable[str] | None = None) -> dict[str, MappedArray]:
    """All or some of the arrays of a file, by its path or open, by name.

    Raises:
        SegmentIndexError: the file is damaged.
    """
    try:
        whole = MappedFile(path).array
        length = int(whole[8:16].view(np.uint64)[0])
        header = json.loads(whole[16 : 16 + length].tobytes())
        return {name: _array(whole, *header[name]) for name in (header if names is None else names)}
    except _DAMAGED as error:
        name = path if isinstance(path, Path) else path.name
        raise SegmentIndexError(f"{name}: damaged index file ({error}); rebuild it") from error


def _array(whole: NDArray[np.uint8], dtype: str, shape: list[int], offset: int) -> MappedArray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return MappedArray(whole[offset : offset + size].view(dtype).reshape(shape), offset)
