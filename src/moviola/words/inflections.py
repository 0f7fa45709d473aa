"""Further forms of a word of a query, where Snowball's stemmers leave forms of one word apart.

They are searched besides the word's own stem, so that what a library holds need not be made again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["FURTHER_FORMS"]

_TURKISH_PAST = ("ıyor", "iyor", "uyor", "üyor", "yor", "dı", "di", "du", "dü", "tı", "ti", "tu", "tü")
_RUSSIAN = "бвгджзклмнпрстфхцчшщ"
_FLEETING = f"([{_RUSSIAN}ьй])([{_RUSSIAN}])[аяоеыи]"
_HELD = f"([{_RUSSIAN}])[еёо]([{_RUSSIAN}])"


def _german(word: str) -> list[str]:
    """``kocht`` and ``gekocht`` of ``kochen``."""
    return [f"{word[:-2]}t", f"ge{word[:-2]}t"] if re.fullmatch(r"\w{3,}en", word) else []


def _french(word: str) -> list[str]:
    """``mangent``, ``mangeons``, ``mangions`` of ``manger``."""
    if not re.fullmatch(r"\w{2,}(?:er|ir|re)", word):
        return []
    return [word[:-2] + ending for ending in ("ent", "ons", "eons", "ions")]


def _spanish(word: str) -> list[str]:
    """``peces`` of ``pez``, and ``pez`` of ``peces``."""
    if re.fullmatch(r"\w+z", word):
        return [f"{word[:-1]}ces"]
    return [f"{word[:-3]}z"] if re.fullmatch(r"\w+ces", word) else []


def _russian(word: str) -> list[str]:
    """``кошек`` of ``кошка``, ``кошка`` of ``кошек``, ``пил`` of ``пить``."""
    if re.fullmatch(r"\w{2,}ть", word):
        return [word[:-2] + ending for ending in ("л", "ла", "ли")]
    if found := re.fullmatch(_FLEETING, word[-3:]):
        start = word[:-3] + found[1].strip("ьй")
        return [f"{start}{vowel}{found[2]}" for vowel in "еоё"]
    if found := re.fullmatch(_HELD, word[-3:]):
        return [f"{word[:-3]}{found[1]}{found[2]}{ending}" for ending in "аои"]
    return []


def _turkish(word: str) -> list[str]:
    """``yaz``, ``yazıyor``, ``yazdı`` of ``yazmak``; ``arabası`` of ``araba``."""
    if re.fullmatch(r"\w{2,}m[ae]k", word):
        return [word[:-3], *(word[:-3] + ending for ending in _TURKISH_PAST)]
    return [f"{word}s"] if re.fullmatch(r"\w{2,}[aeıioöuü]", word) else []


FURTHER_FORMS: Mapping[str, Callable[[str], list[str]]] = {
    "de": _german, "es": _spanish, "fr": _french, "ru": _russian, "tr": _turkish,
}  # fmt: skip
"""By language, from a word in lower case to other forms of it; some are no words, which finds nothing."""
