"""From texts to the tokens of a SentencePiece model (Unigram, Kudo 2018) with very many pieces.

The ``tokenizers`` library takes half a second and 250 MB of memory to make such a model of 250,000 pieces. A
word is split into pieces that it contains, so these are all that is needed: a model is made of the pieces in
the words that are new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any

from moviola.encoders.packed import Pieces
from moviola.encoders.tokens import Tokenizer

__all__ = ["PieceTokenizer"]

_SPACE = "▁"
"""Stands before each word."""
# SentencePiece makes no longer ones, in letters.
_LONGEST_PIECE = 16
# Words whose tokens are kept.
_KEPT = 20_000


class PieceTokenizer:
    """XLM-R's tokenizer (Conneau et al. 2020). Texts are normalised by NFKC, control characters are left out,
    and words are what blanks separate. Safe for threads.

    Args:
        pieces: the vocabulary; the last is XLM-R's mask, which is in no text, either.
        longest: most tokens of a text, with its start and end.
    """

    def __init__(self, pieces: Pieces, longest: int) -> None:
        self._pieces, self._longest = pieces, longest
        self._special = frozenset(
            {pieces.start, pieces.end, pieces.padding, pieces.unknown, len(pieces.scores) - 1}
        )
        self._known: dict[str, list[int]] = {}

    @property
    def tokenizer(self) -> Tokenizer:
        """The same as for checkpoints that have a ``tokenizer.json``."""
        return Tokenizer(self.encode, lambda name: self._numbers.get(name.encode()), self._special)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, between its start and end."""
        split = [self._normaliser.normalize_str(text).split() for text in texts]
        known = self._known
        if new := set(chain.from_iterable(split)).difference(known):
            known = known | self._tokens_of(new)
            self._known = dict(islice(known.items(), max(0, len(known) - _KEPT), None))
        rows = (list(chain.from_iterable(known[word] for word in words)) for words in split)
        return [[self._pieces.start, *row[: self._longest - 2], self._pieces.end] for row in rows]

    def _tokens_of(self, words: Collection[str]) -> dict[str, list[int]]:
        """Tokens of each word."""
        from tokenizers.models import Unigram

        held = {self._numbers[part] for word in words for part in _parts(word) if part in self._numbers}
        # An unknown piece scores less than the least likely of all pieces, so that has to be among them.
        numbers = [self._pieces.unknown, int(self._pieces.scores.argmin()), *sorted(held)]
        scores = self._pieces.scores[numbers].tolist()
        model = Unigram([(self._text(one), score) for one, score in zip(numbers, scores, strict=True)], 0)
        return {word: [numbers[token.id] for token in model.tokenize(_SPACE + word)] for word in words}

    def _text(self, number: int) -> str:
        begin, end = self._pieces.starts[number : number + 2].tolist()
        return self._pieces.text[begin:end].tobytes().decode()

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        """The number of each piece that may be in a text."""
        text, places = self._pieces.text.tobytes(), pairwise(self._pieces.starts.tolist())
        return {
            text[begin:end]: number
            for number, (begin, end) in enumerate(places)
            if number not in self._special
        }

    @cached_property
    def _normaliser(self) -> Any:
        from tokenizers import normalizers

        return normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])


def _parts(word: str) -> Iterator[bytes]:
    """What may be a piece of a word."""
    word = _SPACE + word
    for begin in range(len(word)):
        for end in range(begin + 1, min(begin + _LONGEST_PIECE, len(word)) + 1):
            yield word[begin:end].encode()
