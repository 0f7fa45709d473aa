"""Potentially relevant pairs against the definition, pair by pair; the chunker on sentences read by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.datasets.building import relevant_pairs as module
from moviola.datasets.building.phrases import Phrase, chunker_with_rules, load_chunker
from moviola.datasets.building.relevant_pairs import (
    parts_of,
    read_relevant_pairs,
    relevant_pairs,
    write_relevant_pairs,
)
from moviola.errors import DataError, InvalidValue, NotFound

CAPTIONS = [
    "A man opens the door and walks into the room.",
    "A woman is walking into a room while a man opens a window.",
    "Two people walked up and were sitting on the couch.",
    "A person sits on a sofa.",
    "He opened it, closing the box then walks off.",
]


def test_chunks_read_by_hand() -> None:
    chunk = chunker_with_rules(CAPTIONS)
    assert chunk(CAPTIONS[0]) == [Phrase("man", "opens the door"), Phrase("man", "walks into the room")]
    assert chunk(CAPTIONS[1]) == [Phrase("woman", "walking into a room"), Phrase("man", "opens a window")]
    assert chunk(CAPTIONS[2]) == [Phrase("people", "walked up"), Phrase("people", "sitting on the couch")]
    assert chunk("Opens a box.") == [Phrase("", "opens a box")]
    assert chunk("A red car.") == []
    assert chunk("The man starts to open the lid that was not closed.") == [
        Phrase("man", "open the lid"),
        Phrase("man", "closed"),
    ]
    assert chunk("A man is, as ever, here.")[0] == Phrase("man", "is")


def test_parts_of_each_phi() -> None:
    chunk = chunker_with_rules(CAPTIONS)
    first = CAPTIONS[0]
    assert parts_of([first], "sent", chunk).texts == (first,)
    assert parts_of([first], "vp", chunk).texts == (first, "opens the door", "walks into the room")
    assert parts_of([first, "A red car."], "np-vp", chunk).texts == (
        "man opens the door",
        "man walks into the room",
        "A red car.",
    )
    with pytest.raises(InvalidValue, match="phi 'x': unknown; there are sent, vp, np-vp"):
        parts_of([first], "x", chunk)
    with pytest.raises(InvalidValue, match="unknown; there are rules, spacy"):
        load_chunker("x", CAPTIONS)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=9), st.floats(0.05, 1.0), st.integers(0, 2**32 - 1))
def test_pairs_follow_the_definition(sizes: list[int], theta: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def unit(n: int) -> np.ndarray:
        rows = draw.normal(size=(n, 3)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    parts, sentences = unit(int(offsets[-1])), unit(len(sizes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 2)
        got = relevant_pairs(sentences, parts, offsets, theta)
    expected = {}
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            phi = (parts[offsets[i] : offsets[i + 1]] @ parts[offsets[j] : offsets[j + 1]].T).max()
            if i != j and abs(phi - theta) > 1e-5 and phi >= theta:
                expected[i, j] = (phi, max(float(sentences[i] @ sentences[j]), 0.0))
    rows = np.repeat(np.arange(got.count), np.diff(got.rows))
    table = {
        (int(i), int(j)): (phi, psi)
        for i, j, phi, psi in zip(rows, got.other, got.phi, got.psi, strict=True)
        if abs(phi - theta) > 1e-5
    }
    assert table.keys() == expected.keys()
    for pair, values in expected.items():
        assert table[pair] == pytest.approx(values, abs=1e-5)
    f, psi = got.among(np.arange(got.count)[::-1].copy())
    assert f.sum() == len(got) and not f.diagonal().any()
    assert not psi[~f].any()


def test_stored_and_read_back(tmp_path: Path) -> None:
    eye = np.eye(3, dtype=np.float32)[[0, 1, 0]]
    pairs = relevant_pairs(eye, eye, np.arange(4), 0.5)
    write_relevant_pairs(pairs, tmp_path / "p.npz")
    again = read_relevant_pairs(tmp_path / "p.npz")
    assert again.other.tolist() == [2, 0] and again.theta == 0.5
    f, psi = again.among(np.array([2, 1, 0]))
    assert np.argwhere(f).tolist() == [[0, 2], [2, 0]] and psi[0, 2] == 1
    with pytest.raises(InvalidValue, match="each once"):
        again.among(np.array([1, 1]))
    with pytest.raises(NotFound, match="moviola dataset relevant-pairs"):
        read_relevant_pairs(tmp_path / "gone.npz")
    (tmp_path / "p.npz").write_bytes(b"PK no")
    with pytest.raises(DataError, match="no table"):
        read_relevant_pairs(tmp_path / "p.npz")
