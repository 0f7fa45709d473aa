"""Known words that are spelt like a misspelt one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["alike_in_spelling", "most_edits", "nearest_alone", "nearest_first", "sounds_as"]

_LONGEST = 40  # letters of a word in which misspellings are looked for: work grows by their square
# Spellings of one sound in English; doubled letters and a last e are silent.
_SOUNDS = {
    "ph": "f", "wh": "w", "ck": "k", "qu": "kw", "gu(?=[ei])": "g", "(?<=.)y": "i", "c(?=[eiy])": "s",
    "c(?!h)": "k", "x": "ks", "z": "s",
}  # fmt: skip
_SOUND = "|".join(f"({spelt})" for spelt in _SOUNDS)


def most_edits(word: str) -> int:
    """How many edits a misspelling may have: one, of words of seven letters or more two, of very short ones
    and of those that are longer than words none.
    """
    return 0 if not 4 <= len(word) <= _LONGEST else 1 if len(word) < 7 else 2


def sounds_as(word: str) -> str:
    """A word in lower case as it sounds, roughly: words that people write for each other are the same.

    >>> sounds_as("elephant") == sounds_as("elefant"), sounds_as("bycicle") == sounds_as("bicycle")
    (True, True)
    """
    values = list(_SOUNDS.values())
    heard = re.sub(_SOUND, lambda found: values[(found.lastindex or 1) - 1], word)
    return re.sub(r"(.)\1+", r"\1", heard).removesuffix("e")


def _apart(word: str, other: str) -> tuple[bool, int, int]:
    """How likely a word is meant by a misspelt one, the likeliest least: by sound, then by edits, of which
    a letter that is another is the least likely.
    """
    from rapidfuzz.distance import OSA, Indel

    return sounds_as(word) != sounds_as(other), OSA.distance(word, other), Indel.distance(word, other)


def nearest_first(word: str, words: Iterable[str]) -> list[str]:
    """Words in the order in which they are likely to be meant by a misspelt one: those that sound alike
    (:func:`sounds_as`), then by edits, then as they are given.
    """
    return sorted(words, key=lambda one: _apart(word, one))


def nearest_alone(word: str, words: Sequence[str]) -> list[str]:
    """Those of some words that are as near to a misspelt one as the nearest; none where that is a short word
    that does not sound alike, and of which a letter would be another: it is as likely a word of another
    language, or a name ("Hund", hand).
    """
    least = min((_apart(word, one) for one in words), default=(True, 0, 0))
    differs, edits, indel = least
    replaced = indel == 2 * edits
    found = [one for one in words if _apart(word, one) == least]
    if differs and most_edits(word) == 1 and replaced:
        found = [one for one in found if sorted(one) == sorted(word)]
    return found


def alike_in_spelling(word: str, known: Sequence[str], most: int = 3) -> list[str]:
    """The words of ``known`` that are few edits away (:func:`most_edits`), or one more where they sound alike
    (:func:`sounds_as`), and begin or end with the same letter, in the order of :func:`nearest_first`; at most
    ``most``, and never the word itself.

    An edit inserts, leaves out or replaces a letter, or changes it with its neighbour (optimal string
    alignment, Damerau 1964).
    """
    if not (limit := most_edits(word)):
        return []
    from rapidfuzz import process  # most words are known
    from rapidfuzz.distance import OSA

    likely = [one for one in known if one[:1] == word[:1] or one[-1:] == word[-1:]]
    found = process.extract(word, likely, scorer=OSA.distance, score_cutoff=limit + 1, limit=None)
    heard = sounds_as(word)
    near = [
        (place, one) for one, edits, place in found if edits and (edits <= limit or sounds_as(one) == heard)
    ]
    return nearest_first(word, [one for _, one in sorted(near)])[:most]
