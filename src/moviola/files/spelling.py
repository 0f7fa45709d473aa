"""Known words that are spelt like a misspelt one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["alike_in_spelling", "edits", "most_edits"]


def most_edits(word: str) -> int:
    """How many edits a misspelling may have: one, of words of seven letters or more two, of very short ones
    none.
    """
    return 0 if len(word) < 4 else 1 if len(word) < 7 else 2


def alike_in_spelling(word: str, known: Sequence[str], most: int = 3) -> list[str]:
    """The words of ``known`` that are few edits away (:func:`most_edits`) and begin or end with the same
    letter, the nearest first, of these the first known; at most ``most``, and never the word itself.
    """
    limit = most_edits(word)
    near = [
        one
        for one in known
        if abs(len(one) - len(word)) <= limit
        and one != word
        and (one[:1] == word[:1] or one[-1:] == word[-1:])
    ]
    if not limit or not near:
        return []
    apart = edits(word, near)
    order = np.argsort(apart, kind="stable")[:most]
    return [near[place] for place in order.tolist() if apart[place] <= limit]


def edits(word: str, others: Sequence[str]) -> NDArray[np.int64]:
    """Letters inserted, left out, replaced, or changed with their neighbour, (n,) from a word to each of n
    others (optimal string alignment, Damerau 1964).
    """
    letters = np.zeros((len(others), max(map(len, others), default=0)), dtype=np.uint32)
    for own, other in zip(letters, others, strict=True):
        own[: len(other)] = [ord(letter) for letter in other]
    length = letters.shape[1]
    above: NDArray[np.int64] = np.tile(np.arange(length + 1, dtype=np.int64), (len(others), 1))
    before = above
    for number, letter in enumerate(map(ord, word), 1):
        row = np.empty_like(above)
        row[:, 0] = number
        differs = letters != np.uint32(letter)
        for at in range(1, length + 1):
            row[:, at] = np.minimum(
                above[:, at - 1] + differs[:, at - 1], np.minimum(above[:, at], row[:, at - 1]) + 1
            )
            if at > 1 and number > 1:
                turned = ~differs[:, at - 2] & (letters[:, at - 1] == ord(word[number - 2]))
                row[:, at] = np.where(turned, np.minimum(row[:, at], before[:, at - 2] + 1), row[:, at])
        before, above = above, row
    lengths = np.array([len(other) for other in others], dtype=np.int64)
    return np.asarray(above[np.arange(len(others)), lengths], dtype=np.int64)
