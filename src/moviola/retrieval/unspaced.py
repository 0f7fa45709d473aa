"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese.

Pairs of neighbouring letters stand in for their words.
"""

from __future__ import annotations

import re

__all__ = ["FIRST_UNSPACED", "letters_of", "pairs_of", "spaced"]

_RUN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
FIRST_UNSPACED = "\u0e00"
"""The first of their letters."""


def spaced(text: str) -> str:
    """The text with a blank in place of each run, which also parts the words around it."""
    return _RUN.sub(" ", text)


def pairs_of(text: str) -> list[str]:
    """Distinct pairs of neighbouring letters of these scripts, in order; a letter alone is one, too."""
    runs = _RUN.findall(text)
    return list(dict.fromkeys(run[at : at + 2] for run in runs for at in range(max(len(run) - 1, 1))))


def letters_of(text: str) -> set[str]:
    """The letters of these scripts in a text."""
    return set("".join(_RUN.findall(text)))
