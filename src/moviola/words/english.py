"""Is a text English? By its words, since those who guess a language by letters are often wrong about a query
of two words.

``english_words/stems.txt`` holds the Snowball stems of the words of WordNet 3.0, and of those that it leaves
out ("the", "with"), ``words.txt`` words that are offered for misspelt ones; ``scripts/make_english_words.py``
writes both.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path

from Stemmer import Stemmer

from moviola.files.spelling import alike_in_spelling, nearest_alone, sounds_as

__all__ = ["STEMS", "WORDS", "english_like", "is_english", "sounds_english"]

STEMS = Path(__file__).parent / "english_words" / "stems.txt"
"""One stem a line, with an empty line before the first; ASCII."""

WORDS = STEMS.with_name("words.txt")
"""One word a line, the most frequent first; ASCII."""

_WORD = re.compile(r"[^\W\d_]+")
_LEAST_HEARD = 5
# English words that are written with their accents, too.
_ACCENTED = frozenset(
    re.findall(
        r"\w+",
        "attaché brûlée café cafés château châteaux cliché clichés cortège crème crêpe crêpes décor déjà "
        "doppelgänger éclair éclairs élite entrée façade façades fête fiancé fiancée jalapeño jalapeños "
        "mêlée naïve pâté piñata piñatas protégé purée résumé rosé sauté séance smörgåsbord soufflé touché",
    )
)
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


def english_like(word: str) -> list[str]:
    """English words for things that can be seen, and frequent ones, that are spelt like a misspelt word and
    sound nearly as it does (:func:`moviola.files.spelling.sounds_as`): the nearest alone
    (:func:`moviola.files.spelling.nearest_alone`), the most frequent first. Of a word that ends in s their
    plurals, too.

    >>> english_like("bycicle"), english_like("elefant"), english_like("skatebords"), english_like("wasser")
    (['bicycle'], ['elephant'], ['skateboards'], [])
    """
    from rapidfuzz.distance import OSA  # most words are known

    known = _words()
    if word.endswith("s"):
        known = (*known, *(f"{one}s" for one in known if not one.endswith("s")))
    heard = sounds_as(word)
    likely = alike_in_spelling(word, known, most=len(known))
    return nearest_alone(word, [one for one in likely if OSA.distance(heard, sounds_as(one)) <= 1])


@lru_cache(4096)
def sounds_english(word: str) -> bool:
    """Whether a word is no English one, but sounds exactly as one that is offered for it does. Shorter words
    of other languages often do ("flor", floor).

    >>> sounds_english("gitar"), sounds_english("elefant"), sounds_english("katze"), sounds_english("guitar")
    (True, True, False, False)
    """
    heard = sounds_as(word)
    return (
        len(word) >= _LEAST_HEARD
        and not is_english(word)
        and any(sounds_as(one) == heard for one in english_like(word))
    )


@lru_cache(4096)
def _is_known(word: str) -> bool:
    if word in _ACCENTED:
        return True
    return word.isascii() and b"\n%b\n" % Stemmer("english").stemWord(word).encode() in _stems()


@cache
def _stems() -> bytes:
    return STEMS.read_bytes()


@cache
def _words() -> tuple[str, ...]:
    return tuple(WORDS.read_text(encoding="ascii").split())
