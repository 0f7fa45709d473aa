"""Arrays in one file come back as they were; a damaged file is named in full."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from moviola.errors import SegmentIndexError
from moviola.files.array_file import map_arrays, write_arrays


def test_arrays_come_back(tmp_path: Path) -> None:
    ids, vectors = np.arange(5), np.arange(10, dtype=np.float32).reshape(5, 2)
    write_arrays(tmp_path / "file", {"ids": (ids, "int64"), "vectors": (vectors, "float16")})
    found = map_arrays(tmp_path / "file", ["vectors", "ids"])
    np.testing.assert_array_equal(found["ids"].values, ids)
    np.testing.assert_array_equal(found["vectors"].values, vectors.astype(np.float16))


def test_a_damaged_file_is_named_in_full(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"not an array file")
    with pytest.raises(SegmentIndexError, match=re.escape(f"{path}: damaged")):
        map_arrays(path, ["ids"])
    with path.open("rb") as file, pytest.raises(SegmentIndexError, match=re.escape(f"{path}: damaged")):
        map_arrays(file, ["ids"])
