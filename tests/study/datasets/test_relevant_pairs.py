"""Potentially relevant pairs against the definition, pair by pair; phrases of sentences read by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue, MissingDependency, NotFound
from moviola.study.datasets import english
from moviola.study.datasets.building import relevant_pairs as module
from moviola.study.datasets.building.phrases import Chunker, Phrase, chunker_with_spacy
from moviola.study.datasets.building.relevant_pairs import (
    mark_of,
    parts_of,
    read_relevant_pairs,
    relevant_pairs,
    write_relevant_pairs,
)
from moviola.study.datasets.building.steps import find_relevant_pairs
from moviola.study.datasets.gridhouse.vocabulary import ACTIONS, COLOURS, ROBOTS, Slots, Thing, caption

CAPTIONS = [
    "A man opens the door and walks into the room.",
    "A woman is walking into a room while a man opens a window.",
    "Two people walked up and were sitting on the couch.",
    "A person sits on a sofa.",
]


READ_BY_HAND: dict[str, list[tuple[tuple[str, ...], str]]] = {
    CAPTIONS[0]: [(("man",), "opens the door"), (("man",), "walks into the room")],
    CAPTIONS[1]: [(("woman",), "walking into a room"), (("man",), "opens a window")],
    CAPTIONS[2]: [(("people",), "walked up"), (("people",), "sitting on the couch")],
    CAPTIONS[3]: [(("person",), "sits on a sofa")],
    # The paper's own example (section 4.1).
    "man and woman start dancing": [(("man", "woman"), "start dancing"), (("man", "woman"), "dancing")],
    "Opens a box.": [((), "opens a box")],
    "A red car.": [],
    "The man starts to open the lid.": [(("man",), "starts to open the lid"), (("man",), "open the lid")],
    "The woman who holds a cup laughs at a sleeping dog.": [
        (("woman",), "holds a cup"),
        (("woman",), "laughs at a sleeping dog"),
    ],
    "person turn a light on.": [(("person",), "turn a light on")],
    "The red robot puts the cyan ball down.": [(("robot",), "puts the cyan ball down")],
}


@pytest.fixture(scope="module")
def chunk() -> Chunker:
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'moviola[language]'")
    return chunker_with_spacy()


def test_phrases_are_those_read_by_hand(chunk: Chunker) -> None:
    found = chunk(list(READ_BY_HAND))
    expected = [[Phrase(*phrase) for phrase in phrases] for phrases in READ_BY_HAND.values()]
    assert found == expected


def test_every_caption_of_gridhouse_has_its_robot_and_its_verb(chunk: Chunker) -> None:
    """Whatever its colours are called, which a tagger may take for names."""
    generator = np.random.default_rng(0)
    captions = {
        caption(Slots(robot, action, Thing(colour, kind), None, "grey"), generator): action
        for robot, action, colour, kind in product(ROBOTS, ACTIONS, COLOURS[5:], ("key", "box"))
    }
    for text, phrases in zip(captions, chunk(list(captions)), strict=True):
        assert len(phrases) == 1, text
        assert phrases[0].nouns == ("robot",), text
        assert text.startswith(f"the {text.split()[1]} robot {phrases[0].verb_phrase}"), text


def test_parts_of_each_phi() -> None:
    both = "man and woman start dancing"
    phrases = [[Phrase(*phrase) for phrase in READ_BY_HAND[text]] for text in (both, "A red car.")]
    assert parts_of([both], "sent", phrases[:1])[0] == (both,)
    assert parts_of([both], "vp", phrases[:1])[0] == (both, "start dancing", "dancing")
    # As the paper has it: "man start dancing" and "woman start dancing".
    assert parts_of([both, "A red car."], "np-vp", phrases)[0] == (
        "man start dancing",
        "woman start dancing",
        "man dancing",
        "woman dancing",
        "A red car.",
    )
    assert parts_of(["Opens a box."], "np-vp", [[Phrase((), "opens a box")]])[0] == ("opens a box",)
    with pytest.raises(InvalidValue, match="phi 'x': unknown; choose sent, vp, np-vp"):
        parts_of([both], "x", phrases[:1])


def test_without_a_parser_phrases_are_refused_and_sentences_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ones:
        def encode_text(self, texts: list[str]) -> NDArray[np.float32]:
            return np.ones((len(texts), 1), np.float32)

    monkeypatch.setattr(english, "PIPELINES", ())
    assert len(find_relevant_pairs(CAPTIONS[:2], Ones(), phi="sent")) == 2
    with pytest.raises(MissingDependency, match=r"-m pip install .*spacy"):
        find_relevant_pairs(CAPTIONS[:2], Ones(), phi="vp")


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


@pytest.mark.parametrize(("theta", "others"), [(0.5, [1, 0]), (0.51, [])])
def test_captions_that_resemble_each_other_by_exactly_theta_are_relevant(
    theta: float, others: list[int]
) -> None:
    rows = np.array([[1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5]], np.float32)
    assert relevant_pairs(rows, rows, np.arange(3), theta).other.tolist() == others


def test_stored_and_read_back(tmp_path: Path) -> None:
    eye = np.eye(3, dtype=np.float32)[[0, 1, 0]]
    pairs = relevant_pairs(eye, eye, np.arange(4), 0.5)
    write_relevant_pairs(pairs, tmp_path / "p.npz")
    again = read_relevant_pairs(tmp_path / "p.npz")
    assert again.other.tolist() == [2, 0] and again.theta == 0.5 and again.mark == ""
    write_relevant_pairs(replace(pairs, mark=mark_of(["a", "b ", "a"])), tmp_path / "p.npz")
    assert (
        read_relevant_pairs(tmp_path / "p.npz").mark == mark_of(["a", "b", "a"]) != mark_of(["b", "a", "a"])
    )
    f, psi = again.among(np.array([2, 1, 0]))
    assert np.argwhere(f).tolist() == [[0, 2], [2, 0]] and psi[0, 2] == 1
    with pytest.raises(InvalidValue, match="each once"):
        again.among(np.array([1, 1]))
    with pytest.raises(NotFound, match="moviola dataset relevant-pairs"):
        read_relevant_pairs(tmp_path / "gone.npz")
    np.save(tmp_path / "array.npy", eye)
    for damaged in (b"PK no", b"PK\x03\x04no", b"", (tmp_path / "array.npy").read_bytes()):
        (tmp_path / "p.npz").write_bytes(damaged)
        with pytest.raises(DataError, match=r"no table .*; `moviola dataset relevant-pairs` writes one"):
            read_relevant_pairs(tmp_path / "p.npz")


def test_pairs_go_both_ways_whatever_a_product_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 30)
    rows = np.random.default_rng(0).normal(size=(100, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.concatenate([rows, rows])
    found = relevant_pairs(rows, rows, np.arange(len(rows) + 1), 0.9999999)
    one = np.repeat(np.arange(len(rows)), np.diff(found.rows))
    values = dict(zip(zip(one.tolist(), found.other.tolist(), strict=True), found.phi.tolist(), strict=True))
    assert values and all(values.get((j, i)) == value for (i, j), value in values.items())
