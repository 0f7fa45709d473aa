"""Letters as they are compared: what people leave out or write in two ways makes no difference.

Unicode's form KC, case and width; marks of Latin, Greek and Cyrillic letters; the dots of the Turkish i; ß,
æ, œ, ø, ł, đ, ё; vowels, forms of alef and the like of Arabic and Hebrew; in Devanagari the nukta and the
spellings of a nasal; katakana as hiragana; traditional and new Japanese letters as simplified ones
(``han.txt``).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path

__all__ = ["cased", "fold", "marks_differ", "plain"]

_LETTERS = {
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i",
    "ŋ": "n",
    # Arabic and Persian: forms of alef, of yeh, of heh, of kaf, and what only lengthens a word.
    "أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ئ": "ي", "ؤ": "و", "ة": "ه", "ک": "ك",
    "ـ": "",
    # Devanagari: what is sung through the nose.
    "ँ": "ं",
    # What steers how letters join, and where a word may be broken.
    "\u200c": "", "\u200d": "", "\u00ad": "", "\ufeff": "", "’": "'", "ʼ": "'", "`": "'",
}  # fmt: skip
# Vowels and points of Arabic and Hebrew, and the nukta.
_LEFT_OUT = [
    *range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7, *range(0x610, 0x61B),
    *range(0x64B, 0x660), 0x670, *range(0x6D6, 0x6DD), 0x93C, 0x9BC, 0xA3C,
]  # fmt: skip
# A nasal before a letter that is spoken at the same place of the mouth.
_NASAL = "ङ्(?=[क-घ])|ञ्(?=[च-झ])|ण्(?=[ट-ढ])|न्(?=[त-ध])|म्(?=[प-भ])"
# Letters of their own, though they look like another with a mark.
_OWN = {"й", "ў"}


@cache
def _table() -> dict[int, str]:
    variants, simplified = Path(__file__).with_name("han.txt").read_text(encoding="utf-8").splitlines()
    table = dict(zip(map(ord, variants), simplified, strict=True))
    table |= {code: chr(code - 0x60) for code in range(0x30A1, 0x30F7)}
    table |= {ord(letter): plain for letter, plain in _LETTERS.items()}
    return table | dict.fromkeys(_LEFT_OUT, "")


def fold(text: str) -> str:
    """A text as it is compared.

    >>> fold("ＳＴＲＡẞＥ Ёлка ﾃﾚﾋﾞ 火車站"), fold("İstanbul ISPARTA ılık")
    ('strasse елка てれび 火车站', 'istanbul isparta ilik')
    """
    return plain(cased(text))


def cased(text: str) -> str:
    """A text with letters of one case and width, and their marks as one character with them."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text).casefold())


def plain(text: str) -> str:
    """A text of :func:`cased` without marks, and with one letter for each that is written in several ways."""
    if text.isascii():
        return text.replace("`", "'")
    return re.sub(_NASAL, "ं", "".join(map(_bare, text)).translate(_table()))


def marks_differ(word: str, other: str) -> bool:
    """Whether the letters that two words in Latin have in common at their beginning have different marks.

    >>> marks_differ("chó", "cho"), marks_differ("corazon", "Corazón"), marks_differ("niño", "niños")
    (True, True, False)
    """
    own, its = cased(word), cased(other)
    if not unicodedata.name(own[:1] or " ", "").startswith("LATIN"):  # others leave marks out in capitals
        return False
    return _alike(own, its) < _alike(plain(own), plain(its))


def _alike(word: str, other: str) -> int:
    """How many letters two words have in common at their beginning."""
    return len([*takewhile(lambda letters: letters[0] == letters[1], zip(word, other, strict=False))])


@lru_cache(maxsize=50_000)
def _bare(letter: str) -> str:
    """A letter of Latin, Greek or Cyrillic without its marks; digits as those of ASCII; others stay."""
    if letter.isascii() or letter in _OWN:
        return letter
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    parts = unicodedata.normalize("NFD", letter)
    if unicodedata.name(parts[0], "").startswith(("LATIN", "GREEK", "CYRILLIC")):
        return "".join(part for part in parts if not unicodedata.combining(part))
    return "" if "\u0300" <= letter <= "\u036f" else letter
