"""WordPiece (Devlin et al. 2019) of texts in ASCII, without the ``tokenizers`` library.

To start the library, and to have it read a vocabulary, takes a fifteenth of a first search. In ASCII there
are no accents, no letters without spaces between them, and no characters that one edition of Unicode has and
another lacks, so what it does is a few lines; the tests hold them to it. Other texts go through the library.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from moviola.encoders.token_files import SPECIAL

__all__ = ["WordPieces"]

Encode = Callable[[Sequence[str]], list[list[int]]]

_WORD = re.compile(rf"[0-9A-Za-z]+|[{re.escape(string.punctuation)}]")
# Left out, and no word ends there; words end at tabs and at ends of lines.
_CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127])
# A longer word is unknown.
_LONGEST_WORD = 100
_KEPT = 20_000


class WordPieces:
    """Token ids of texts. Safe for threads.

    Args:
        vocabulary: ids by token, the first and the last of a text and the unknown one among them.
        longest: most ids of a text.
        lower: whether words are compared in lower case.
        library: gives what encodes texts that are not in ASCII.
    """

    def __init__(
        self, vocabulary: Mapping[str, int], longest: int, *, lower: bool, library: Callable[[], Encode]
    ) -> None:
        self._vocabulary, self._longest, self._lower = vocabulary, longest, lower
        self._library = library
        self._first, self._last, self._unknown = (vocabulary[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
        self._known: dict[str, list[int]] = {}

    @cached_property
    def _others(self) -> Encode:
        return self._library()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text."""
        others = [text for text in texts if not text.isascii() or any(name in text for name in SPECIAL)]
        theirs = dict(zip(others, self._others(others), strict=True)) if others else {}
        return [theirs[text] if text in theirs else self._row(text) for text in texts]

    def _row(self, text: str) -> list[int]:
        ids = [piece for word in _WORD.findall(text.translate(_CONTROLS)) for piece in self._pieces(word)]
        return [self._first, *ids[: self._longest - 2], self._last]

    def _pieces(self, word: str) -> list[int]:
        """Each the longest that the rest of a word begins with."""
        word = word.lower() if self._lower else word
        if (found := self._known.get(word)) is None:
            if len(self._known) >= _KEPT:
                self._known = {}
            found = self._known[word] = self._parted(word)
        return found

    def _parted(self, word: str) -> list[int]:
        ids: list[int] = []
        begin, end = 0, len(word)
        while begin < len(word) <= _LONGEST_WORD:
            piece = word[begin:end] if begin == 0 else f"##{word[begin:end]}"
            if piece in self._vocabulary:
                ids.append(self._vocabulary[piece])
                begin, end = end, len(word)
            elif (end := end - 1) == begin:
                return [self._unknown]
        return ids or [self._unknown]
