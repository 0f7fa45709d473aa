"""Names of concepts in a text, each after an @."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["named_concepts"]

_CONCEPT = re.compile(r"@[^\W_][\w-]*")


def named_concepts(text: str) -> list[tuple[str, str]]:
    """The words of a text, in order, and the name that each gives after ``@``, empty for other words.

    >>> named_concepts("(@Our-Logo) on a shelf")
    [('(@Our-Logo)', 'our-logo'), ('on', ''), ('a', ''), ('shelf', '')]
    """
    names = []
    for word in text.split():
        # Punctuation around a name is none of it; letters may bear marks, as vowels of many scripts are.
        bare = word.strip("".join(c for c in word if c != "@" and unicodedata.category(c).startswith("P")))
        letters = "".join(c for c in bare if unicodedata.category(c) not in ("Mn", "Mc"))
        is_name = _CONCEPT.fullmatch(letters)
        names.append((word, unicodedata.normalize("NFC", bare[1:].lower()) if is_name else ""))
    return names
