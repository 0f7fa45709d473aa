"""Tokens by a model of the pieces of new words alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.models import Unigram

from moviola.encoders.packed import Pieces
from moviola.encoders.pieces import PieceTokenizer

VOCABULARY = (
    ("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("a", -3.0), ("b", -3.5),
    ("ab", -4.0), ("▁ab", -5.0), ("aba", -6.5), ("ba", -4.4), ("ü", -6.0), ("bü", -7.0), ("▁a", -3.9),
    ("zz", -15.0), ("<mask>", 0.0),
)  # fmt: skip
UNKNOWN, START, END = 3, 0, 2


def tokenizer(longest: int = 512) -> PieceTokenizer:
    texts = [text.encode() for text, _ in VOCABULARY]
    starts = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    scores = np.array([score for _, score in VOCABULARY], np.float32)
    text = np.frombuffer(b"".join(texts), np.uint8)
    return PieceTokenizer(Pieces(starts, scores, text, START, END, 1, UNKNOWN), longest)


@given(st.lists(st.lists(st.text("abüx", min_size=1), min_size=1).map(" ".join), min_size=1))
def test_tokens_are_those_of_the_whole_vocabulary(texts: list[str]) -> None:
    """A piece that is not looked for, or another penalty of what is unknown, would give other tokens."""
    whole = Unigram([(text, float(np.float32(score))) for text, score in VOCABULARY], UNKNOWN)
    wanted = [
        [START, *(token.id for word in text.split() for token in whole.tokenize(f"▁{word}")), END]
        for text in texts
    ]
    assert tokenizer().encode(texts) == wanted


def test_texts_are_normalised_and_cut() -> None:
    """Full width, control characters and blanks of any kind; the end stays where a text is too long; names of
    special pieces in a text are text.
    """
    own = tokenizer()
    assert own.encode(["ａ\u200bb\x01\n\u3000ab"]) == own.encode(["a b ab"])
    assert own.encode(["u\u0308"]) == own.encode(["ü"])
    assert tokenizer(4).encode(["ab ab ab", ""]) == [[START, 8, 8, END], [START, END]]
    assert not {START, END, 1, 15} & set(own.encode(["<s> <mask>"])[0][1:-1])
