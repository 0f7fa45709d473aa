"""A sealed file says by itself whether it is whole."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from moviola.errors import DataError
from moviola.files.sealed import SEAL_BYTES, is_sealed, opened_sealed, sealed_draft_of


def sealed(path: Path, content: bytes) -> Path:
    with sealed_draft_of(path) as draft:
        draft.write_bytes(content)
    return path


@pytest.mark.parametrize("content", [b"", b"sealed\x00\x01", bytes(range(40))])
def test_every_flipped_bit_and_every_lost_end_is_seen(content: bytes, tmp_path: Path) -> None:
    path = sealed(tmp_path / "file", content)
    whole = path.read_bytes()
    assert whole[:-SEAL_BYTES] == content and is_sealed(path)
    for bit in range(8 * len(whole)):
        harmed = bytearray(whole)
        harmed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(harmed)
        assert not is_sealed(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert not is_sealed(path)
    path.write_bytes(whole + b"\0")
    assert not is_sealed(path)


def test_an_archive_is_read_with_its_seal(tmp_path: Path) -> None:
    buffer = BytesIO()
    np.savez(buffer, values=np.arange(5))
    path = sealed(tmp_path / "file.npz", buffer.getvalue())
    with opened_sealed(path) as file, np.load(file) as archive:
        assert archive["values"].tolist() == [0, 1, 2, 3, 4]


def test_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("pipe", "folder", "loop", "nothing", "a\0b", "x" * 300):
        with pytest.raises(DataError, match="delete it, it is made again"), opened_sealed(tmp_path / name):
            pass
        assert not is_sealed(tmp_path / name)
