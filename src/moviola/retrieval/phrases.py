"""Phrases of a text, for encoders that know what words stand for better than what sentences mean.

ConSE compares a query with a mixture of the names of classes. A sentence may be close to some class by its
structure, or by one word of many. If it is read in two ways, alone and as what footage is of, and each pair
of neighbouring words is judged by itself (:meth:`moviola.retrieval.Background.of_phrases`), a picture has to
fit them all. `docs/scores.md` has the measurements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

__all__ = [
    "FUNCTION_WORDS",
    "content_words",
    "known_phrases",
    "named_words",
    "phrases_of",
    "unframed",
]  # fmt: skip

FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about above after an and are as at be before behind below beside between by during
        for from get gets has have he her his in into is it its near no not of off on onto or out
        over she so some somebody someone something than that the their them then there they this
        through to under up was were while who with""",
    )
)
"""English words that name nothing, in lower case."""

# Content words of a text that are read, so that with their pairs one query is a small batch.
_MOST_WORDS = 8


_FRAME = re.compile(
    r"\s*(?:(?:show|find)(?:\s+me)?\s+)?(?:(?:an?|the|some|any)\s+)?(?:video\s+)?"
    r"(?:photo|photograph|picture|image|video|clip|footage|shot|still)s?\s+(?:of|showing)\s+(?=\w)",
    re.IGNORECASE,
)


def unframed(text: str) -> str:
    """A text without "a picture of", "a photo of" and the like at its start, which name nothing.

    >>> unframed("a photo of a cat"), unframed("a photo album")
    ('a cat', 'a photo album')
    """
    found = _FRAME.match(text)
    return text[found.end() :] if found else text


def content_words(words: Sequence[str]) -> list[str]:
    """The words that name something, of some in lower case; all where none does."""
    return [word for word in words if word not in FUNCTION_WORDS] or list(words)


def named_words(text: str) -> list[str]:
    """The first eight words of a text, :func:`unframed`, that name something, as they are written.

    >>> named_words("a photo of a Red car on the road")
    ['Red', 'car', 'road']
    """
    words = re.findall(r"\w+", unframed(text))
    return [word for word in words if word.lower() not in FUNCTION_WORDS][:_MOST_WORDS]


def phrases_of(text: str) -> dict[str, float]:
    """The text, :func:`unframed`, "footage of" it, and its pairs of neighbouring content words.

    Each of the three kinds has a third of the weight, shared by its phrases. Function words are left out; of
    longer texts the first eight content words count. A text with one content word has it in place of pairs,
    one without any itself. All weights have the sum 1, and the text comes first.
    """
    words, text = named_words(text), unframed(text)
    pairs = [" ".join(pair) for pair in pairwise(words)] or words or [text]
    weights = {text: 1 / 3, f"footage of {text}": 1 / 3}
    for pair in pairs:
        weights[pair] = weights.get(pair, 0.0) + 1 / 3 / len(pairs)
    return weights


def known_phrases(text: str, knows: Callable[[str], bool]) -> dict[str, float]:
    """The :func:`phrases_of` a text that an encoder knows, with weights of sum 1; all where it knows none."""
    phrases = phrases_of(text)
    known = {phrase: weight for phrase, weight in phrases.items() if knows(phrase)}
    if len(known) in (0, len(phrases)):
        return phrases
    total = sum(known.values())
    return {phrase: weight / total for phrase, weight in known.items()}
