"""Known words that are spelt like a misspelt one."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["alike_in_spelling", "most_edits", "one_edit_away"]

_LONGEST = 40  # letters of a word in which misspellings are looked for: work grows by their square
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def most_edits(word: str) -> int:
    """How many edits a misspelling may have: one, of words of seven letters or more two, of very short ones
    and of those that are longer than words none.
    """
    return 0 if not 4 <= len(word) <= _LONGEST else 1 if len(word) < 7 else 2


def alike_in_spelling(word: str, known: Sequence[str], most: int = 3) -> list[str]:
    """The words of ``known`` that are few edits away (:func:`most_edits`) and begin or end with the same
    letter, the nearest first, of these the first known; at most ``most``, and never the word itself.

    An edit inserts, leaves out or replaces a letter, or changes it with its neighbour (optimal string
    alignment, Damerau 1964).
    """
    if not (limit := most_edits(word)):
        return []
    from rapidfuzz import process  # most words are known
    from rapidfuzz.distance import OSA

    likely = [one for one in known if one[:1] == word[:1] or one[-1:] == word[-1:]]
    near = process.extract(word, likely, scorer=OSA.distance, score_cutoff=limit, limit=None)
    near.sort(key=lambda found: found[1:])  # by edits, then by place
    return [one for one, edits, _ in near if edits][:most]


def one_edit_away(word: str) -> list[str]:
    """All texts one edit (:func:`alike_in_spelling`) of the letters a to z away from a word in lower case
    that begin or end with the same letter: neighbours that change places first, then letters that are put
    in, replaced and left out. None of a word in which no misspelling is looked for (:func:`most_edits`).

    >>> " ".join(one_edit_away("tabel")[:4])
    'atbel tbael taebl table'
    """
    if not most_edits(word):
        return []
    halves = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    changed = (head + tail[1] + tail[0] + tail[2:] for head, tail in halves if len(tail) > 1)
    put_in = (head + letter + tail for head, tail in halves for letter in _LETTERS)
    replaced = (head + letter + tail[1:] for head, tail in halves if tail for letter in _LETTERS)
    left_out = (head + tail[1:] for head, tail in halves if tail)
    found = dict.fromkeys([*changed, *put_in, *replaced, *left_out])
    return [one for one in found if one != word and (one[0] == word[0] or one[-1] == word[-1])]
