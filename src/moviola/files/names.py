"""Names of files and videos beside what people type.

Some systems write a letter with its accent as one character, others (macOS) as a letter and a mark. People
see no difference, and a keyboard gives them one of the two.
"""

from __future__ import annotations

import unicodedata

__all__ = ["composed", "folded", "spellings"]


def composed(name: str) -> str:
    """The name with each letter and its marks as one character (Unicode's normal form C)."""
    return unicodedata.normalize("NFC", name)


def folded(name: str) -> str:
    """:func:`composed`, without a difference between capital and small letters."""
    return composed(name).casefold()


def spellings(name: str) -> tuple[str, ...]:
    """The name with its accents as they are, as one character and as a letter and a mark, each once."""
    return tuple(dict.fromkeys([name, composed(name), unicodedata.normalize("NFD", name)]))
