"""Is a text English? By its words, since those who guess a language by letters are often wrong about a query
of two words.

``english_words/stems.txt`` holds the Snowball stems of the words of WordNet 3.0, and of those that it leaves
out ("the", "with"); ``scripts/make_english_words.py`` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from Stemmer import Stemmer

__all__ = ["STEMS", "english_among", "is_english"]

STEMS = Path(__file__).parent / "english_words" / "stems.txt"
"""One stem a line, with an empty line before the first; ASCII."""

_WORD = re.compile(r"[^\W\d_]+")
# Words that English alone has: beside one of them a word may be a name, or misspelt.
_ENGLISH_ALONE = frozenset(
    re.findall(r"\w+", "and behind from his into of the their there this through while who with")
)


def is_english(text: str) -> bool:
    """Whether a text is English: all its words are in the list by their stems, or less than half are not and
    one is of English alone ("the"). True of a text without letters.

    >>> is_english("two dogs running"), is_english("zwei rennende Hunde"), is_english("the film about Amélie")
    (True, False, True)
    """
    # A letter alone, as behind an apostrophe, says nothing.
    words = [word for word in _WORD.findall(text.lower()) if len(word) > 1 or not word.isascii()]
    unknown = [word for word in words if not _is_known(word)]
    return not unknown or (2 * len(unknown) < len(words) and not _ENGLISH_ALONE.isdisjoint(words))


def english_among(words: Iterable[str]) -> list[str]:
    """Those of many words in lower case that are in the list by their stems, in their order.

    >>> english_among(["tabel", "table", "tables"])
    ['table', 'tables']
    """
    known, stem = frozenset(_stems().split()), Stemmer("english").stemWord
    return [word for word in words if stem(word).encode() in known]


@lru_cache(4096)
def _is_known(word: str) -> bool:
    return word.isascii() and b"\n%b\n" % Stemmer("english").stemWord(word).encode() in _stems()


@cache
def _stems() -> bytes:
    return STEMS.read_bytes()
