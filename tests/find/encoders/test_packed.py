"""Files of packed weights: what they hold, and what is refused."""

from __future__ import annotations

import hashlib
import math
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.encoders.packed import PackedModel
from moviola.encoders.towers import WORDS
from moviola.encoders.weights import PACKED, Weights
from moviola.errors import DataError

PIECES = ("<s>", "<pad>", "</s>", "<unk>", "▁a", "é", "<mask>")
WIDTH, INNER, ROWS, POSITIONS = 32, 64, 8, 4


@given(
    st.lists(st.tuples(st.binary(min_size=2, max_size=2), st.binary(min_size=16, max_size=16)), min_size=1)
)
def test_packed_values_are_those_of_a_naive_reader(blocks: list[tuple[bytes, bytes]]) -> None:
    """Low and high halves of a byte, the scale of each block, and the offset of 8."""
    blocks = [block for block in blocks if math.isfinite(struct.unpack("<e", block[0])[0])]
    wanted = [
        (nibble - 8) * struct.unpack("<e", scale)[0]
        for scale, pairs in blocks
        for nibble in [*(pair & 15 for pair in pairs), *(pair >> 4 for pair in pairs)]
    ]
    raw = np.frombuffer(b"".join(scale + pairs for scale, pairs in blocks), np.uint8).reshape(1, -1, 18)
    weights = Weights(Path("x"), [("table", raw, PACKED)])
    assert weights.shape("table") == (1, len(wanted))
    assert weights.array("table").tolist() == weights.rows("table", np.array([0])).tolist() == [wanted]


def packed_file(path: Path) -> dict[str, np.ndarray]:
    """Write a file in the form that is read, of a network without layers; returns its tensors as float32."""
    text = "".join(PIECES).encode()
    starts = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)]).astype("<i4")
    scores = np.linspace(-1, -9, len(PIECES), dtype="<f4")
    generator = np.random.default_rng(0)
    nibbles = generator.integers(0, 16, (ROWS, WIDTH))
    scales = np.array(generator.uniform(0.1, 1, (ROWS, 1)), "<f2")
    packed = np.concatenate([scales.view(np.uint8), nibbles[:, :16] | nibbles[:, 16:] << 4], 1).astype(
        np.uint8
    )
    floats = {
        "emb.pos": generator.normal(size=(POSITIONS, WIDTH)).astype("<f4"),
        "l0.fi.b": generator.normal(size=INNER).astype("<f4"),
        "emb.ln.w": generator.normal(size=WIDTH).astype("<f4"),
    }
    sizes = (1, WIDTH, 1, 2, INNER, ROWS, POSITIONS, 2)
    head = struct.pack("<4s8If6IQ", b"E5S1", *sizes, 1e-12, 32, len(PIECES), 0, 2, 1, 3, len(text))
    letters = struct.pack("<IBI", ord("ａ"), 1, ord("a"))
    front = head + starts.tobytes() + scores.tobytes() + text + struct.pack("<2I", 1, len(letters)) + letters
    bodies = [("emb.word", 1, ROWS * WIDTH, packed.tobytes())]
    bodies += [(name, 0, rows.size, rows.tobytes()) for name, rows in floats.items()]
    at = len(front) + 4 + sum(2 + len(name) + 21 for name, *_ in bodies)
    table = struct.pack("<I", len(bodies))
    for name, kind, values, body in bodies:
        table += (
            struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, values, at, len(body))
        )
        at += len(body)
    path.write_bytes(front + table + b"".join(body for *_, body in bodies))
    return {
        WORDS: (nibbles - 8) * scales.astype(np.float32),
        "embeddings.position_embeddings.weight": floats["emb.pos"],
        "encoder.layer.0.intermediate.dense.bias": floats["l0.fi.b"],
        "embeddings.LayerNorm.weight": floats["emb.ln.w"],
    }


def test_a_file_holds_pieces_and_tensors(tmp_path: Path) -> None:
    """Every tensor under the name that the transformers ask for, and the text of every piece."""
    wanted = packed_file(tmp_path / "model.bin")
    model = PackedModel(tmp_path / "model.bin")
    weights = model.weights()
    assert set(weights.names) == set(wanted)
    for name, rows in wanted.items():
        assert weights.array(name) == pytest.approx(rows)
    pieces, text = model.pieces, model.pieces.text.tobytes()
    ends = zip(pieces.starts[:-1], pieces.starts[1:], strict=True)
    assert tuple(text[a:b].decode() for a, b in ends) == PIECES
    assert pieces[3:] == (0, 2, 1, 3)


def test_a_damaged_or_foreign_file_is_refused(tmp_path: Path) -> None:
    """Cut short anywhere, one bit of it flipped, another digest, another format, none at all: an error that
    names the file and what to do, never numbers that are wrong.
    """
    path = tmp_path / "model.bin"
    packed_file(path)
    whole = path.read_bytes()
    digest = hashlib.sha256(whole).hexdigest()
    PackedModel(path, digest)
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(DataError, match=r"model\.bin: .*install its package again"):
            PackedModel(path)
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(DataError, match="its SHA-256 is"):
            PackedModel(path, digest)
    for other in (b"E5S2" + whole[4:], whole[:4] + b"\2" + whole[5:], b"\0" * 200):
        path.write_bytes(other)
        with pytest.raises(DataError, match="another format"):
            PackedModel(path)
    with pytest.raises(DataError, match="No such file"):
        PackedModel(tmp_path / "none.bin", digest)


def test_a_file_that_is_cut_short_later_is_noticed(tmp_path: Path) -> None:
    """The system ends a process that reads a mapped page that is gone."""
    path = tmp_path / "model.bin"
    packed_file(path)
    model = PackedModel(path)
    os.truncate(path, 100)
    with pytest.raises(DataError, match="shorter than it was"):
        model.weights()
